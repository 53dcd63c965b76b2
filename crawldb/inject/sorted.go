package inject

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/internal/prefixed"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/urlfilter"
)

// The seeds are sorted by the key of their URLs, and those of one URL by the order
// in which they came. What is sorted is:
//
//	key: crawldb.Key   value: number(8) metadata, each with its length
//
// The metadata were read once before, so they are known to be sound.

// add adds a seed to the sorter, or counts why it cannot be used.
func (j *job) add(s Seed) error {
	if j.o.NutchCompat && strings.TrimSpace(s.URL) == "" && s.err == nil {
		return nil
	}
	j.report.Seeds++
	url, err := j.usable(s)
	if err == nil {
		return j.sort(url, s.Meta)
	}
	if errors.Is(err, urlfilter.ErrRejected) {
		j.report.Filtered++
	} else {
		j.report.Invalid++
	}
	if len(j.report.Bad) < maxBad {
		j.report.Bad = append(j.report.Bad, BadSeed{s, err})
	}
	return nil
}

// usable returns the URL under which a seed is injected, or says why it is not.
func (j *job) usable(s Seed) (string, error) {
	if s.err != nil {
		return "", s.err
	}
	url := strings.TrimSpace(s.URL)
	if url == "" {
		return "", errNoURL
	}
	if !j.o.NutchCompat && strings.Contains(url, " nutch.") { // and a blank in a URL is escaped silently
		return "", fmt.Errorf("%w: it follows a blank; want a tab", errMeta)
	}
	if j.o.Rules != nil {
		u, err := j.o.Rules.Apply(urlfilter.Inject, url)
		if err != nil {
			return "", err
		}
		url = u
	}
	if len(s.Meta) > 0 {
		var e entry
		if err := j.read(&e, s.Meta); err != nil {
			return "", err
		}
	}
	return url, nil
}

func (j *job) sort(url string, meta []string) error {
	j.key = crawldb.AppendKey(j.key[:0], url)
	j.sorted = binary.BigEndian.AppendUint64(j.sorted[:0], uint64(j.report.Seeds))
	for _, m := range meta {
		j.sorted = prefixed.Append(j.sorted, m)
	}
	return j.sorter.Add(j.key, j.sorted)
}

// metaOf reads the metadata that sort wrote after the number.
func metaOf(sorted []byte) (meta []string) {
	for rest := string(sorted); rest != ""; {
		var m string
		m, rest, _ = prefixed.Cut(rest)
		meta = append(meta, m)
	}
	return meta
}

// entry is a seed as a record, and which of its values the seed itself set.
type entry struct {
	d                     crawldb.Datum
	meta                  crawldb.Meta
	scoreGiven, timeGiven bool
}

func (j *job) read(e *entry, meta []string) error {
	if j.o.NutchCompat {
		return e.nutchRead(meta)
	}
	return e.read(meta)
}

// entry makes the record of a usable seed.
func (j *job) entry(e *entry, url string, meta []string) error {
	*e = entry{d: crawldb.Datum{URL: url, Status: crawldb.Unfetched, Score: j.o.Score}}
	if len(meta) > 0 {
		if err := j.read(e, meta); err != nil {
			return err
		}
		e.d.Meta = e.meta
	}
	if !j.o.NutchCompat {
		e.d.Meta.Set(crawldb.SeedKey, "")
	}
	given := e.d.Interval
	e.d = j.o.Schedule.Init(e.d, j.now)
	if e.timeGiven && j.o.NutchCompat {
		e.d.Interval = given
	}
	j.o.Scoring.Injected(&e.d)
	e.d.Priority = schedule.Priority(j.o.Schedule, &e.d, j.o.Scoring.Priority(&e.d, e.d.Score))
	return nil
}

// chunk is how many URLs make a batch.
const chunk = 10_000

// batches yields the sorted seeds, and counts the results.
func (j *job) batches(ctx context.Context) iter.Seq2[crawldb.Batch, error] {
	return func(yield func(crawldb.Batch, error) bool) {
		c := seedsOfBatch{job: j}
		var keys crawldb.Keys
		var key, url []byte
		for p, err := range j.sorter.Sorted(ctx) {
			if err != nil {
				yield(crawldb.Batch{}, err)
				return
			}
			if len(c.urls) == 0 || string(key) != string(p.Key) {
				if len(c.urls) == chunk && !c.yield(yield) {
					return
				}
				key = append(key[:0], p.Key...)
				url = keys.AppendURL(url[:0], key)
				c.urls, c.first = append(c.urls, string(url)), append(c.first, len(c.ends))
			} else {
				j.report.Duplicate++
			}
			c.meta = append(c.meta, p.Value[8:]...)
			c.ends = append(c.ends, len(c.meta))
		}
		if len(c.urls) > 0 {
			c.yield(yield)
		}
	}
}

// seedsOfBatch are the seeds of some URLs; those of the i-th are from first[i]
// to first[i+1].
type seedsOfBatch struct {
	*job
	urls    []string
	first   []int
	meta    []byte // of all seeds, as sort wrote it
	ends    []int  // where in meta that of each ends
	entries []entry
	outcome []outcome
}

type outcome struct{ isNew, purged bool }

// yield yields the batch and then begins another.
func (c *seedsOfBatch) yield(yield func(crawldb.Batch, error) bool) bool {
	c.first = append(c.first, len(c.ends))
	c.entries = slices.Grow(c.entries[:0], len(c.ends))[:len(c.ends)]
	c.outcome = slices.Grow(c.outcome[:0], len(c.urls))[:len(c.urls)]
	clear(c.outcome)
	if !yield(crawldb.Batch{URLs: c.urls, Next: c.next}, nil) {
		return false
	}
	for _, o := range c.outcome {
		switch {
		case o.isNew:
			c.report.New++
		case c.o.Overwrite || c.o.Update:
			c.report.Merged++
		default:
			c.report.Known++
		}
		if o.purged {
			c.report.Purged++
		}
	}
	c.urls, c.first, c.meta, c.ends = c.urls[:0], c.first[:0], c.meta[:0], c.ends[:0]
	return true
}

// next merges the seeds of a URL into its record, as if each were a run of its
// own. The records of seeds are created here, when they are needed.
func (c *seedsOfBatch) next(i int, old *crawldb.Datum) (*crawldb.Datum, error) {
	purged := old != nil && c.o.PurgeGone && old.Status == crawldb.Gone
	if purged {
		old = nil
	}
	c.outcome[i] = outcome{isNew: old == nil, purged: purged}
	from, to := c.first[i], c.first[i+1]
	if c.o.NutchCompat { // the last counts
		from = to - 1
	}
	d := old
	for k := from; k < to; k++ {
		if d != nil && !c.o.Overwrite && !c.o.Update {
			continue // nothing changes
		}
		begin := 0
		if k > 0 {
			begin = c.ends[k-1]
		}
		e := &c.entries[k]
		if err := c.entry(e, c.urls[i], metaOf(c.meta[begin:c.ends[k]])); err != nil {
			return nil, err
		}
		d = c.merge(d, e)
	}
	return d, nil
}
