package verbs

import (
	"context"
	"fmt"
	"slices"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl/cmd/recrawl/internal/flags"
	"github.com/recrawl/recrawl/nutch/nutchconf"
)

func (a *app) checkConf() *cli.Command {
	return &cli.Command{
		Name: "conf", Usage: "list the settings of a Nutch configuration that have no effect here",
		Description: `Prints a line for each property that is set but not honoured, or only in part,
with file, line and reason, and for each that Nutch does not have; then one for
parse-plugins.xml and index-writers.xml, which are not read. With -all it lists every property of Nutch instead, and whether it is honoured. The exit code is 1 if the
configuration cannot be used at all.

  recrawl check conf -conf conf
  recrawl check conf -all`,
		Flags: flags.Join(&cli.BoolFlag{Name: "all", Usage: "list every property of Nutch: its name, whether it is honoured, where, and why not"}, flags.JSON(), flags.NutchConf()),
		Action: func(_ context.Context, c *cli.Command) error {
			if err := flags.NoArgs(c); err != nil {
				return err
			}
			if c.Bool("all") {
				return a.printProperties(c)
			}
			o, err := flags.ReadNutchConf(c)
			if err != nil {
				return err
			}
			if o == nil {
				return flags.Usagef("check conf needs -conf DIR, or -all")
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
