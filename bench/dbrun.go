package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/recrawl/recrawl/stores/pebblestore"
	"github.com/recrawl/recrawl/stores/pebblestore/heaproom"
)

// dbJob is the task of a child process that measures the crawl db at one size.
type dbJob struct {
	Dir    string
	URLs   int
	Due    float64 // share of the URLs that are due
	Top    int     // URLs of a fetch list
	Links  int     // of a page
	Rounds int
	Cache  int64 // bytes; zero for the default of the store
	// Embedded leaves Go's collector as it is in a process that embeds recrawl; the
	// command keeps some room for garbage, see package heaproom.
	Embedded bool
}

// cost is what n of something took: CPU time of the whole process, background
// threads included, until there was an answer, and until the engine had nothing
// left to do.
type cost struct {
	N            int
	CPU, Settled time.Duration
}

// dbRound is one round of generate, update and invert.
type dbRound struct {
	Generate cost // URLs
	Update   cost // links
	Changed  int  // records that the update wrote
	// Sort is the part of Update before the first record: reading, sorting.
	Sort   time.Duration
	Invert cost // links
}

// dbResult is what was measured at one size.
type dbResult struct {
	dbJob
	Inject cost // lines of text into an empty store; only if all are due
	Load   cost // Update in key order, and whatever compaction it takes

	Disk, DiskWorn             int64         // bytes of the databases: compacted, and after the rounds
	Open, OpenWorn, OpenKilled time.Duration // wall time: compacted, after the rounds, after kill -9

	Scan               cost
	Moved              cost         // URLs that became due since the load, which the first selection moves
	Select, SelectWorn map[int]cost // URLs, by the limit for each host: compacted, and after the rounds
	SelectByScan       cost         // the same with limit 100 and without an index
	GetSet             cost         // URLs changed one by one
	Rounds             []dbRound
	PeakRSS            int64
}

// limits are those for each host; zero is none.
var limits = []int{0, 1000, 100, 10, 1}

// measureDB is the child: it makes a store and measures it.
func measureDB(ctx context.Context, in io.Reader, out io.Writer) error {
	r := dbResult{}
	if err := json.NewDecoder(in).Decode(&r.dbJob); err != nil {
		return err
	}
	if !r.Embedded {
		heaproom.Leave(heaproom.Default)
	}
	if err := r.measure(ctx); err != nil {
		return fmt.Errorf("%d URLs: %w", r.URLs, err)
	}
	return json.NewEncoder(out).Encode(r)
}

// say reports the progress on standard error.
func (r *dbResult) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%9d URLs, %v %% due: %s\n", r.URLs, 100*r.Due, fmt.Sprintf(format, args...))
}

func (r *dbResult) measure(ctx context.Context) (err error) {
	p := newPopulation(r.URLs, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	if r.Due == 1 {
		if r.Inject, err = r.inject(ctx, p); err != nil {
			return err
		}
		r.say("inject: %.2f µs a line", r.Inject.perSettled())
	}
	db, _, err := r.open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if r.Load, err = load(ctx, db, p, r.Due); err != nil {
		return err
	}
	r.say("load: %.2f µs a URL", r.Load.perSettled())
	if db, r.Open, err = r.reopen(ctx, db); err != nil {
		return err
	}
	if r.Disk, err = r.size(); err != nil {
		return err
	}
	r.say("%.1f bytes a URL, open in %v", float64(r.Disk)/float64(r.URLs), r.Open)
	if r.Scan, err = scan(ctx, db, r.URLs); err != nil {
		return err
	}
	if r.Moved, err = moved(ctx, db, p.now); err != nil {
		return err
	}
	r.Moved.N = int(float64(r.URLs) * r.Due)
	r.say("what became due: %.2f µs a URL", r.Moved.perSettled())
	if r.Select, err = r.selections(ctx, db, p.now); err != nil {
		return err
	}
	if r.SelectByScan, err = selection(byScan(ctx, db), p.now, r.Top, 100); err != nil {
		return err
	}
	r.say("scan: %.2f µs a URL; selection by it: %.2f", r.Scan.per(), r.SelectByScan.per())
	// Here, and not behind the rounds, or it would pay for what they have put off.
	if r.GetSet, err = getSet(ctx, db, p); err != nil {
		return err
	}
	// What it leaves in memory is written out now, or the first round would pay for that.
	rest, err := measured(ctx, func() (n int, err error) {
		db, _, err = r.reopen(ctx, db)
		return 0, err
	})
	if err != nil {
		return err
	}
	r.GetSet.Settled += rest.Settled
	r.say("Get and Set: %.1f µs a URL", r.GetSet.perSettled())
	l := &linker{p: p, r: rand.New(rand.NewPCG(7, 7))}
	for i := range r.dbJob.Rounds {
		d, err := r.round(ctx, db, p, l)
		if err != nil {
			return fmt.Errorf("round %d: %w", i+1, err)
		}
		r.Rounds = append(r.Rounds, d)
		r.say("round %d: generate %.1f µs a URL, update %.1f µs a link, invert %.1f", i+1, d.Generate.perSettled(), d.Update.perSettled(), d.Invert.perSettled())
		p.now = p.now.Add(7 * time.Hour)
	}
	if r.SelectWorn, err = r.selections(ctx, db, p.now); err != nil {
		return err
	}
	if db, r.OpenWorn, err = r.reopen(ctx, db); err != nil {
		return err
	}
	if r.DiskWorn, err = r.size(); err != nil {
		return err
	}
	if err := db.Close(); err != nil {
		return err
	}
	if err := r.kill(ctx); err != nil {
		return err
	}
	if db, r.OpenKilled, err = r.open(); err != nil {
		return err
	}
	r.say("open after the rounds in %v, after kill -9 in %v", r.OpenWorn, r.OpenKilled)
	r.PeakRSS = peakRSS()
	return nil
}

func (r *dbResult) dir() string { return filepath.Join(r.Dir, "store") }

// open returns how long it took, too.
func (j *dbJob) open() (*pebblestore.DB, time.Duration, error) {
	began := time.Now()
	db, err := pebblestore.Open(filepath.Join(j.Dir, "store"), pebblestore.Options{CacheSize: j.Cache})
	return db, time.Since(began), err
}

// reopen closes the store, opens it again and waits for what the engine then begins,
// which is no part of the opening and not of what is measured next.
func (r *dbResult) reopen(ctx context.Context, db *pebblestore.DB) (*pebblestore.DB, time.Duration, error) {
	if err := db.Close(); err != nil {
		return db, 0, err
	}
	again, took, err := r.open()
	if err != nil {
		return db, 0, err
	}
	_, err = measured(ctx, func() (int, error) { return 0, nil })
	return again, took, err
}

// size is what the databases take on disk, segments apart.
func (r *dbResult) size() (int64, error) {
	n, _, err := sizeOf(r.dir(), filepath.Join(r.dir(), "segments"))
	return n, err
}

// kill lets a child change records without end and kills it, while they are in the
// log and in memory only.
func (r *dbResult) kill(ctx context.Context) error {
	in, err := json.Marshal(r.dbJob)
	if err != nil {
		return err
	}
	cmd, err := self(ctx, victimArg)
	if err != nil {
		return err
	}
	cmd.Stdin = strings.NewReader(string(in))
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	line := make([]byte, 1)
	if _, err := io.ReadFull(out, line); err != nil {
		return errors.Join(fmt.Errorf("the child to be killed: %w", err), cmd.Wait())
	}
	if err := cmd.Process.Kill(); err != nil {
		return err
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) {
		return err
	}
	return nil
}

// victim is the child that is killed: it says so when it has changed 300,000
// records, and goes on.
func victim(ctx context.Context, in io.Reader, out io.Writer) error {
	var j dbJob
	if err := json.NewDecoder(in).Decode(&j); err != nil {
		return err
	}
	db, _, err := j.open()
	if err != nil {
		return err
	}
	p := newPopulation(j.URLs, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	for n := 0; ; n += 20_000 {
		if err := touch(ctx, db, p, uint64(n)); err != nil {
			return errors.Join(err, db.Close())
		}
		if n == 300_000 {
			if _, err := out.Write([]byte("x")); err != nil {
				return errors.Join(err, db.Close())
			}
		}
	}
}
