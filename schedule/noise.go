package schedule

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/recrawl/recrawl/crawldb"
)

// Noisy says of a host that visits to many of its pages find a change, however soon after the one
// before. Few pages really change like that: more likely the signature of
// the crawl sees what no reader does, such as dates, counters or tokens, and another one,
// such as signature.TextProfile, would see the real changes.
//
// Such visits say nothing about how often the pages change, or else that they change more often
// than visits could follow. In the latter case they would hardly be visited any
// more, which would be wrong if the signature is to blame. So a page is taken to change once in two mean
// intervals if it is noisy, or if [Plan].Doubt and it was never found unchanged.
type Noisy struct {
	// Host is empty for all hosts not listed by name, taken together: none of them has enough
	// pages to tell by itself.
	Host string
	// Checked counts the pages in the sample that were found unchanged, or were visited soon and
	// found changed until that was clearly no chance. Changed counts the latter.
	Checked, Changed int
}

const (
	// A host is noisy if at least noisePages of its pages, and a share of noiseShare of those about
	// which something is known, have changed each time.
	noisePages = 10
	noiseShare = 0.5
	// trusted and doubted are the states of learned.sights, and noisy is another: see there. A step is evidenceStep
	// of evidence: the logarithm of the chance with which a page without noise would have changed.
	trusted, doubted, noisy = 1, 8, quickMost
	evidenceStep            = 0.6
	// Pages that always change are doubted in a new crawl, until enoughProbes of those that probe have told, and then if
	// a share of mostNoise of them is noisy, and at least two.
	mostNoise, enoughProbes = 0.05, 5.
	// A visit that comes after less than the mean interval divided by sooner tells noise from changes. The time after
	// which a page about which visits tell nothing is visited again is a fourth of the mean interval, and for each
	// sightSteps of evidence a fourth of the time before.
	sooner                   = 3.
	sightShorter, sightSteps = 4., 2
)

// tells reports whether visits to a page tell how often it changes: they have found it unchanged, and have
// not since found a change each time, however soon they came. Otherwise the signature may see noise.
func (l *learned) tells() bool { return trusted <= l.sights && l.sights < doubted }

// believes reports whether what visits to a page have shown is how often it changes.
func (p *Plan) believes(l *learned) bool {
	return !l.noisy() && (p == nil || !p.Doubt || l.tells())
}

// setDoubt sets Doubt, by the pages that probe.
func (p *Plan) setDoubt(old *Plan, kept []page) {
	noisy, told := 0., 0.
	for i := range kept {
		switch k := &kept[i]; {
		case !k.known || !p.probes(k.url):
		case k.learned.noisy():
			noisy++
		case k.learned.tells():
			told++
		}
	}
	p.Doubt = old == nil || old.Doubt
	if noisy+told >= enoughProbes {
		p.Doubt = noisy > 1+mostNoise*(noisy+told)
	}
}

// sighted takes in what a visit says about noise, given how many changes were expected until it, and the mean
// interval of pages in days. A page that changes often has changed between visits that are far apart, too, so only
// visits that came much sooner tell.
func (l *learned) sighted(changed bool, after time.Duration, expected, every float64) {
	if !changed {
		l.sights = trusted
		return
	}
	if l.sights == 0 {
		l.sights = doubted
	}
	if days(after) > every/sooner {
		return
	}
	evidence := -math.Log(-math.Expm1(-max(expected, 1e-3)))
	l.sights = uint8(min(float64(l.sights)+math.Round(evidence/evidenceStep), noisy))
}

// noisy reports whether the signature of a page probably sees noise.
func (l *learned) noisy() bool { return l.sights == noisy }

// sight returns the interval for a page that may be noisy: it is visited sooner once in a while. The more such
// visits have found a change, the sooner the next and the fewer there are.
func (l *learned) sight(url string, v Visit, every float64, interval, least time.Duration) time.Duration {
	n := 0.
	if l.sights > doubted {
		n = float64((l.sights - doubted) / sightSteps)
	}
	if v.Change != Changed || chance(url, v) > math.Exp2(-n-1) {
		return interval
	}
	return seconds(every*math.Pow(sightShorter, -n-1)*day.Seconds(), least, interval)
}

// findNoisy returns the noisy hosts of a sample, those with most pages first, and if the others
// together are noisy, these last.
func findNoisy(kept []page) (found []Noisy) {
	by := map[string]*Noisy{}
	for i := range kept {
		k := &kept[i]
		if !k.known || !k.learned.tells() && !k.learned.noisy() {
			continue
		}
		n := by[k.s.Host]
		if n == nil {
			n = &Noisy{Host: k.s.Host}
			by[k.s.Host] = n
		}
		if n.Checked++; k.learned.noisy() {
			n.Changed++
		}
	}
	is := func(n *Noisy) bool {
		return n.Changed >= noisePages && float64(n.Changed) >= noiseShare*float64(n.Checked)
	}
	others := Noisy{}
	for _, n := range by {
		if is(n) {
			found = append(found, *n)
		} else {
			others.Checked += n.Checked
			others.Changed += n.Changed
		}
	}
	slices.SortFunc(found, func(a, b Noisy) int { return cmp.Or(cmp.Compare(b.Changed, a.Changed), cmp.Compare(a.Host, b.Host)) })
	if is(&others) {
		found = append(found, others)
	}
	return found
}

// Budgets may be any number. Beyond these bounds, the bounds of intervals apply anyway.
const (
	leastOnce = 1e-9
	mostOnce  = 1e9
)

// once returns the rate of pages that change once in two mean intervals, in changes a day.
func (p *Plan) once() float64 { return max(leastOnce, min(0.5*p.Budget/p.live(), mostOnce)) }

// Noisy returns what the plan says of the host of a URL, or else of all hosts it does not name;
// nil if it says nothing, or has no Outlook.
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
