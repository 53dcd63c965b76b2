package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/recrawl/recrawl/crawldb"
)

// population is a web whose hosts are as unequal as those of the web: of at most
// 100,000 the largest has 8 % of the URLs and the ten largest a quarter (Zipf's
// law), and all have some. URLs are 50 to 120 bytes long; their numbers are in key
// order.
type population struct {
	n     int
	first []int // the number of the first URL of each host, and n behind the last
	now   time.Time
}

func newPopulation(n int, now time.Time) *population {
	count := max(1, min(100_000, n/10))
	sum := 0.0
	for i := range count {
		sum += 1 / float64(i+1)
	}
	sizes := make([]int, count)
	left := n
	for i := range sizes {
		sizes[i] = min(left-(count-1-i), max(1, int(float64(n)/sum/float64(i+1))))
		left -= sizes[i]
	}
	sizes[0] += left
	rand.New(rand.NewPCG(4, 4)).Shuffle(count, func(i, j int) { sizes[i], sizes[j] = sizes[j], sizes[i] })
	p := &population{n: n, now: now, first: make([]int, count+1)}
	for i, size := range sizes {
		p.first[i+1] = p.first[i] + size
	}
	return p
}

// url is URL number i.
func (p *population) url(i int) string { return p.place(i).url() }

// host is that of URL number i.
func (p *population) host(i int) int {
	host, found := slices.BinarySearch(p.first, i)
	if !found {
		host--
	}
	return host
}

func (p *population) place(i int) place {
	host := p.host(i)
	return place{int32(host), int32(i - p.first[host])}
}

// beyond is a page that the host of URL i has, and that is not in the population.
func (p *population) beyond(i, k int) place {
	host := p.host(i)
	return place{int32(host), int32(p.first[host+1] - p.first[host] + k)}
}

// A place is a page of a host. A million of them are no work for the garbage collector,
// as their URLs would be, with which each stage that is measured would be charged.
type place struct{ host, page int32 }

func (l place) url() string { return pageURL(int(l.host), int(l.page)) }

const words = "of-a-site-and-what-it-has-to-say-about-this-and-that"

func pageURL(host, page int) string {
	// Fibonacci hashing: a length that looks random and is the page's own.
	length := 5 + int(uint32(host*7919+page)*2654435769>>16)%(len(words)-5)
	return fmt.Sprintf("https://www.site%06d.example/section-%04d/%08d-%s.html", host, page/5000, page, words[:length])
}

// hostOf is the host of a URL that pageURL made.
func hostOf(url string) (host int, err error) {
	if _, err = fmt.Sscanf(url, "https://www.site%d.example/", &host); err != nil {
		err = fmt.Errorf("the host of %q: %w", url, err)
	}
	return host, err
}

// datum makes the record of a URL: a share of due has not been fetched and is due;
// the others have been, within the last 30 days, and have what a fetch leaves.
func (p *population) datum(r *rand.Rand, due float64) *crawldb.Datum {
	d := &crawldb.Datum{Status: crawldb.Unfetched, FetchTime: p.now.Add(-time.Duration(r.IntN(100)) * time.Hour), Interval: 30 * 24 * time.Hour}
	d.Score = float32(math.Exp(1.5 * r.NormFloat64()))
	d.Priority = d.Score
	if r.Float64() >= due {
		at := p.now.Add(-time.Duration(r.Int64N(int64(d.Interval))))
		d.Status, d.LastFetch, d.Modified = crawldb.Fetched, at, at.Add(-24*time.Hour)
		d.FetchTime = at.Add(d.Interval)
		d.Signature = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, r.Uint64()), r.Uint64())
		d.ETag = fmt.Sprintf("%q", fmt.Sprintf("%016x", r.Uint64()))
		d.LastModified = at.Add(-24 * time.Hour).Format(time.RFC1123)
	}
	return d
}

// linker makes the links of pages: of each hundred 55 to targets of their own, two
// thirds of them on the host of the page and the others anywhere, where large hosts
// have more, and 45 to what others have linked to before. Of the targets of their
// own 15 % are not in the population.
type linker struct {
	p      *population
	r      *rand.Rand
	before []place
	added  int
}

// link makes one of a page of a host.
func (l *linker) link(host int) string {
	if len(l.before) > 100 && l.r.Float64() < 0.45 {
		return l.before[l.r.IntN(len(l.before))].url()
	}
	to := l.r.IntN(l.p.n)
	if l.r.Float64() < 2./3 {
		to = l.p.first[host] + l.r.IntN(l.p.first[host+1]-l.p.first[host])
	}
	at := l.p.place(to)
	if l.r.Float64() < 0.15 {
		l.added++
		at = l.p.beyond(to, l.added)
	}
	if len(l.before) < 1<<20 {
		l.before = append(l.before, at)
	} else {
		l.before[l.r.IntN(len(l.before))] = at
	}
	return at.url()
}
