package demo

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/flags"
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/stores/pebblestore"
)

// ChildCommand is the process that the demo starts and kills: a run on the crawl of the
// demo that ends when its standard input does, so that it does not outlive its
// parent.
func ChildCommand(warn io.Writer) *cli.Command {
	return &cli.Command{
		Name: "demo-crawl", Hidden: true, Usage: "the process that demo kills",
		Flags: flags.Join(flags.Dir(), &cli.StringFlag{Name: "connect-to"}, &cli.StringFlag{Name: "now"}),
		Action: func(ctx context.Context, c *cli.Command) error {
			now, err := flags.Clock(c)
			if err != nil {
				return err
			}
			go func() {
				io.Copy(io.Discard, os.Stdin)
				os.Exit(1)
			}()
			s, err := openDemo(warn, c.String("d"), c.String("connect-to"), now, nil, false)
			if err != nil {
				return err
			}
			_, err = s.crawler.Run(ctx)
			return errors.Join(err, s.end())
		},
	}
}

// killed kills a crawl in the middle of a fetch, resumes it, and compares the result
// with that of an undisturbed crawl.
func (d *demo) killed(ctx context.Context, dir string) error {
	d.clock.set(d.clock.now().Add(100 * oneDay))
	d.say("Now kill -9. A hundred days later everything is due. The crawl is copied. The")
	d.say("copy goes on undisturbed; the original goes on in a separate process, which is")
	d.say("killed in the middle of the fetch.")
	twin := filepath.Join(d.dir, "undisturbed")
	if err := os.CopyFS(twin, os.DirFS(dir)); err != nil {
		return err
	}
	var undisturbed recrawl.Report
	want, err := d.finish(ctx, twin, &undisturbed)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(twin); err != nil {
		return err
	}
	const before = 650 // of some 800: more than the first group of 500 visits, which is written by then
	if err := d.kill(ctx, dir, before); err != nil {
		return err
	}
	if err := d.showLeft(ctx, dir); err != nil {
		return err
	}
	var resumed recrawl.Report
	got, err := d.finish(ctx, dir, &resumed)
	if err != nil {
		return err
	}
	d.say("  went on      %d more visits; undisturbed it took %d", resumed.Visited(), undisturbed.Visited())
	if got != want {
		return fmt.Errorf("demo: the crawl that was killed differs from the undisturbed one: %s, want %s", got, want)
	}
	d.say("  compared     %s", got)
	d.say("               byte for byte what the undisturbed crawl has")
	return nil
}

// finish runs a crawl until nothing is due and returns its dump.
func (d *demo) finish(ctx context.Context, dir string, r *recrawl.Report) (sum string, err error) {
	s, err := openDemo(d.err, dir, d.web.server.ConnectTo(), d.clock.now, nil, d.verbose)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, s.end()) }()
	if *r, err = s.crawler.Run(ctx); err != nil {
		return "", err
	}
	return digest(ctx, s.db)
}

// digest sums up crawl db and link db, as they are stored.
func digest(ctx context.Context, db *pebblestore.DB) (string, error) {
	h := sha256.New()
	records, links := 0, 0
	for r, err := range db.Crawl().Scan(ctx, crawldb.Range{}) {
		if err != nil {
			return "", err
		}
		raw, err := r.AppendBinary(nil)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%s %x\n", r.URL, raw)
		records++
	}
	for e, err := range db.Links().Scan(ctx, crawldb.Range{}) {
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%s %q\n", e.URL, e.Inlinks)
		links += len(e.Inlinks)
	}
	return fmt.Sprintf("%d records and %d links, SHA-256 %s…", records, links, hex.EncodeToString(h.Sum(nil))[:16]), nil
}

// kill starts a crawl in a separate process and kills it when it has requested a number
// of pages.
func (d *demo) kill(ctx context.Context, dir string, pages int) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	reached := d.web.tripAfter(pages)
	child := exec.CommandContext(ctx, program, "demo-crawl", "-d", dir, "-connect-to", d.web.server.ConnectTo(), "-now", d.clock.now().Format(time.RFC3339))
	alive, err := child.StdinPipe() // closed when this process ends, however it does
	if err != nil {
		return err
	}
	defer alive.Close()
	if err := child.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- child.Wait() }()
	timeout := time.NewTimer(time.Minute)
	defer timeout.Stop()
	select {
	case <-reached:
		if err := child.Process.Kill(); err != nil {
			return err
		}
		<-ended
	case err := <-ended:
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("demo: the process to be killed ended too soon: %v", err)
	case <-timeout.C:
		return errors.Join(errors.New("demo: the process to be killed made no progress"), child.Process.Kill(), <-ended)
	}
	d.say("")
	d.say("  killed       process %d, when it had requested %d pages", child.Process.Pid, pages)
	return ctx.Err()
}

// showLeft shows what is left after the kill.
func (d *demo) showLeft(ctx context.Context, dir string) (err error) {
	db, err := pebblestore.Open(dir, pebblestore.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	st, err := crawldb.ReadStats(ctx, db.Crawl(), d.clock.now())
	if err != nil {
		return err
	}
	var name string
	for n, err := range db.Segments().List(ctx) {
		if err != nil {
			return err
		}
		name = n
	}
	listed, err := countRecords[crawldb.Datum](ctx, db.Segments(), name)
	if err != nil {
		return err
	}
	kept, err := countRecords[segment.Visit](ctx, db.Segments(), name)
	if err != nil {
		return err
	}
	d.say("  opened       nothing to repair; %d records, all there", st.Total)
	d.say("  leases       %d pages belong to segment %s, which is resumed", st.Leased, name)
	d.say("  kept         %d of %d visits, written in groups of 500; they are not made again", kept, listed)
	return nil
}

// countRecords counts the records of one part of a segment, complete or not.
func countRecords[T segment.Record](ctx context.Context, s segment.Store, name string) (n int, err error) {
	for block, err := range segment.Partial[T](ctx, s, name, 0) {
		if err != nil {
			return n, err
		}
		n += len(block)
	}
	return n, nil
}
