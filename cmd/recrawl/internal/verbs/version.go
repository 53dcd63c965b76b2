package verbs

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl/cmd/recrawl/internal/flags"
	"github.com/recrawl/recrawl/stores/pebblestore"
)

func (a *app) version() *cli.Command {
	return &cli.Command{
		Name: "version", Category: flags.SelfVerbs, Usage: "show the version of the command and of the stores it writes",
		Description: `Shows the version of the module, the commit it was built from, the version of Go,
and the version of the format in which a crawl is stored. A crawl in an earlier
format is opened and becomes one of this format; a later one is refused.

  recrawl version
  recrawl version -json`,
		Flags: flags.Join(flags.JSON()),
		Action: func(_ context.Context, c *cli.Command) error {
			if err := flags.NoArgs(c); err != nil {
				return err
			}
			v := readVersion()
			if c.Bool("json") {
				return a.printJSON(v)
			}
			fmt.Fprintf(a.out, "recrawl %s\n", v.Module)
			if v.Commit != "" {
				changed := ""
				if v.Modified {
					changed = ", with changes"
				}
				fmt.Fprintf(a.out, "commit %s of %s%s\n", v.Commit, v.CommitTime, changed)
			}
			fmt.Fprintf(a.out, "%s %s\nstore format %d\n", v.Go, v.Platform, v.Format)
			return nil
		},
	}
}

// versions is what version prints.
type versions struct {
	Module     string `json:"module"`
	Commit     string `json:"commit,omitempty"`
	CommitTime string `json:"commit_time,omitempty"`
	Modified   bool   `json:"modified,omitempty"` // built from a work tree with changes
	Go         string `json:"go"`
	Platform   string `json:"platform"`
	Format     int    `json:"store_format"`
}

// readVersion reads what the linker noted. A program built outside of a repository has no commit.
func readVersion() versions {
	v := versions{Module: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Format: pebblestore.FormatVersion}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if info.Main.Version != "" {
		v.Module = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = s.Value
		case "vcs.time":
			v.CommitTime = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}
