// Package dedup marks pages that have the same content as a page with a better
// claim: of the records that share a signature one stays db_fetched or
// db_notmodified, and the others become db_duplicate. They are fetched as
// before, and left out of an index.
//
// [Options].Order says whose claim is better. What it leaves open the key of the
// URL decides, so that of a group exactly one page stays, whatever the order in
// which pages came. A duplicate whose original has changed, is gone or has lost
// its claim gets back.
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
	// Group bounds what is a duplicate of what: by default any page of the crawl
	// db, otherwise only pages of the same host or domain. Pages without a host
	// are compared with each other then. (Nutch: deduplication.group.mode.)
	Group Group
	// Order is what decides who stays, the first that tells two pages apart. Nil
	// means DefaultOrder. The time of the fetch favours the page that was visited
	// last, which is another one after each visit; put URLLength before it, or
	// leave it out, and what stays will stay. (Nutch:
	// deduplication.compare.order.)
	Order []Criterion
	// NutchCompat marks as Nutch does: pages are compared in the order of their
	// keys, each with the one that stays so far; FetchTime is when a page is due
	// again; two pages that Order does not tell apart both stay; and what is
	// db_duplicate already is no part of it, until its next visit. (In Nutch the
	// order of the comparisons is left to chance.)
	NutchCompat bool
	// SortMemory bounds the bytes of records held in memory; zero means 64 MiB.
	SortMemory int
	// TempDir is where records go that do not fit; empty means os.TempDir. Nothing
	// is left there; on Linux not even if the process is killed.
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
	return 0, fmt.Errorf("dedup: group %q is not one of none, host and domain", s)
}

// Report counts what was found and done.
type Report struct {
	// Candidates counts the pages that were compared, Groups the signatures that
	// several of them have.
	Candidates, Groups int
	// Duplicates counts the pages that became db_duplicate, Restored those that
	// were and became db_fetched.
	Duplicates, Restored int
	// Resumed says that a run with NutchCompat that had died was continued.
	Resumed bool
}

// Job is the name of the progress mark of a run with NutchCompat that has not
// ended.
const Job = "dedup"

const chunk = 10_000

// Run compares all pages of the crawl db that were fetched and have a signature.
//
// It may be killed at any time and called again. By default what it decides does
// not depend on what is marked already, so that a run from the start brings a
// half to its end, and one that is repeated changes nothing. With NutchCompat it
// does, and the run that died is continued: by a progress mark in the same
// atomic step as the records. When Run returns without an error, all is durable.
//
// Records that change while it runs are left alone if they no longer are what
// was decided about.
func Run(ctx context.Context, crawl crawldb.Store, o Options) (Report, error) {
	if o.Order == nil {
		o.Order = DefaultOrder()
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
		return fmt.Errorf("no group %d", o.Group)
	}
	for i, c := range o.Order {
		if c < Score || c > URLLength {
			return fmt.Errorf("no criterion %d", c)
		}
		if slices.Contains(o.Order[:i], c) {
			return fmt.Errorf("order: %v twice", c)
		}
	}
	if o.NutchCompat {
		for _, c := range DefaultOrder() {
			if !slices.Contains(o.Order, c) {
				return fmt.Errorf("order: Nutch wants %v, too", c)
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
	return d.Signature != nil && !d.Sitemap()
}

var errSorted = errors.New("sorted data is damaged")
