// Package dedup marks duplicates: of the records that share a signature one, the
// original, stays db_fetched or db_notmodified, and the others become db_duplicate.
// They are still fetched, but left out of an index. Start with [Run].
//
// Options.Order says which page is the original. Ties are broken by the key of the
// URL, so exactly one page of a group stays, in any order of the pages. Pages that are
// similar but not equal are not its concern: that is for the signature. A duplicate is reinstated when its original has changed, is gone
// or comes after it in the order now.
package dedup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/recrawl/recrawl/crawldb"
)

// Options say which pages are compared, and how. The zero value has Nutch's
// defaults.
type Options struct {
	// Group limits which pages are compared: by default all pages of the crawl
	// db, otherwise only pages of the same host or domain. Pages without a host
	// are then compared with each other. (Nutch: deduplication.group.mode.)
	Group Group
	// Order decides which page stays: the first criterion that tells two pages
	// apart. Nil means score, fetchTime, urlLength, as in Nutch. FetchTime favours
	// the page visited last, which changes with each visit; for a stable choice put
	// URLLength before it, or leave it out. (Nutch: deduplication.compare.order.)
	Order []Criterion
	// NutchCompat marks as Nutch does: pages are compared in the order of their
	// keys, each with the one that stays so far; FetchTime is when a page is due
	// again; two pages that Order does not tell apart both stay; and pages that
	// are db_duplicate already are not compared until their next visit. (In
	// Nutch the order of the comparisons is left to chance.)
	NutchCompat bool
	// SortMemory limits the bytes of records held in memory; zero means 64 MiB.
	SortMemory int
	// TempDir is where records that do not fit are written; empty means
	// os.TempDir. No file is left there; on Linux not even if the process
	// is killed.
	TempDir string

	chunk int // changes in one Update
}

// Group says which pages may be duplicates of each other.
type Group uint8

const (
	ByNone   Group = iota // all
	ByHost                // those of one host
	ByDomain              // those of one registered domain
)

// String returns Nutch's word: "none", "host" or "domain".
func (g Group) String() string {
	switch g {
	case ByNone:
		return "none"
	case ByHost:
		return "host"
	case ByDomain:
		return "domain"
	}
	return fmt.Sprintf("unknown(%d)", uint8(g))
}

// ParseGroup is the inverse of [Group.String].
func ParseGroup(s string) (Group, error) {
	for _, g := range []Group{ByNone, ByHost, ByDomain} {
		if g.String() == s {
			return g, nil
		}
	}
	return 0, fmt.Errorf("dedup: unknown group %q; want none, host or domain", s)
}

// Report counts what was found and done.
type Report struct {
	// Candidates counts the pages that were compared, Groups the signatures that
	// several of them share.
	Candidates, Groups int
	// Duplicates counts the pages that became db_duplicate, Restored those that
	// ceased to be and became db_fetched.
	Duplicates, Restored int
	// Resumed says that this run resumed one with NutchCompat that had died.
	Resumed bool
}

// markName is the name of the progress mark of an unfinished run with NutchCompat.
const markName = "dedup"

const chunk = 10_000

// Run compares all pages of the crawl db that were fetched and have a signature.
//
// It may be killed at any time and called again. By default its decisions do not
// depend on what is already marked, so a new run completes one that was killed,
// and repeating it changes nothing. With NutchCompat they do, so a run that died
// is resumed, by a progress mark in the same atomic step as the records. When
// Run returns without an error, everything is durable.
//
// Records that change while it runs are left alone if the decision no longer
// applies to them.
func Run(ctx context.Context, crawl crawldb.Store, o Options) (Report, error) {
	if o.Order == nil {
		o.Order = nutchOrder()
	}
	o.chunk = cmp.Or(o.chunk, chunk)
	r := run{o: o, crawl: crawl}
	err := o.check()
	if err == nil {
		err = r.run(ctx)
	}
	if err != nil {
		err = fmt.Errorf("dedup: %w", err)
	}
	return r.report, err
}

func (o *Options) check() error {
	if o.Group > ByDomain {
		return fmt.Errorf("unknown group %d", o.Group)
	}
	for i, c := range o.Order {
		if !c.known() {
			return fmt.Errorf("unknown criterion %q", c)
		}
		if slices.Contains(o.Order[:i], c) {
			return fmt.Errorf("order: %v twice", c)
		}
	}
	if o.NutchCompat {
		for _, c := range nutchOrder() {
			if !slices.Contains(o.Order, c) {
				return fmt.Errorf("order: %v is missing, which Nutch requires", c)
			}
		}
	}
	return nil
}

// candidate reports whether a record takes part.
func (o *Options) candidate(d *crawldb.Datum) bool {
	switch d.Status {
	case crawldb.Fetched, crawldb.NotModified:
	case crawldb.Duplicate:
		if o.NutchCompat {
			return false
		}
	default:
		return false
	}
	return d.Signature != nil && !d.IsSitemap()
}

var errSorted = errors.New("sorted data is damaged")
