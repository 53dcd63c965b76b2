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
	// Checked counts the pages in the sample that were found unchanged at least once, or were
	// twice visited again within a week. Changed counts those of them that every visit within
	// a week has since found changed.
	Checked, Changed int
}

const (
	soon = 7 * day
	// A host is noisy if at least noisePages pages, and a share of noiseShare of those that
	// were checked, have changed each time. If half of the pages change within a week, two
	// visits find a quarter of them changed each time.
	noisePages = 10
	noiseShare = 0.95
	// noiseEnds is the share below which a host is no longer noisy.
	noiseEnds = 0.85
	// quietPages is the number of checked pages from which a host is known not to be noisy, if
	// most of them did not change each time.
	quietPages = 3
)

// Visits that are further apart than a week, and always find a change, do not tell noise from
// changes. So some of these pages are visited twice more, each time a day later: checkPages of a
// crawl, or one page in checkSeldom of a large one. A crawl of fewer than checkLeast pages cannot
// spare so many, and fewer would tell nothing.
const (
	checkAfter  = day
	checkPages  = 32
	checkLeast  = 8 * checkPages
	checkSeldom = 64
)

// checks reports whether the next visit to a page should be such a check, given the interval that
// it would have. It should not if the budget is hardly more than the greatest interval takes: then
// there is no choice, and each further visit makes another page late.
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

// checkedSoon records the result of a visit: quick is 0 if nothing is known, 1 if the page was
// found unchanged, and one more for each visit since that came soon and found a change.
func (l *learned) checkedSoon(after time.Duration, changed bool) {
	switch {
	case !changed:
		l.quick = 1
	case after <= soon:
		l.quick = min(max(l.quick, 1)+1, quickMost)
	}
}

// findNoisy returns the noisy hosts of a sample, those with most pages first, and if the others
// together are noisy, these last, and the hosts known to be quiet.
func (p *Plan) findNoisy(kept []page) (found []Noisy, quiet []string) {
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

// setNoise sets Noise. For hosts that allow fewer visits it follows from what they allow.
func (p *Plan) setNoise(noisy []Noisy, quiet []string, kept []page, multiple float64, hosts func(string) float64) {
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

// Budgets may be any number. Beyond these bounds, the bounds of intervals apply anyway.
const (
	leastOnce = 1e-9
	mostOnce  = 1e9
)

// once returns the rate of pages that change once in a mean interval, in changes a day.
func (p *Plan) once() float64 { return max(leastOnce, min(p.Budget/p.Pages, mostOnce)) }

// noiseAt is noiseOf for a page.
func (p *Plan) noiseAt(url string) float64 {
	if p == nil || len(p.Noise) == 0 {
		return 0
	}
	return p.noiseOf(crawldb.Host(url))
}

// noiseOf returns how often the pages of a host are taken to change if it is noisy;
// otherwise zero.
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
