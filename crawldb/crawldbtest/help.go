package crawldbtest

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/recrawl/recrawl/crawldb"
)

// put writes the records as they are, in one update.
func (c *check) put(s crawldb.Store, data ...crawldb.Datum) {
	c.Must(c.update(s, "", "", data...), "Update")
}

// update writes the records and, unless its name is empty, a mark.
func (c *check) update(s crawldb.Store, mark, value string, data ...crawldb.Datum) error {
	data = slices.Clone(data)
	slices.SortFunc(data, func(a, b crawldb.Datum) int { return crawldb.Compare(a.URL, b.URL) })
	b := crawldb.Batch{Marks: crawldb.Mark(mark, value)}
	if mark == "" {
		b.Marks = nil
	}
	for _, d := range data {
		b.URLs = append(b.URLs, d.URL)
	}
	b.Next = func(i int, _ *crawldb.Datum) (*crawldb.Datum, error) {
		d := data[i]
		return &d, nil
	}
	return s.Update(c.Ctx, b)
}

// remove deletes records, which are in key order.
func (c *check) remove(s crawldb.Store, urls ...string) {
	c.Must(s.Update(c.Ctx, crawldb.Batch{
		URLs: urls,
		Next: func(int, *crawldb.Datum) (*crawldb.Datum, error) { return nil, nil },
	}), "Update that deletes")
}

func (c *check) get(s crawldb.Store, url string) crawldb.Datum {
	d, err := s.Get(c.Ctx, url)
	c.Must(err, "Get %s", short(url))
	return d
}

// missing demands that there is no record of the URL.
func (c *check) missing(s crawldb.Store, url string) {
	d, err := s.Get(c.Ctx, url)
	c.Is(err, crawldb.ErrNotFound, "Get %s", short(url))
	if err := same(d, crawldb.Datum{}); err != nil {
		c.Failf("Get %s returned a record with the error: %w", short(url), err)
	}
}

// scan returns the records of a range.
func (c *check) scan(s crawldb.Store, r crawldb.Range) []crawldb.Datum {
	var all []crawldb.Datum
	for d, err := range s.Scan(c.Ctx, r) {
		c.Must(err, "Scan %+q", r)
		all = append(all, d)
	}
	return all
}

// holds demands that a scan of the range and Get agree with the records, which
// are in key order.
func (c *check) holds(s crawldb.Store, r crawldb.Range, want []crawldb.Datum) {
	got := c.scan(s, r)
	for i := range min(len(got), len(want)) {
		if got[i].URL != want[i].URL {
			c.Failf("Scan %+q: record %d is %s, want %s", r, i, short(got[i].URL), short(want[i].URL))
		}
		if err := same(got[i], want[i]); err != nil {
			c.Failf("Scan %+q: %w", r, err)
		}
	}
	if len(got) != len(want) {
		c.Failf("Scan %+q yielded %d records, want %d", r, len(got), len(want))
	}
	for _, d := range want {
		if err := same(c.get(s, d.URL), d); err != nil {
			c.Failf("Get: %w", err)
		}
	}
}

// marked demands that a mark has a value.
func (c *check) marked(s crawldb.Store, name, want string) {
	got, err := s.Mark(c.Ctx, name)
	c.Must(err, "Mark %s", short(name))
	if got != want {
		c.Failf("Mark %s is %s, want %s", short(name), short(got), short(want))
	}
}

// ends demands that a sequence yields one error, the target, and nothing else.
func (c *check) ends(seq iter.Seq[error], target error, what string) {
	errs := slices.Collect(seq)
	if len(errs) != 1 {
		c.Failf("%s yielded %d times, want once, the error %q", what, len(errs), target)
	}
	c.Is(errs[0], target, "%s", what)
}

// plain returns a small record all of whose fields depend on n, so that a mix of two
// records shows.
func plain(url string, n int) crawldb.Datum {
	return crawldb.Datum{
		URL: url, Status: crawldb.Unfetched, Retries: n, Score: float32(n), Priority: float32(n),
		Signature: fmt.Append(nil, n), ETag: fmt.Sprint(n), Meta: crawldb.MetaOf("n", fmt.Sprint(n)),
	}
}

// numbered returns n URLs of a few hosts, in key order.
func numbered(n int) []string {
	urls := make([]string, n)
	for i := range urls {
		urls[i] = fmt.Sprintf("http://h%d.example.com/%d", i%7, i)
	}
	slices.SortFunc(urls, crawldb.Compare)
	return urls
}

// inOrder returns the records of a map in key order.
func inOrder(m map[string]crawldb.Datum) []crawldb.Datum {
	return slices.SortedFunc(maps.Values(m), func(a, b crawldb.Datum) int { return crawldb.Compare(a.URL, b.URL) })
}

var errStop = errors.New("crawldbtest: stop")
