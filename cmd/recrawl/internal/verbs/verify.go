package verbs

import (
	"bufio"
	"context"
	"fmt"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl/cmd/recrawl/internal/crawls"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/flags"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/render"
	"github.com/recrawl/recrawl/crawldb/verify"
	"github.com/recrawl/recrawl/stores/pebblestore"
)

func (a *app) verify() *cli.Command {
	return &cli.Command{
		Name: "verify", Category: flags.StoreVerbs, Usage: "check a crawl for damage and inconsistencies",
		Description: `Reads all of a crawl but its locks and its recrawl.yaml, and changes nothing. It checks the checksum of every block of
every file, every record, the index of what is due, hosts, links and segments, and
that they agree. Each line is one finding, with the file and offset, the URL or the
segment; a line that starts with "harmless" is a leftover that does no harm. With
-json each line is one object. The last line is a summary. The exit code is 0 if all
is sound and 1 if something is damaged or wrong; then recrawl salvage rescues the
rest. The torn end of a log after a crash was never acknowledged, and is no damage.

  recrawl verify -d crawl
  recrawl verify -d crawl -json | jq -r .file`,
		Flags: flags.Join(flags.Dir(), flags.Reporting()),
		Action: func(ctx context.Context, c *cli.Command) error {
			if err := flags.NoArgs(c); err != nil {
				return err
			}
			dir := c.String("d")
			if dir == "" {
				return flags.Usagef("-d DIR is required: the directory of the crawl")
			}
			if err := crawls.NeedDirectory(c.Name, c.String("d")); err != nil {
				return err
			}
			now, err := flags.Clock(c)
			if err != nil {
				return err
			}
			if err := crawlIn(dir); err != nil {
				return err
			}
			w := bufio.NewWriter(a.out)
			stop, progress := a.counting(c)
			var r verify.Report
			err = a.waitForLock(ctx, dir, func() (err error) {
				r, err = pebblestore.Verify(ctx, dir, verify.Options{
					Now: now, Progress: progress,
					Found: func(f verify.Finding) { showFinding(w, f, c.Bool("json")) },
				})
				return err
			})
			stop()
			if err == nil {
				showVerified(w, &r, c.Bool("json"))
			}
			if e := w.Flush(); err == nil {
				err = e
			}
			if err == nil && r.Findings > 0 {
				err = fmt.Errorf("%s is not sound: %s; recrawl salvage rescues what is undamaged", dir, render.Count(r.Findings, "finding"))
			}
			return err
		},
	}
}

// counting shows the progress of a check on a terminal.
func (a *app) counting(c *cli.Command) (stop func(), progress func(verify.Report)) {
	f := render.Terminal(a.err)
	if f == nil || c.Bool("json") {
		return func() {}, nil
	}
	var last time.Time
	return func() { fmt.Fprint(f, "\r\x1b[K") }, func(r verify.Report) {
		if now := time.Now(); now.Sub(last) > 250*time.Millisecond {
			last = now
			fmt.Fprintf(f, "\r\x1b[K%d blocks, %d records of segments, %d URLs, %d pages with inlinks, %d hosts", r.Blocks, r.SegmentRecords, r.Records, r.Targets, r.Hosts)
		}
	}
}

type findingJSON struct {
	File     string `json:"file,omitempty"`
	Offset   *int64 `json:"offset,omitempty"`
	URL      string `json:"url,omitempty"`
	Segment  string `json:"segment,omitempty"`
	Part     string `json:"part,omitempty"`
	Block    *int   `json:"block,omitempty"`
	Harmless bool   `json:"harmless,omitempty"`
	Error    string `json:"error"`
}

func showFinding(w *bufio.Writer, f verify.Finding, asJSON bool) {
	if !asJSON {
		if f.Harmless {
			w.WriteString("harmless: ")
		}
		fmt.Fprintln(w, f.Error())
		return
	}
	j := findingJSON{File: f.File, URL: f.URL, Segment: f.Segment, Part: f.Part, Harmless: f.Harmless, Error: f.Error()}
	if f.Offset >= 0 {
		j.Offset = &f.Offset
	}
	if f.Block >= 0 {
		j.Block = &f.Block
	}
	render.JSONLine(w, j)
}

func showVerified(w *bufio.Writer, r *verify.Report, asJSON bool) {
	if asJSON {
		render.JSONLine(w, map[string]any{"findings": r.Findings, "harmless": r.Harmless, "files": r.Files, "blocks": r.Blocks, "bytes": r.Bytes, "torn": r.Torn,
			"records": r.Records, "leased": r.Leased, "hosts": r.Hosts, "targets": r.Targets, "inlinks": r.Inlinks,
			"segments": r.Segments, "parts": r.Parts, "segment_blocks": r.SegmentBlocks, "segment_records": r.SegmentRecords})
		return
	}
	fmt.Fprintf(w, "%s, of them %d leased; %s; %s to %s\n", render.Count(r.Records, "record"), r.Leased, render.Count(r.Hosts, "host"), render.Count(r.Inlinks, "inlink"), render.Count(r.Targets, "page"))
	fmt.Fprintf(w, "%s: %s, %s, %s\n", render.Count(r.Segments, "segment"), render.Count(r.Parts, "part"), render.Count(r.SegmentBlocks, "block"), render.Count(r.SegmentRecords, "record"))
	fmt.Fprintf(w, "%s of the database: %s, %s", render.Count(r.Files, "file"), render.Count(r.Blocks, "block"), render.Size(r.Bytes))
	if r.Torn > 0 {
		fmt.Fprintf(w, "; a crash cut off %s", render.Count(r.Torn, "byte"))
	}
	fmt.Fprintln(w)
	switch {
	case r.Findings > 0:
		fmt.Fprintln(w, render.Count(r.Findings, "finding"))
	case r.Harmless > 0:
		fmt.Fprintf(w, "sound, except for %s left over\n", render.Count(r.Harmless, "thing"))
	default:
		fmt.Fprintln(w, "sound")
	}
}
