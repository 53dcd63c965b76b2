package salvage

import (
	"context"
	"errors"
	"iter"
	"strings"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
)

// batchSize is how many records are written at a time, batchBytes how many bytes of
// links, about.
const (
	batchSize  = 5_000
	batchBytes = 16 << 20
)

var (
	errKey   = errors.New("it is under the key of another URL")
	errLayer = errors.New("it is in no layer")
)

// copyMarks copies the marks, except those of lost segments.
func (s *Salvage) copyMarks(ctx context.Context, in *sources) error {
	marks := map[string]string{}
	flush := func() error {
		if len(marks) == 0 {
			return nil
		}
		all := marks
		marks = map[string]string{}
		return s.target.Crawl.Update(ctx, crawldb.Batch{Marks: func() map[string]string { return all }})
	}
	err := in.run(ctx, codec.MarkTable, func(job string, value []byte) error {
		cursor := string(value)
		for _, prefix := range []string{"update/", "rank/", segment.RoundMark("")} {
			name, ok := strings.CutPrefix(job, prefix)
			if !ok {
				continue
			}
			name, _, _ = strings.Cut(name, "/")
			kept := s.keptSegments[name]
			if kept == nil {
				return nil
			}
			if r, err := segment.ParseRound(cursor); err == nil && job == segment.RoundMark(name) {
				r.Delivered = kept.before(r.Delivered)
				cursor = r.String()
				// The segment has had its update, even if that mark is lost.
				marks["update/"+name] = "done"
			}
		}
		marks[job] = cursor
		s.report.Marks++
		if len(marks) < batchSize {
			return nil
		}
		return flush()
	})
	if err != nil {
		return err
	}
	return flush()
}

// copyRecords copies the crawl db.
func (s *Salvage) copyRecords(ctx context.Context, in *sources) error {
	var urls []string
	var data []crawldb.Datum
	flush := func() error {
		if len(urls) == 0 {
			return nil
		}
		err := s.target.Crawl.Update(ctx, crawldb.Batch{URLs: urls, Next: func(i int, _ *crawldb.Datum) (*crawldb.Datum, error) { return &data[i], nil }})
		urls, data = urls[:0], data[:0]
		return err
	}
	// Leases lie beside the records, in the same order.
	type lease struct {
		key   string
		value []byte
	}
	var failed error
	next, stop := iter.Pull(func(yield func(lease) bool) {
		failed = in.beside().run(ctx, codec.LeaseTable, func(key string, value []byte) error {
			if !yield(lease{key, value}) {
				return errEnough
			}
			return nil
		})
	})
	defer stop()
	l, some := next()
	err := in.run(ctx, codec.CrawlTable, func(key string, value []byte) error {
		d := crawldb.Datum{URL: crawldb.URLOf(key)}
		err := d.UnmarshalBinary(value)
		if err == nil && crawldb.Key(d.URL) != key {
			err = errKey
		}
		for some && l.key < key {
			l, some = next()
		}
		if err == nil && some && l.key == key {
			err = codec.DecodeLease(&d, l.value)
		}
		if err != nil {
			s.Lost(Loss{What: "crawl db", URL: d.URL, Offset: -1, Block: -1, Err: err})
			return nil
		}
		if d.LeasedBy != "" && !s.keptSegments[d.LeasedBy].lists(d.URL) {
			d.LeasedBy, d.LeasedUntil = "", crawldb.Datum{}.LeasedUntil
			s.report.Leases++
		}
		urls, data = append(urls, d.URL), append(data, d)
		s.report.Records++
		if len(urls) < batchSize {
			return nil
		}
		return flush()
	})
	if err == nil && !some {
		err = failed
	}
	if err != nil {
		return err
	}
	return flush()
}

// errEnough ends a run early.
var errEnough = errors.New("enough")

// copyHosts copies the host db. A host that has lost its robots.txt files or statistics
// is kept without them.
func (s *Salvage) copyHosts(ctx context.Context, in *sources) error {
	err := in.run(ctx, codec.HostTable, func(name string, value []byte) error {
		h, _, err := hostdb.DecodeHost(name, value)
		if err != nil {
			s.Lost(Loss{What: "host db", URL: name, Offset: -1, Block: -1, Err: err})
			return nil
		}
		s.report.Hosts++
		return s.target.Hosts.Update(ctx, name, func(*hostdb.Host) (*hostdb.Host, error) { return &h, nil })
	})
	if err != nil {
		return err
	}
	return in.run(ctx, codec.HostDetailTable, func(name string, value []byte) error {
		return s.target.Hosts.Update(ctx, name, func(old *hostdb.Host) (*hostdb.Host, error) {
			if old == nil {
				return nil, nil
			}
			h := *old
			if err := hostdb.DecodeDetail(&h, value); err != nil {
				s.Lost(Loss{What: "host db", URL: name, Offset: -1, Block: -1, Err: err})
				return old, nil
			}
			return &h, nil
		})
	})
}
