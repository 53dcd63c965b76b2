package generate_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/generate"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/internal/frontier"
	"github.com/recrawl/recrawl/stores/memstore"
	"github.com/recrawl/recrawl/urlfilter"
)

// strict is a store with an index that shows nothing of a host that was once not
// wanted, and counts what it shows.
type strict struct {
	crawldb.Store
	shown *int
}

func (s strict) Due(ctx context.Context, q crawldb.DueQuery) iter.Seq2[crawldb.Candidate, error] {
	return func(yield func(crawldb.Candidate, error) bool) {
		want, unwanted := q.WantHost, map[string]bool{}
		q.WantHost = nil
		for c, err := range crawldb.DueByScan(ctx, s.Store, q, nil) {
			host := crawldb.Host(c.URL)
			if unwanted[host] = unwanted[host] || want != nil && !want(host); unwanted[host] {
				continue
			}
			*s.shown++
			if !yield(c, err) {
				return
			}
		}
	}
}

// oddly rejects URLs whose last digit is odd.
type oddly struct{}

func (oddly) Accept(url string) bool { return strings.IndexByte("13579", url[len(url)-1]) < 0 }

// narrow refuses URLs whose last digit is odd, and keeps hosts.
type narrow struct{}

func (narrow) KeepsHost(urlfilter.Scope, string) bool { return true }

func (narrow) Normalize(_ urlfilter.Scope, url string) (string, error) {
	if !(oddly{}).Accept(url) {
		return "", errors.New("odd")
	}
	return url, nil
}

// What an index does not show, since there is enough of its host, would not have been
// selected: with rules that reject some of it, with parts that take turns, and with
// what other segments of the same run have.
func TestEnoughOfAHost(t *testing.T) {
	all, shown := 0, [4]int{}
	for seed := range uint64(40) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var data []crawldb.Datum
		for i := range 600 {
			host := fmt.Sprintf("%c.site%d.org", 'a'+rnd.IntN(2), rnd.IntN(8))
			part := []string{"a", "b", "calendar/2026"}[rnd.IntN(3)]
			data = append(data, due(fmt.Sprintf("http://%s/%s/%d", host, part, i), float32(math.Pow(1.2, float64(-rnd.IntN(60))))))
		}
		o := generate.Options{TopN: 1 + rnd.IntN(150), MaxPerHost: 1 + rnd.IntN(4), Segments: 1 + rnd.IntN(2), By: hostdb.By(rnd.IntN(2))}
		switch seed % 4 {
		case 0:
			o.Rules = &urlfilter.Rules{Filters: []urlfilter.Filter{oddly{}}}
		case 1:
			o.Rules = urlfilter.Default()
		case 2: // and refuses some that are not asked about before they are counted
			o.Rules, o.NoFilter = &urlfilter.Rules{Normalizers: []urlfilter.Normalizer{urlfilter.Basic{}, narrow{}}}, true
		}
		divided := rnd.IntN(3)
		var got [2][][]string
		for i := range got {
			db := &memstore.DB{}
			for k := range divided {
				known(t, db, fmt.Sprintf("site%d.org", k), frontier.Account{})
			}
			put(t, db.Crawl(), data...)
			var crawl crawldb.Store = db.Crawl()
			if i == 1 {
				crawl = strict{crawl, &shown[seed%4]}
			}
			got[i] = lists(t, db.Segments(), run(t, crawl, db.Segments(), o))
		}
		if !slices.EqualFunc(got[0], got[1], slices.Equal) {
			t.Fatalf("seed %d, %+v:\n got %q\nwant %q", seed, o, got[1], got[0])
		}
		if seed%4 == 0 {
			all += len(data)
		}
	}
	for seed, n := range shown {
		if n*3 > all*2 {
			t.Errorf("seeds %d modulo 4: %d of %d candidates were looked at", seed, n, all)
		}
	}
}

// Of a level that is larger than what is held at a time the best of what is held go,
// and equal ones by key, without a wait for the last of them.
func TestManySeedsWithOnePriority(t *testing.T) {
	hints := func(yield func(crawldb.Candidate, error) bool) {
		for i := range 1000 {
			c := crawldb.Candidate{URL: fmt.Sprintf("http://a.example/%04d", i), Priority: 1}
			if i == 500 {
				c.Priority = 1.05
			}
			if !yield(c, nil) {
				return
			}
		}
		t.Error("all was asked for")
	}
	var got []string
	for c := range generate.Ordered(hints, 100) {
		if got = append(got, c.URL[len(c.URL)-4:]); len(got) == 403 {
			break
		}
	}
	if !slices.IsSorted(got[:400]) || got[399] != "0399" || got[400] != "0500" || got[401] != "0400" {
		t.Errorf("%q", got)
	}
}
