package schedule

import (
	"cmp"
	"slices"
	"time"

	"github.com/recrawl/recrawl/crawldb"
)

// Noisy says of a host that nearly every visit to its pages finds a change, however soon
// after the one before. Few pages really change like that: more likely the signature of
// the crawl sees what no reader does, such as dates, counters or tokens, and another one,
// such as signature.TextProfile, would see the real changes.
//
// Such visits say nothing about how often the pages change, or else that they change more often
// than visits could follow. In the latter case nearly all of them would hardly be visited any
// more, which would be wrong if the signature is to blame; so their visits go by importance
// alone: see Plan.Noise.
type Noisy struct {
	// Host is empty for all hosts not listed by name, taken together: none of them has enough
	// pages to tell by itself.
	Host string
	// Checked counts the pages in the sample that were visited again within a week, twice, or
	// were ever found unchanged, and Changed those of them that every visit within a week has
	// since found changed.
	Checked, Changed int
}

const (
	soon = 7 * day
	// noisePages is how many pages it takes to say so, and noiseShare how many of those that
	// were checked. Where a half of the pages change within a week, two visits find so for
	// a quarter of them.
	noisePages = 10
	noiseShare = 0.95
	// noiseEnds is the share of them below which a host is no longer noisy.
	noiseEnds = 0.85
	// quietPages is how many pages, most of them not noisy, it takes to say that a host is
	// not noisy.
	quietPages = 3
)

// Visits that are further apart than that, and always find a change, say nothing of it. So some
// pages to which that happens are visited twice more, each time a day later: checkPages of a crawl,
// or of a large one a page in checkSeldom. A crawl of fewer than checkLeast pages cannot spare so
// many, and fewer would tell nothing.
const (
	checkAfter  = day
	checkPages  = 32
	checkLeast  = 8 * checkPages
	checkSeldom = 64
)

// checks reports whether the next visit to a page is to tell that, after one at an interval. It is
// not where the budget is hardly more than the greatest interval takes: there is nothing to choose
// then, and each visit more makes another page late.
func (p *Plan) checks(url string, l learned, changed bool, perDay float64, interval, most time.Duration) bool {
	if p == nil || p.Pages < checkLeast || !changed || l.quick == 1 || l.quick > 2 || interval <= soon || p.noiseAt(url) > 0 {
		return false
	}
	if l.quick == 0 && perDay*days(interval) <= often || 2*p.Pages > p.Budget*days(most) {
		return false
	}
	every := uint64(min(p.Pages/checkPages, checkSeldom))
	return hash(url)>>24%every == 0
}

// checkedSoon notes what a visit says of that: quick is 0 if nothing, 1 if the page was
// found unchanged, and one more for each visit since that came soon and found a change.
func (l *learned) checkedSoon(after time.Duration, changed bool) {
	switch {
	case !changed:
		l.quick = 1
	case after <= soon:
		l.quick = min(max(l.quick, 1)+1, quickMost)
	}
}

// noisy finds such hosts in a sample, those with most pages first, and all others
// together last, but for those that are known to be quiet.
func (p *Plan) noisy(kept []page) (found []Noisy, quiet []string) {
	by := map[string]*Noisy{}
	for i := range kept {
		k := &kept[i]
		if !k.known || k.learned.quick == 0 || k.learned.quick == 2 {
			continue
		}
		n := by[k.s.Host]
		if n == nil {
			n = &Noisy{Host: k.s.Host}
			by[k.s.Host] = n
		}
		if n.Checked++; k.learned.quick > 2 {
			n.Changed++
		}
	}
	is := func(n *Noisy) bool {
		share := noiseShare
		if p != nil && p.Noise[n.Host] > 0 {
			share = noiseEnds
		}
		return n.Changed >= noisePages && float64(n.Changed) >= share*float64(n.Checked)
	}
	others := Noisy{}
	for _, n := range by {
		if is(n) {
			found = append(found, *n)
		} else if n.Checked >= quietPages && 2*n.Changed < n.Checked {
			quiet = append(quiet, n.Host)
		} else {
			others.Checked += n.Checked
			others.Changed += n.Changed
		}
	}
	slices.SortFunc(found, func(a, b Noisy) int { return cmp.Or(cmp.Compare(b.Changed, a.Changed), cmp.Compare(a.Host, b.Host)) })
	if !is(&others) {
		return found, nil
	}
	slices.Sort(quiet)
	return append(found, others), quiet
}

// noise sets Noise. For hosts that may not be asked so often it is set by what
// they allow.
func (p *Plan) noise(noisy []Noisy, quiet []string, kept []page, multiple float64, hosts func(string) float64) {
	if len(noisy) == 0 || !(p.Budget > 0) {
		return
	}
	p.Noise = map[string]float64{}
	for i, n := range noisy {
		if i < maxPriors || n.Host == "" {
			p.Noise[n.Host] = p.once()
		}
	}
	for _, host := range quiet[:min(len(quiet), maxPriors)] {
		p.Noise[host] = 0
	}
	if hosts == nil {
		return
	}
	pages := map[string]float64{}
	for i := range kept {
		pages[kept[i].s.Host] += multiple
	}
	for host := range p.Noise {
		n := pages[host]
		if n == 0 || p.Noise[host] == 0 {
			continue
		}
		if may := hosts(host); may > 0 {
			p.Noise[host] = max(min(p.Noise[host], may/n), leastOnce)
		}
	}
}

// Budgets may be any number. Beyond these bounds an interval is one of those that it has to be
// within anyway.
const (
	leastOnce = 1e-9
	mostOnce  = 1e9
)

// once is how many times a day pages change that do so once in a mean interval.
func (p *Plan) once() float64 { return max(leastOnce, min(p.Budget/p.Pages, mostOnce)) }

// noiseAt is noiseOf for a page.
func (p *Plan) noiseAt(url string) float64 {
	if p == nil || len(p.Noise) == 0 {
		return 0
	}
	return p.noiseOf(crawldb.Host(url))
}

// noiseOf is how often the pages of a host are taken to change if it is noisy, otherwise
// zero.
func (p *Plan) noiseOf(host string) float64 {
	if n, ok := p.Noise[host]; ok {
		return n
	}
	return p.Noise[""]
}

// Noisy returns what the plan says of the host of a URL, or else of all hosts it does not name;
// nil if it says nothing, or has no Outlook.
func (p *Plan) Noisy(url string) *Noisy {
	if p == nil || p.Outlook == nil {
		return nil
	}
	host := crawldb.Host(url)
	own, known := p.Noise[host]
	for _, n := range p.Outlook.Noisy {
		if n.Host == host || n.Host == "" && (own > 0 || !known) {
			return &n
		}
	}
	return nil
}
