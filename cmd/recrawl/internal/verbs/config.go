package verbs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl/cmd/recrawl/internal/crawls"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/flags"
	"github.com/recrawl/recrawl/stores/pebblestore"
	"github.com/recrawl/recrawl/stores/pgstore"
)

func (a *app) config() *cli.Command {
	return &cli.Command{
		Name: "config", Category: flags.SelfVerbs, Usage: "show the flags in force for a verb, and where each comes from", ArgsUsage: "[VERB] [FLAGS...]",
		SkipFlagParsing: true,
		Description: `Shows the value of every flag of a verb, crawl if none is named, as that verb would
take it: from the command line, from the configuration file, from what the crawl
remembers, or the default. The flags of the verb may follow.

  recrawl config -d crawl
  recrawl config fetch -d crawl -threads 20
  recrawl config crawl -d crawl -json

` + flags.ConfigFormat,
		Action: func(ctx context.Context, c *cli.Command) error {
			name, args := "crawl", c.Args().Slice()
			if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
				name, args = args[0], args[1:]
			}
			return a.runConfig(ctx, name, args)
		},
	}
}

// runConfig parses the command line of a verb, and prints what is in force instead of
// running the verb.
func (a *app) runConfig(ctx context.Context, name string, args []string) error {
	root := &cli.Command{Name: "recrawl", Commands: All(io.Discard, io.Discard), ExitErrHandler: func(context.Context, *cli.Command, error) {}}
	flags.AcceptShared(root)
	flags.AddConfigFiles(root)
	flags.ExplainUsageErrors(root)
	verb := root.Command(name)
	if verb == nil {
		return flags.Usagef("unknown verb %q%s", name, flags.SuggestVerbs(root, name))
	}
	verb.Action = func(ctx context.Context, c *cli.Command) error { return a.printConfig(ctx, root, c) }
	return root.Run(ctx, append([]string{"recrawl", name}, args...))
}

// setFlag is a flag in force and where it comes from: flag, a line of a file, saved or default.
type setFlag struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	From  string `json:"from"`
}

func (a *app) printConfig(ctx context.Context, root, c *cli.Command) error {
	from := map[string]string{}
	for _, f := range c.Flags {
		if name := f.Names()[0]; c.IsSet(name) {
			from[name] = "flag"
		}
	}
	set, err := flags.ApplyConfig(root, c)
	if err != nil {
		return err
	}
	for _, s := range set {
		from[s.Name] = fmt.Sprintf("%s:%d", s.File, s.Line)
	}
	saved, err := a.savedFlags(ctx, c)
	if err != nil {
		return err
	}
	for name, value := range saved {
		if from[name] == "" && value != "" {
			if err := c.Set(name, value); err != nil {
				return err
			}
			from[name] = "saved"
		}
	}
	all := []setFlag{}
	for _, f := range c.Flags {
		name := f.Names()[0]
		if v, ok := f.(cli.VisibleFlag); !ok || !v.IsVisible() {
			continue
		}
		s := setFlag{Name: name, Value: flagText(c, name), From: from[name]}
		if name == "d" || name == flags.SegmentsName {
			s.Value = crawls.WithoutPassword(s.Value)
		}
		if s.From == "" {
			s.From = "default"
		}
		all = append(all, s)
	}
	if c.Bool("json") {
		return a.printJSON(map[string]any{"verb": c.Name, "flags": all})
	}
	w := tabwriter.NewWriter(a.out, 0, 8, 2, ' ', 0)
	for _, s := range all {
		fmt.Fprintf(w, "%s\t%s\t%s\n", s.Name, s.Value, s.From)
	}
	return w.Flush()
}

// savedFlags returns the flags that the crawl remembers; none if there is no crawl. If
// another process has it open, that is said, and no error.
func (a *app) savedFlags(ctx context.Context, c *cli.Command) (map[string]string, error) {
	if name := c.String("d"); name == "" || !flags.IsURL(name) && crawlIn(name) != nil {
		return nil, nil
	}
	db, err := a.openToRead(ctx, c, onceCache)
	if errors.Is(err, pgstore.ErrNoCrawl) {
		return nil, nil
	}
	if errors.Is(err, pebblestore.ErrLocked) {
		fmt.Fprintf(a.err, "recrawl: %v; the flags that the crawl remembers are not shown\n", err)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	saved, err := flags.ReadSavedFlags(ctx, db.Crawl())
	if err := errors.Join(err, db.Close()); err != nil {
		return nil, err
	}
	return map[string]string{"schedule": saved.Schedule, "budget": saved.Budget, "scoring": saved.Scoring, flags.SegmentsName: saved.Segments, "fields": saved.Fields, "signature": saved.Compare}, nil
}

// flagText formats the value of a flag; the values of one that may be repeated have commas
// between them.
func flagText(c *cli.Command, name string) string {
	switch v := c.Value(name).(type) {
	case []string:
		return strings.Join(v, ",")
	default:
		return strings.Trim(fmt.Sprint(v), "[]")
	}
}
