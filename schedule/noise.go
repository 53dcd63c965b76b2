package schedule

import (
	"cmp"
	"slices"
	"time"

	"github.com/recrawl/recrawl/crawldb"
)

// Noisy says of a host that nearly each visit of its pages finds a change, however soon it
// comes after the one before. Pages of which people would say so are few: more likely the
// signature of the crawl sees what no reader does, such as dates, counters or tokens, and
// another one, such as signature.TextProfile, would tell what changes.
//
// It is a warning, and changes nothing: to the schedule such pages change very often, and
// those that no visit keeps fresh for long are visited seldom, which is right if it is true.
type Noisy struct {
	// Host is empty for all hosts together, none of which has enough pages to tell by itself.
	Host string
	// Checked counts the pages in the sample that were visited again within a week, twice, or
	// were found unchanged by any visit, and Changed those of them that each visit within a
	// week has found changed since.
	Checked, Changed int
}

const (
	soon = 7 * day
	// noisePages is how many pages it takes to say so, and noiseShare how many of those that
	// were checked. Where a half of the pages change within a week, two visits find so for
	// a quarter of them.
	noisePages = 10
	noiseShare = 0.95
)

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

// noisy finds such hosts in a sample.
func noisy(kept []page) (found []Noisy) {
	by := map[string]*Noisy{}
	all := &Noisy{}
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
		for _, n := range []*Noisy{n, all} {
			if n.Checked++; k.learned.quick > 2 {
				n.Changed++
			}
		}
	}
	is := func(n *Noisy) bool {
		return n.Changed >= noisePages && float64(n.Changed) >= noiseShare*float64(n.Checked)
	}
	for _, n := range by {
		if is(n) {
			found = append(found, *n)
		}
	}
	if len(found) == 0 && is(all) {
		return []Noisy{*all}
	}
	slices.SortFunc(found, func(a, b Noisy) int { return cmp.Or(cmp.Compare(b.Changed, a.Changed), cmp.Compare(a.Host, b.Host)) })
	return slices.Clip(found[:min(len(found), hostsKept)])
}

// Noisy returns what the plan says of the host of a URL, or of all hosts together; nil if
// that is nothing, or the plan has no Outlook.
func (p *Plan) Noisy(url string) *Noisy {
	if p == nil || p.Outlook == nil {
		return nil
	}
	host := crawldb.Host(url)
	for _, n := range p.Outlook.Noisy {
		if n.Host == host || n.Host == "" {
			return &n
		}
	}
	return nil
}
