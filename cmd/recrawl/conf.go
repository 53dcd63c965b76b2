package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/inject"
	"github.com/recrawl/recrawl/nutch/nutchconf"
)

const toConfigure = "Nutch configuration"

func confFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "conf", Category: toConfigure, Usage: "decide as Nutch does with the configuration in `DIR`: nutch-site.xml and the rule files it names. Flags override it. recrawl check conf lists the settings that have no effect"},
		&cli.BoolFlag{Name: "corrected", Category: toConfigure, Usage: "with -conf: use its limits and rules, but correct Nutch's faults"},
	}
}

// configured reads the configuration that -conf names; nil without -conf.
func (a *app) configured(c *cli.Command) (*nutchconf.Options, error) {
	dir := c.String("conf")
	switch {
	case dir == "" && c.IsSet("conf"):
		return nil, usagef("-conf needs the name of a directory")
	case dir == "" && c.Bool("corrected"):
		return nil, usagef("-corrected works only with -conf")
	case dir == "":
		return nil, nil
	}
	conf, err := nutchconf.Read(dir)
	if err != nil {
		return nil, err
	}
	conf.Corrected = c.Bool("corrected")
	if c.IsSet("agent") {
		conf.Set("http.agent.name", c.String("agent"))
	}
	if c.IsSet("contact") {
		property, err := contactProperty(c.String("contact"))
		if err != nil {
			return nil, err
		}
		conf.Set(property, c.String("contact"))
	}
	return conf.Options()
}

// maxDays bounds -adddays; a time.Duration cannot hold much more.
const maxDays = 36525

// optionsOf makes options from a configuration, if there is one, and from the flags
// that were given.
func optionsOf(c *cli.Command, conf *nutchconf.Options) recrawl.Options {
	var o recrawl.Options
	if conf != nil {
		o = conf.Crawl
	}
	given := func(flag string) bool { return conf == nil || c.IsSet(flag) }
	if given("agent") {
		o.Agent = c.String("agent")
	}
	if given("topN") {
		o.Generate.TopN = c.Int("topN")
	}
	if given("max-per-host") {
		o.Generate.MaxPerHost = c.Int("max-per-host")
	}
	if given("adddays") {
		o.Generate.Ahead = time.Duration(c.Int("adddays")) * 24 * time.Hour
	}
	if given("threads") {
		o.Fetch.Threads = c.Int("threads")
	}
	if given("ignore-external") {
		o.Fetch.Links.IgnoreExternal = c.Bool("ignore-external")
	}
	if c.Bool("no-sitemaps") {
		o.Fetch.Sitemaps.NoDiscovery, o.Fetch.Sitemaps.NoFeeds = true, true
	}
	return o
}

// given applies a flag that was given: it overrides a configuration.
func given(c *cli.Command, flag string, o *bool) {
	if c.IsSet(flag) {
		*o = c.Bool(flag)
	}
}

// delay sets the pause between requests to a host.
func delay(c *cli.Command, conf *nutchconf.Options, d *time.Duration) error {
	if conf != nil && !c.IsSet("delay") {
		return nil
	}
	switch *d = c.Duration("delay"); {
	case *d < 0:
		return usagef("-delay: %v is negative", *d)
	case *d == 0:
		*d = -1 // here 0 means none
	}
	return nil
}

// injecting returns how to inject: as the configuration, if there is one, and the
// flags say. Only flags decide what happens to existing records, as in Nutch.
func (s *session) injecting(c *cli.Command) (o inject.Options) {
	if s.conf != nil {
		o = s.conf.Inject
	}
	o.Overwrite, o.Update = c.Bool("overwrite"), c.Bool("update")
	given(c, "no-filter", &o.NoFilter)
	given(c, "no-norm", &o.NoNormalize)
	given(c, "purge-gone", &o.PurgeGone)
	return o
}

// parsesLater reports whether the verb fetch leaves the parsing to the verb parse.
func (s *session) parsesLater(c *cli.Command) bool {
	if s.conf != nil && !c.IsSet("no-parse") {
		return s.conf.Crawl.ParseLater
	}
	return c.Bool("no-parse")
}

// tellNotes reports on standard error which settings of a configuration have no
// effect: the unknown names, and the number of the others.
func (a *app) tellNotes(c *cli.Command, o *nutchconf.Options) {
	rest := 0
	for _, n := range o.Notes {
		if n.Unknown || c.Bool("v") {
			fmt.Fprintf(a.err, "recrawl: %v\n", n)
		} else {
			rest++
		}
	}
	if rest > 0 {
		fmt.Fprintf(a.err, "recrawl: %d properties are not honoured, or only in part; recrawl check conf -conf %s lists them\n", rest, c.String("conf"))
	}
}

func (a *app) checkConf() *cli.Command {
	return &cli.Command{
		Name: "conf", Usage: "list the settings of a Nutch configuration that have no effect here",
		Description: `Prints a line for each property that is set but not honoured, or only in part,
with file, line and reason, and for each that Nutch does not have; then one for
parse-plugins.xml and index-writers.xml, which are not read. With -all it lists every property of Nutch instead, and whether it is honoured. The exit code is 1 if the
configuration cannot be used at all.

  recrawl check conf -conf conf
  recrawl check conf -all`,
		Flags: flags(&cli.BoolFlag{Name: "all", Usage: "list every property of Nutch: its name, whether it is honoured, where, and why not"}, jsonFlag(), confFlags()),
		Action: func(_ context.Context, c *cli.Command) error {
			if err := noArgs(c); err != nil {
				return err
			}
			if c.Bool("all") {
				return a.printProperties(c)
			}
			o, err := a.configured(c)
			if err != nil {
				return err
			}
			if o == nil {
				return usagef("check conf needs -conf DIR, or -all")
			}
			for _, n := range slices.Concat(o.Notes, o.Unread) {
				if c.Bool("json") {
					if err := a.printLine(map[string]any{"property": n.Property, "value": n.Value, "file": n.File, "line": n.Line, "unknown": n.Unknown, "note": n.Text}); err != nil {
						return err
					}
					continue
				}
				fmt.Fprintln(a.out, n)
			}
			return nil
		},
	}
}

func (a *app) printProperties(c *cli.Command) error {
	for _, p := range nutchconf.Properties() {
		if c.Bool("json") {
			if err := a.printLine(map[string]any{"property": p.Name, "default": p.Default, "code": p.Code, "honoured": p.Support.String(), "field": p.Field, "flag": p.Flag, "note": p.Why()}); err != nil {
				return err
			}
			continue
		}
		where := p.Field
		if where == "" {
			where = p.Why()
		}
		fmt.Fprintf(a.out, "%s\t%v\t%s\n", p.Name, p.Support, where)
	}
	return nil
}
