package hoststat

import (
	"cmp"
	"hash/fnv"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
)

// A server may send any number of texts of any length: this many of a field are
// counted, in key order, this many of these are kept, the most frequent, and
// longer ones are ignored.
const (
	maxCounted = 1000
	maxKept    = 100
	maxText    = 256
)

// group is what is counted for one host.
type group struct {
	j       *job
	name    string
	reach   crawldb.Range
	last    site   // of the last record
	first   string // the first host of a domain
	st      hostdb.Host
	home    candidate
	numbers []numbers          // as Options.Numbers
	texts   []map[string]int64 // as Options.Texts
	counts  []func(*crawldb.Datum)
	finish  []func(*hostdb.Host)
}

func newGroup(j *job, name string) *group {
	g := &group{j: j, name: name, reach: j.reach(name), numbers: make([]numbers, len(j.o.Numbers)), texts: make([]map[string]int64, len(j.o.Texts))}
	for _, p := range j.o.Processors {
		count, finish := p(name)
		if count != nil {
			g.counts = append(g.counts, count)
		}
		if finish != nil {
			g.finish = append(g.finish, finish)
		}
	}
	return g
}

// count counts one record.
func (g *group) count(d *crawldb.Datum) {
	p := &g.st.Pages
	switch d.Status {
	case crawldb.Unfetched:
		p.Unfetched++
		if d.FetchTime.Before(g.j.now.Add(-g.j.o.OverdueAfter)) {
			g.st.Overdue++
		}
	case crawldb.Fetched:
		p.Fetched++
	case crawldb.Gone:
		p.Gone++
	case crawldb.RedirTemp:
		p.RedirTemp++
	case crawldb.RedirPerm:
		p.RedirPerm++
	case crawldb.NotModified:
		p.NotModified++
	case crawldb.Duplicate:
		p.Duplicate++
	case crawldb.Orphan:
		p.Orphan++
	case crawldb.ParseFailed:
		p.ParseFailed++
	}
	if d.Retries != 0 {
		g.st.ConnectionFailures++
	}
	if g.first == "" && g.j.o.By == hostdb.ByDomain {
		g.first = hostdb.ByHost.Key(d.URL)
	}
	if d.Status == crawldb.Fetched || d.Status == crawldb.NotModified {
		g.values(d)
	}
	if d.Status != crawldb.Unfetched {
		g.home.see(g.name, d)
	}
	for _, f := range g.counts {
		f(d)
	}
}

// values counts the metadata of a fetched page.
func (g *group) values(d *crawldb.Datum) {
	if d.Meta.Len() == 0 {
		return
	}
	for i, name := range g.j.o.Texts {
		v, ok := d.Meta.Get(name)
		if !ok || len(v) > maxText {
			continue
		}
		m := g.texts[i]
		if m == nil {
			m = map[string]int64{}
			g.texts[i] = m
		}
		if _, ok := m[v]; ok || len(m) < maxCounted {
			m[v]++
		}
	}
	for i, name := range g.j.o.Numbers {
		text, ok := d.Meta.Get(name)
		if !ok {
			continue
		}
		v, err := strconv.ParseFloat(text, 64)
		if err == nil && !math.IsNaN(v) && !math.IsInf(v, 0) {
			g.numbers[i].add(v, d.URL, g.j.o.Sample)
		}
	}
}

// statistics returns the counts as fields of a host.
func (g *group) statistics() hostdb.Host {
	h := g.st
	h.Name, h.Homepage, h.Score, h.Fields = g.name, g.home.url, max(g.j.o.Scores[g.name], 0), map[string]float64{}
	for i, name := range g.j.o.Texts {
		for _, v := range mostFrequent(g.texts[i]) {
			h.Fields[name+"."+v] = float64(g.texts[i][v])
		}
	}
	for i, name := range g.j.o.Numbers {
		n := &g.numbers[i]
		if n.n == 0 {
			continue
		}
		h.Fields["min."+name], h.Fields["max."+name], h.Fields["avg."+name] = n.min, n.max, n.mean()
		for k, v := range n.percentiles(g.j.o.Percentiles, g.j.o.Sample) {
			h.Fields["pct"+strconv.FormatFloat(g.j.o.Percentiles[k], 'f', -1, 64)+"."+name] = v
		}
	}
	for _, f := range g.finish {
		f(&h)
	}
	return h
}

func mostFrequent(m map[string]int64) []string {
	all := slices.SortedFunc(maps.Keys(m), func(a, b string) int { return cmp.Or(cmp.Compare(m[b], m[a]), cmp.Compare(a, b)) })
	return all[:min(len(all), maxKept)]
}

// numbers are the values of one field.
type numbers struct {
	n        int64
	min, max float64
	sum      float64
	sample   []sampled
}

type sampled struct {
	hash  uint64
	value float64
}

func (n *numbers) add(v float64, url string, bound int) {
	if n.n == 0 || v < n.min {
		n.min = v
	}
	if n.n == 0 || v > n.max {
		n.max = v
	}
	n.n++
	n.sum += v
	n.sample = append(n.sample, sampled{hash(url), v})
	if len(n.sample)-bound >= bound { // not twice bound, which may be the greatest number
		n.cut(bound)
	}
}

// mean returns the mean of the values, or the largest number if the sum overflows.
func (n *numbers) mean() float64 {
	return max(-math.MaxFloat64, min(n.sum/float64(n.n), math.MaxFloat64))
}

// cut keeps the values with the smallest hashes, whatever the order of arrival.
func (n *numbers) cut(bound int) {
	slices.SortFunc(n.sample, func(a, b sampled) int { return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.value, b.value)) })
	n.sample = n.sample[:min(len(n.sample), bound)]
}

// percentiles returns, of n values in ascending order, for each P the one at
// floor(P·n/100), counted from zero, or the last.
func (n *numbers) percentiles(ps []float64, bound int) []float64 {
	n.cut(bound)
	slices.SortFunc(n.sample, func(a, b sampled) int { return cmp.Compare(a.value, b.value) })
	out := make([]float64, len(ps))
	for i, p := range ps {
		at := int(p*float64(len(n.sample))/100 + 1e-9) // 70.6 is a little less than that
		out[i] = n.sample[min(at, len(n.sample)-1)].value
	}
	return out
}

// hash spreads URLs evenly, however similar they are.
func hash(url string) uint64 {
	f := fnv.New64a()
	f.Write([]byte(url))
	h := f.Sum64()
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9 // the finalizer of SplitMix64
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// candidate is the best start page so far. A page that was fetched is better
// than one that redirects, whose target is used, and that is better than any
// other; then the host itself is better than www before a domain, https than
// http, and what sorts first than the rest.
type candidate struct {
	url  string
	rank int
}

func (c *candidate) see(name string, d *crawldb.Datum) {
	scheme, rest, ok := strings.Cut(d.URL, "://")
	host, ok2 := strings.CutSuffix(rest, "/")
	if !ok || !ok2 || host != name && host != "www."+name {
		return // another host, or a port, path, query or user
	}
	rank, url := 0, d.URL
	switch d.Status {
	case crawldb.Fetched, crawldb.NotModified:
	case crawldb.RedirTemp, crawldb.RedirPerm:
		if url = redirect(d); url == "" {
			return
		}
		rank = 4
	default:
		rank = 8
	}
	if host != name {
		rank += 2
	}
	if scheme != "https" {
		rank++
	}
	if c.url == "" || rank < c.rank || rank == c.rank && url < c.url {
		c.url, c.rank = url, rank
	}
}

// redirect returns where a record redirects to, as update.Options.VisitMeta keeps
// it; empty if it did not.
func redirect(d *crawldb.Datum) string {
	status, _ := d.Meta.Get("_pst_") // moved(12), lastModified=0: https://example.org/
	_, target, _ := strings.Cut(status, ": ")
	if !strings.Contains(target, "://") {
		return ""
	}
	return target
}
