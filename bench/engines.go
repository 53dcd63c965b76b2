package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"iter"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/generate"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/stores/pebblestore"
	"github.com/recrawl/recrawl/stores/pgstore"
)

// engines measures the crawl db of pgstore beside that of pebblestore: the times are those of
// the clock, since another process does half of the work.
func engines(ctx context.Context, args []string) error {
	f := flag.NewFlagSet("bench engines", flag.ContinueOnError)
	dsn := f.String("postgres", "", "`DSN` of a database, in which the crawl bench_engines is made anew")
	n := f.Int("urls", 1_000_000, "records")
	k := f.Int("list", 100_000, "pages of a round")
	rounds := f.Int("rounds", 20, "rounds of leases and visits before the size is taken again")
	if err := f.Parse(args); err != nil {
		return err
	}
	if *dsn == "" {
		return errors.New("-postgres DSN is required")
	}
	var all [2]engineTimes
	for i, open := range []func() (engine, error){
		openPebble,
		func() (engine, error) { return openPostgres(ctx, *dsn) },
	} {
		e, err := open()
		if err != nil {
			return err
		}
		all[i], err = measureEngine(ctx, e, *n, *k, *rounds)
		if e := e.close(); err == nil {
			err = e
		}
		if err != nil {
			return err
		}
	}
	fmt.Printf("%-44s %12s %12s %8s\n", "", "pebblestore", "pgstore", "ratio")
	for i, row := range all[0] {
		other := all[1][i].value
		fmt.Printf("%-44s %12.4g %12.4g %8.2f\n", row.name, row.value, other, other/row.value)
	}
	return nil
}

// engine is a store to measure.
type engine struct {
	crawl    crawldb.Store
	segments segment.Store
	size     func() (int64, error) // of the crawl db, in bytes
	rest     func() error          // does what the engine does in the minutes between two rounds
	// log returns how many bytes were written to the log and how many transactions had a number,
	// nil if there are no such figures.
	log   func() (bytes, transactions int64, err error)
	close func() error
}

func openPebble() (engine, error) {
	parent, err := os.MkdirTemp("", "engines")
	if err != nil {
		return engine{}, err
	}
	dir := filepath.Join(parent, "crawl")
	db, err := pebblestore.Open(dir, pebblestore.Options{})
	if err != nil {
		return engine{}, err
	}
	return engine{db.Crawl(), db.Segments(), func() (n int64, err error) {
		err = filepath.WalkDir(filepath.Join(dir, "db"), func(_ string, e fs.DirEntry, err error) error {
			if err == nil && !e.IsDir() {
				if info, err := e.Info(); err == nil {
					n += info.Size()
				}
			}
			return nil
		})
		return n, err
	}, func() error { return nil }, nil, func() error { return errors.Join(db.Close(), os.RemoveAll(parent)) }}, nil
}

func openPostgres(ctx context.Context, dsn string) (engine, error) {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return engine{}, err
	}
	if _, err := conn.Exec(ctx, `DROP SCHEMA IF EXISTS bench_engines CASCADE`); err != nil {
		return engine{}, err
	}
	config := conn.Config().ConnString()
	if u := config; len(u) > 11 && u[:8] == "postgres" {
		config += "?crawl=bench_engines"
	} else {
		config += " crawl=bench_engines"
	}
	db, err := pgstore.Open(ctx, config, pgstore.Options{})
	if err != nil {
		return engine{}, err
	}
	return engine{db.Crawl(), db.Segments(), func() (n int64, err error) {
		err = conn.QueryRow(ctx, `SELECT pg_total_relation_size('bench_engines.page')`).Scan(&n)
		return n, err
	}, func() error {
		_, err := conn.Exec(ctx, `VACUUM bench_engines.page`)
		return err
	}, func() (bytes, transactions int64, err error) {
		err = conn.QueryRow(ctx, `SELECT (pg_current_wal_lsn() - '0/0')::bigint, pg_current_xact_id()::text::bigint`).Scan(&bytes, &transactions)
		return bytes, transactions, err
	}, func() error { return errors.Join(db.Close(), conn.Close(ctx)) }}, nil
}

type engineTimes []struct {
	name  string
	value float64
}

var engineNow = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)

// engineRecord is the i-th record: half of them are due.
func engineRecord(i int) *crawldb.Datum {
	r := rand.New(rand.NewPCG(uint64(i), 1))
	host := int(math.Pow(r.Float64(), 3) * 20_000)
	d := &crawldb.Datum{
		URL:    fmt.Sprintf("https://www.site%05d.example/section/%08d%.*s.html", host, i, 1+r.IntN(50), "-of-a-site-and-what-it-has-to-say-about-this-and-that"),
		Status: crawldb.Unfetched, Interval: 30 * 24 * time.Hour, FetchTime: engineNow.Add(-time.Duration(r.IntN(360_000_000)) * time.Millisecond),
	}
	d.Score = float32(math.Exp(1.5 * r.NormFloat64()))
	d.Priority = d.Score
	if i%2 == 0 {
		visited(d, engineNow.Add(-time.Duration(r.Int64N(2_500_000_000))*time.Millisecond), r)
	}
	return d
}

func visited(d *crawldb.Datum, at time.Time, r *rand.Rand) {
	d.Status, d.LastFetch, d.Modified, d.FetchTime = crawldb.Fetched, at, at, at.Add(30*24*time.Hour)
	d.LeasedUntil, d.LeasedBy = time.Time{}, ""
	d.Signature = fmt.Appendf(nil, "%016d", r.Uint64()%1e16)
	d.ETag = fmt.Sprintf("%q", fmt.Sprintf("%016x", r.Uint64()))
}

func measureEngine(ctx context.Context, e engine, n, k, rounds int) (times engineTimes, err error) {
	took := func(name string, n int, f func() error) {
		if err != nil {
			return
		}
		fmt.Fprintln(os.Stderr, name)
		began := time.Now()
		err = f()
		v := time.Since(began).Seconds()
		if n > 0 {
			v = float64(n) / v
		}
		times = append(times, struct {
			name  string
			value float64
		}{name, v})
	}
	size := func(name string) {
		if err == nil {
			var bytes int64
			bytes, err = e.size()
			times = append(times, struct {
				name  string
				value float64
			}{name, float64(bytes) / float64(n)})
		}
	}
	all := make([]*crawldb.Datum, n)
	for i := range all {
		all[i] = engineRecord(i)
	}
	slices.SortFunc(all, func(a, b *crawldb.Datum) int { return crawldb.Compare(a.URL, b.URL) })
	took("load, records/s", n, func() error { return crawldb.UpdateAll(ctx, e.crawl, batches(all)) })
	size("bytes a record, fresh")
	took("scan, records/s", n, func() error {
		for _, err := range e.crawl.Scan(ctx, crawldb.Range{}) {
			if err != nil {
				return err
			}
		}
		return nil
	})
	all = nil
	var report generate.Report
	o := generate.Options{TopN: k, Now: func() time.Time { return engineNow }}
	took("generate, leased, s", 0, func() (err error) {
		report, err = generate.Run(ctx, e.crawl, e.segments, o)
		return err
	})
	list := func() (urls []string, err error) {
		for _, name := range report.Segments {
			for d, err := range segment.Records[crawldb.Datum](ctx, e.segments, name) {
				if err != nil {
					return nil, err
				}
				urls = append(urls, d.URL)
			}
		}
		slices.SortFunc(urls, crawldb.Compare)
		return urls, nil
	}
	var urls []string
	if err == nil {
		urls, err = list()
	}
	visit := func(now time.Time) error {
		r := rand.New(rand.NewPCG(9, 9))
		for part := range slices.Chunk(urls, 10_000) {
			b := crawldb.Batch{URLs: part, Next: func(_ int, old *crawldb.Datum) (*crawldb.Datum, error) {
				d := *old
				visited(&d, now, r)
				return &d, nil
			}}
			if err := e.crawl.Update(ctx, b); err != nil {
				return err
			}
		}
		return nil
	}
	took("update of the visited pages, records/s", len(urls), func() error { return visit(engineNow) })
	var logged, numbered int64
	if err == nil && e.log != nil {
		logged, numbered, err = e.log()
	}
	// The rounds go on through time, so all pages are visited again and again.
	took(fmt.Sprintf("%d rounds, s", rounds), 0, func() error {
		for i := range rounds {
			now := engineNow.Add(time.Duration(i+1) * 3 * 24 * time.Hour)
			o.Now = func() time.Time { return now }
			if report, err = generate.Run(ctx, e.crawl, e.segments, o); err != nil {
				return err
			}
			if urls, err = list(); err != nil {
				return err
			}
			if err := visit(now); err != nil {
				return err
			}
			for _, name := range report.Segments {
				if err := e.segments.Remove(ctx, name); err != nil {
					return err
				}
			}
			if err := e.rest(); err != nil {
				return err
			}
		}
		return nil
	})
	for _, name := range []string{"bytes of log a page of the rounds", "transactions a round"} {
		row := struct {
			name  string
			value float64
		}{name: name, value: math.NaN()}
		if err == nil && e.log != nil {
			bytes, transactions, e := e.log()
			err = e
			if row.value = float64(bytes-logged) / float64(k*rounds); name == "transactions a round" {
				row.value = float64(transactions-numbered) / float64(rounds)
			}
		}
		times = append(times, row)
	}
	size(fmt.Sprintf("bytes a record after %d rounds", rounds))
	o.Now = func() time.Time { return engineNow.Add(90 * 24 * time.Hour) }
	took("generate after the rounds, leased, s", 0, func() (err error) {
		_, err = generate.Run(ctx, e.crawl, e.segments, o)
		return err
	})
	return times, err
}

// batches yields records in batches that add them.
func batches(all []*crawldb.Datum) iter.Seq2[crawldb.Batch, error] {
	return func(yield func(crawldb.Batch, error) bool) {
		for part := range slices.Chunk(all, 10_000) {
			b := crawldb.Batch{Next: func(i int, _ *crawldb.Datum) (*crawldb.Datum, error) { return part[i], nil }}
			for _, d := range part {
				b.URLs = append(b.URLs, d.URL)
			}
			if !yield(b, nil) {
				return
			}
		}
	}
}
