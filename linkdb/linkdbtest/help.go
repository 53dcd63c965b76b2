package linkdbtest

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/linkdb"
)

// model is what a store must hold: inlinks by URL.
type model map[string][]linkdb.Inlink

// merge does what Merge must do, in the simplest way.
func (m model) merge(entries []linkdb.Entry, limit int) {
	for _, e := range entries {
		set := map[linkdb.Inlink]bool{}
		for _, l := range slices.Concat(m[e.URL], e.Inlinks) {
			set[l] = true
		}
		all := slices.SortedFunc(maps.Keys(set), linkdb.CompareInlinks)
		if limit > 0 {
			all = all[:min(limit, len(all))]
		}
		if len(all) > 0 {
			m[e.URL] = all
		}
	}
}

// entries returns the entries of the model, in key order.
func (m model) entries() []linkdb.Entry {
	var all []linkdb.Entry
	for url, in := range m {
		all = append(all, linkdb.Entry{URL: url, Inlinks: slices.Clone(in)})
	}
	sortEntries(all)
	return all
}

func sortEntries(all []linkdb.Entry) {
	slices.SortFunc(all, func(a, b linkdb.Entry) int { return crawldb.Compare(a.URL, b.URL) })
}

// merge merges entries, in any order, into the store and the model.
func (c *check) merge(s linkdb.Store, m model, limit int, entries ...linkdb.Entry) {
	given := clone(entries)
	sortEntries(given)
	c.Must(s.Merge(c.Ctx, given, limit), "Merge")
	m.merge(entries, limit)
}

func clone(entries []linkdb.Entry) []linkdb.Entry {
	all := slices.Clone(entries)
	for i := range all {
		all[i].Inlinks = slices.Clone(all[i].Inlinks)
	}
	return all
}

func (c *check) get(s linkdb.Store, url string) []linkdb.Inlink {
	in, err := s.Get(c.Ctx, url)
	c.Must(err, "Get %s", short(url))
	return in
}

func (c *check) scan(s linkdb.Store, r crawldb.Range) []linkdb.Entry {
	var all []linkdb.Entry
	for e, err := range s.Scan(c.Ctx, r) {
		c.Must(err, "Scan %+q", r)
		all = append(all, e)
	}
	return all
}

// holds demands that a scan and Get agree with the model.
func (c *check) holds(s linkdb.Store, m model) {
	c.scans(s, crawldb.Range{}, m)
	for url, in := range m {
		if err := same(url, c.get(s, url), in); err != nil {
			c.Failf("Get: %w", err)
		}
	}
}

// scans demands that a scan of a range agrees with the model.
func (c *check) scans(s linkdb.Store, r crawldb.Range, m model) {
	want := slices.DeleteFunc(m.entries(), func(e linkdb.Entry) bool { return !r.Contains(crawldb.Key(e.URL)) })
	got := c.scan(s, r)
	for i := range min(len(got), len(want)) {
		if got[i].URL != want[i].URL {
			c.Failf("Scan %+q: page %d is %s, want %s", r, i, short(got[i].URL), short(want[i].URL))
		}
		if err := same(got[i].URL, got[i].Inlinks, want[i].Inlinks); err != nil {
			c.Failf("Scan %+q: %w", r, err)
		}
	}
	if len(got) != len(want) {
		c.Failf("Scan %+q yielded %d pages, want %d", r, len(got), len(want))
	}
}

func same(url string, got, want []linkdb.Inlink) error {
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			return fmt.Errorf("%s: inlink %d is %s, want %s", short(url), i, short(fmt.Sprintf("%+v", got[i])), short(fmt.Sprintf("%+v", want[i])))
		}
	}
	if len(got) != len(want) {
		return fmt.Errorf("%s has %d inlinks, want %d", short(url), len(got), len(want))
	}
	return nil
}

// ends demands that a sequence yields one error, the target, and nothing else.
func (c *check) ends(seq iter.Seq2[linkdb.Entry, error], target error, what string) {
	var errs []error
	for _, err := range seq {
		errs = append(errs, err)
	}
	if len(errs) != 1 {
		c.Failf("%s yielded %d times, want once, the error %q", what, len(errs), target)
	}
	c.Is(errs[0], target, "%s", what)
}

// page returns an entry with one link.
func page(url, from, anchor string) linkdb.Entry {
	return linkdb.Entry{URL: url, Inlinks: []linkdb.Inlink{{From: from, Anchor: anchor}}}
}

func link(from, anchor string) linkdb.Inlink {
	return linkdb.Inlink{From: "http://" + from, Anchor: anchor}
}

func pages(n int) []linkdb.Entry {
	var all []linkdb.Entry
	for i := range n {
		all = append(all, page(fmt.Sprintf("http://h%d.example.com/%04d", i%7, i), "http://example.org/", fmt.Sprint(i)))
	}
	sortEntries(all)
	return all
}

// hostileStrings returns distinct URLs and anchors that are easily confused or hard to
// store.
func hostileStrings() []string {
	all := []string{
		"", " ", "\x00", "\x00\x00", "\x01", "\xff", "\xff\xff", "!", "!!", ")", ",", "a\x00", "a\x00b", "a", "ab",
		"http://example.com", "http://example.com/", "https://example.com/", "http://example.com:80/", "http://www.example.com/", "http://example.com/a", "http://example.com/a\x00",
		"http://example.com/a\x00b", "http://example.com/a\xff", "http://example.com/\xff\xfe\xc0\x80", "http://example.com/\xed\xa0\x80", "http://example.com/é", "http://example.com/e\u0301",
		"http://example.com/\ufffd", "http://example.com/\u2028", "HTTP://EXAMPLE.COM/", "http://user:secret@example.com/", "http://192.0.2.1/", "http://[2001:db8::1]:8080/",
		"com,example)http:/", "not a url", "'; DROP TABLE linkdb; --", `"\`, "%s%d", "a b\t\r\n", "<b>anchor</b>", "null", "http://example.com/" + strings.Repeat("a", 20_000),
	}
	slices.SortFunc(all, crawldb.Compare)
	return slices.Compact(all)
}

// short quotes a string, and cuts it if it is long.
func short(s string) string {
	if len(s) <= 120 {
		return fmt.Sprintf("%q", s)
	}
	return fmt.Sprintf("%q… (%d bytes)", s[:100], len(s))
}
