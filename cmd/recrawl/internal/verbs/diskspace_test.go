package verbs

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl/cmd/recrawl/internal/flags"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/render"
)

// If the disk is full where the store cannot wait, a verb is run again if possible.
func TestVerbIsRepeatedAfterFullDisk(t *testing.T) {
	for _, test := range []struct {
		args  string
		times int // that the verb is run
	}{
		{"", 3},
		{"-min-free 0", 1},
		{"-seeds -", 1},
		{"-", 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			var errs strings.Builder
			a, times, began := &app{out: &render.CheckedWriter{W: io.Discard}, err: &errs}, 0, time.Now()
			c := &cli.Command{Name: "verb", Category: flags.StageVerbs, Flags: flags.Join(flags.Dir(), flags.Seeds(), flags.MinFree(), flags.Reporting()), Action: func(ctx context.Context, c *cli.Command) error {
				return a.withCrawl(ctx, c, access{create: true}, func(*session) error {
					if times++; times < 3 {
						return fmt.Errorf("write: %w", syscall.ENOSPC)
					}
					return nil
				})
			}}
			dir := filepath.Join(t.TempDir(), "crawl")
			err := c.Run(t.Context(), append([]string{"verb", "-d", dir}, strings.Fields(test.args)...))
			if times != test.times || (err == nil) != (times == 3) || DiskFull(err) != (times == 1) {
				t.Errorf("%q: run %d times, %v; want %d", test.args, times, err, test.times)
			}
			if paused := strings.Count(errs.String(), "paused"); paused != min(times-1, 1) || (time.Since(began) >= time.Second) != (times > 1) {
				t.Errorf("%q: it says %q after %v", test.args, &errs, time.Since(began))
			}
		})
	}
}
