package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"time"
)

// db is the command that measures the crawl db.
func db(ctx context.Context, args []string) error {
	var (
		f    = flag.NewFlagSet("bench db", flag.ContinueOnError)
		j    = dbJob{}
		urls = f.String("urls", "1000000", "`SIZES` of the crawl db, with commas")
		into = f.String("write", "", "write what was measured into this `FILE`, as docs/benchmarks.md has it")
	)
	j.flags(f)
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return fmt.Errorf("%q: want no arguments", f.Args())
	}
	sizes, err := parseSizes("-urls", *urls, 1000, math.MaxInt)
	if err != nil {
		return err
	}
	if *into != "" { // an error now, and not after an hour
		if err := writeInto(*into, "db", nil); err != nil {
			return err
		}
	}
	return writeDB(ctx, j, sizes, *into)
}

func (j *dbJob) flags(f *flag.FlagSet) {
	f.StringVar(&j.Dir, "dir", "", "`DIR` for the stores, some hundred bytes a URL (default: that of temporary files)")
	f.IntVar(&j.Top, "top", 100_000, "URLs of a fetch list")
	f.IntVar(&j.Links, "links", 60, "links of a page")
	f.IntVar(&j.Rounds, "rounds", 5, "rounds at each size, of generate, update and invert")
	f.BoolVar(&j.Embedded, "embedded", false, "leave Go's collector as it is, where recrawl collects less")
	f.Int64Var(&j.Cache, "cache", 0, "`BYTES` of the store's cache (0: its default)")
}

// writeDB measures the crawl db and writes what it found into a file, or prints it if
// there is none. The file has what was measured so far
// whenever a size is done: a run takes hours.
func writeDB(ctx context.Context, j dbJob, sizes []int, into string) error {
	return runDB(ctx, j, sizes, func(all []dbResult, last bool) error {
		if into == "" && !last {
			return nil
		}
		var text bytes.Buffer
		if err := printDB(&text, all); err != nil {
			return err
		}
		if into == "" {
			_, err := os.Stdout.Write(text.Bytes())
			return err
		}
		return writeInto(into, "db", text.Bytes())
	})
}

// dbChild measures one size in a process of its own.
func dbChild(ctx context.Context, j dbJob) (r dbResult, err error) {
	j.Dir, err = os.MkdirTemp(j.Dir, "recrawl-bench-")
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(j.Dir)
	in, err := json.Marshal(j)
	if err != nil {
		return r, err
	}
	cmd, err := self(ctx, dbWorkerArg)
	if err != nil {
		return r, err
	}
	cmd.Stdin = strings.NewReader(string(in))
	out, err := cmd.Output()
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(out, &r)
}

// runDB measures all sizes, each once with all URLs due and once with one in a
// hundred, and shows all there is after each size.
func runDB(ctx context.Context, j dbJob, sizes []int, show func(all []dbResult, last bool) error) error {
	var all []dbResult
	for i := range sizes {
		j.URLs = sizes[i]
		for _, j.Due = range []float64{1, 0.01} {
			r, err := dbChild(ctx, j)
			if err != nil {
				return err
			}
			all = append(all, r)
		}
		if err := show(all, i == len(sizes)-1); err != nil {
			return err
		}
	}
	return nil
}

// mean adds up a cost of all rounds but the first, which pays for nothing that was
// there before it.
func (r *dbResult) mean(of func(*dbRound) cost) (sum cost) {
	for i := range r.Rounds {
		if i == 0 && len(r.Rounds) > 1 {
			continue
		}
		c := of(&r.Rounds[i])
		sum.N, sum.CPU, sum.Settled = sum.N+c.N, sum.CPU+c.CPU, sum.Settled+c.Settled
	}
	return sum
}

func (r *dbResult) generate() cost { return r.mean(func(d *dbRound) cost { return d.Generate }) }
func (r *dbResult) update() cost   { return r.mean(func(d *dbRound) cost { return d.Update }) }
func (r *dbResult) invert() cost   { return r.mean(func(d *dbRound) cost { return d.Invert }) }
func (r *dbResult) changed() cost {
	return r.mean(func(d *dbRound) cost { return cost{d.Changed, d.Update.CPU, d.Update.Settled} })
}

// applied is changed without what it takes to read and sort the segment.
func (r *dbResult) applied() cost {
	return r.mean(func(d *dbRound) cost { return cost{d.Changed, d.Update.CPU - d.Sort, d.Update.Settled - d.Sort} })
}

// printDB writes what was measured as Markdown.
func printDB(out io.Writer, all []dbResult) error {
	t := newTable(out)
	fmt.Fprint(out, "What a selected URL costs, in µs of CPU; below each limit for each host, compacted and after the rounds:\n\n")
	t.head("URLs", "of them due", "selected", "no limit", "1000", "100", "10", "1", "by a scan, 100", "became due, each", "selected, leased and durable", "with compaction")
	for i := range all {
		r := &all[i]
		cells := []any{r.URLs, percent(r.Due), r.Select[0].N}
		for _, l := range limits {
			cells = append(cells, fmt.Sprintf("%.2f, %.2f", r.Select[l].per(), r.SelectWorn[l].per()))
		}
		g := r.generate()
		t.row(append(cells, r.SelectByScan.per(), r.Moved.perSettled(), g.per(), g.perSettled())...)
	}
	if err := t.end(); err != nil {
		return err
	}
	fmt.Fprint(out, "\nWhat a round costs: links a second of CPU with sorting and all, records that were written, and what becomes of both when compaction is waited for:\n\n")
	t.head("URLs", "of them due", "pages", "links", "update, links/s", "with compaction", "records", "records/s", "with compaction", "sorting apart, records/s", "with compaction", "Get and Set, records/s", "invert, links/s", "with compaction", "peak RSS MB")
	for i := range all {
		r := &all[i]
		u, c, a, v := r.update(), r.changed(), r.applied(), r.invert()
		t.row(r.URLs, percent(r.Due), r.generate().N, u.N, u.rate(), u.rateSettled(), c.N, c.rate(), c.rateSettled(), a.rate(), a.rateSettled(), r.GetSet.rateSettled(), v.rate(), v.rateSettled(), float64(r.PeakRSS)/1e6)
	}
	if err := t.end(); err != nil {
		return err
	}
	fmt.Fprint(out, "\nWhat a URL takes:\n\n")
	t.head("URLs", "of them fetched", "inject, lines/s", "with compaction", "load by Update, URLs/s", "scan, records/s", "disk, B/URL", "with links, after the rounds", "open, ms", "after the rounds", "after kill -9")
	for i := range all {
		r := &all[i]
		injected, settled := any("-"), any("-")
		if r.Inject.N > 0 {
			injected, settled = r.Inject.rate(), r.Inject.rateSettled()
		}
		disk := func(n int64) float64 { return float64(n) / float64(r.URLs) }
		ms := func(d time.Duration) float64 { return d.Seconds() * 1e3 }
		t.row(r.URLs, percent(1-r.Due), injected, settled, r.Load.rateSettled(), r.Scan.rate(), disk(r.Disk), disk(r.DiskWorn), ms(r.Open), ms(r.OpenWorn), ms(r.OpenKilled))
	}
	return t.end()
}

func percent(f float64) string { return fmt.Sprintf("%.3g %%", 100*f) }
