package verify

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"iter"
	"slices"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/linkdb"
)

var (
	errOrder    = errors.New("it comes after a greater key")
	errStatus   = errors.New("unknown status")
	errHalf     = errors.New("its lease names no segment, or has no end")
	errInlinks  = errors.New("its inlinks are not distinct, or not in order")
	errNoLinks  = errors.New("it has no inlinks")
	errHost     = errors.New("its times or robots.txt files are not in order")
	errUnlisted = errors.New("it is leased by a segment that does not exist")
	errOffList  = errors.New("it is leased by a segment that does not list it, and not due before that ends")
	errFolded   = errors.New("it is leased by a segment that was folded in, and not due before that ends")
)

// scanPastDamage yields the values of scan. After damage it resumes at the key that the
// error gives, if it gives one.
func scanPastDamage[T any](ctx context.Context, c *Check, scan func(crawldb.Range) iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var r crawldb.Range
		for {
			var failed error
			for v, err := range scan(r) {
				if failed = err; err != nil {
					break
				}
				if !yield(v, nil) {
					return
				}
			}
			if failed == nil {
				return
			}
			if stopped(ctx, failed) {
				var zero T
				yield(zero, failed)
				return
			}
			c.Damage(failed)
			next := resumeKey(failed)
			if next <= r.From {
				return
			}
			r.From = next
		}
	}
}

// resumeKey returns a key after the damage; "" if the error gives none.
func resumeKey(err error) string {
	var damage *crawldb.CorruptError
	if !errors.As(err, &damage) {
		return ""
	}
	if damage.ResumeKey == "" && damage.URL != "" {
		return crawldb.Key(damage.URL) + "\x00"
	}
	return damage.ResumeKey
}

// records checks the crawl db.
func (c *Check) records(ctx context.Context, s Stores, segments map[string]bool) error {
	last := ""
	for d, err := range scanPastDamage(ctx, c, func(r crawldb.Range) iter.Seq2[crawldb.Datum, error] { return s.Crawl.Scan(ctx, r) }) {
		if err == nil {
			err = c.Step(ctx)
		}
		if err != nil {
			return err
		}
		c.Report.Records++
		wrong := func(err error) {
			c.Add(Finding{Offset: -1, Block: -1, URL: d.URL, Err: err})
		}
		key := crawldb.Key(d.URL)
		if last != "" && key <= last {
			wrong(errOrder)
		}
		last = key
		if d.Status < crawldb.Unfetched || d.Status > crawldb.ParseFailed {
			wrong(fmt.Errorf("%w: %d", errStatus, d.Status))
		}
		if d.LeasedUntil.IsZero() != (d.LeasedBy == "") {
			wrong(errHalf)
		}
		if d.LeasedBy == "" {
			continue
		}
		c.Report.Leased++
		lease := func(harmless bool, err error) {
			c.Add(Finding{Offset: -1, Block: -1, URL: d.URL, Segment: d.LeasedBy, Harmless: harmless, Err: err})
		}
		// An expired lease does no harm. A sweep may have given a page another URL since it was
		// leased, with NutchCompat.
		held := d.Leased(c.now)
		listed, known := c.listed[d.LeasedBy]
		switch {
		case segments != nil && !segments[d.LeasedBy]:
			lease(!held, errUnlisted)
		case held && c.folded[d.LeasedBy]:
			lease(true, errFolded)
		case held && known:
			if _, ok := slices.BinarySearch(listed, maphash.String(c.seed, d.URL)); !ok {
				lease(true, errOffList)
			}
		}
	}
	return nil
}

// links checks the link db.
func (c *Check) links(ctx context.Context, s linkdb.Store) error {
	last := ""
	for e, err := range scanPastDamage(ctx, c, func(r crawldb.Range) iter.Seq2[linkdb.Entry, error] { return s.Scan(ctx, r) }) {
		if err == nil {
			err = c.Step(ctx)
		}
		if err != nil {
			return err
		}
		c.Report.Targets++
		c.Report.Inlinks += int64(len(e.Inlinks))
		wrong := func(err error) {
			c.Add(Finding{Offset: -1, Block: -1, URL: e.URL, Err: fmt.Errorf("link db: %w", err)})
		}
		key := crawldb.Key(e.URL)
		if last != "" && key <= last {
			wrong(errOrder)
		}
		last = key
		if len(e.Inlinks) == 0 {
			wrong(errNoLinks)
		}
		for i := 1; i < len(e.Inlinks); i++ {
			if linkdb.CompareInlinks(e.Inlinks[i-1], e.Inlinks[i]) >= 0 {
				wrong(errInlinks)
				break
			}
		}
	}
	return nil
}

// hosts checks the host db.
func (c *Check) hosts(ctx context.Context, s hostdb.Store) error {
	last := ""
	for h, err := range s.Scan(ctx) {
		if err == nil {
			err = c.Step(ctx)
		}
		if err != nil {
			if stopped(ctx, err) {
				return err
			}
			c.Damage(err)
			return nil
		}
		wrong := func(err error) {
			c.Add(Finding{Offset: -1, Block: -1, Err: fmt.Errorf("host %q: %w", h.Name, err)})
		}
		if c.Report.Hosts > 0 && h.Name <= last {
			wrong(errOrder)
		}
		last = h.Name
		c.Report.Hosts++
		robots := func(a, b hostdb.Robots) int {
			switch {
			case a.Origin < b.Origin:
				return -1
			case a.Origin > b.Origin:
				return 1
			}
			return 0
		}
		if !slices.IsSortedFunc(h.Grants, time.Time.Compare) || !slices.IsSortedFunc(h.Robots, robots) {
			wrong(errHost)
		}
	}
	return nil
}
