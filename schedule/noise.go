package schedule

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/recrawl/recrawl/crawldb"
)

// NoisyHost is a host where visits to many pages find a change, however soon after the preceding
// visit. Few pages really change like that. More likely the signature of the crawl depends on
// text that no reader sees, such as dates, counters or tokens. Another signature, such as
// signature.TextProfile, would see the real changes.
//
// Such visits do not show how often the pages change: either the signature sees noise, or the pages
// change more often than visits could follow. If the schedule assumed the latter, it would hardly
// visit them any more, which is wrong if the signature is at fault. So a page is taken to change once in two mean
// intervals if it is noisy, or if [Plan].Doubt and it was never found unchanged.
type NoisyHost struct {
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
	// trusted, doubted and noisy are the boundaries of learned.noiseState: see there. A step is evidenceStep
	// of evidence: the logarithm of the chance with which a page without noise would have changed.
	trusted, doubted, noisy = 1, 8, noiseMost
	evidenceStep            = 0.6
	// In a new crawl pages that always change are doubted until enoughProbes probing pages are known to be noisy or
	// not. Then they are doubted if more than a share of mostNoise of the probing pages, and at least two, are noisy.
	mostNoise, enoughProbes = 0.05, 5.
	// A visit after less than the mean interval divided by sooner tells noise from changes. To check a page that has
	// always changed, its next visit comes after a fourth of the mean interval, and for each checkSteps of evidence
	// after a fourth of that.
	sooner                   = 3.
	checkShorter, checkSteps = 4., 2
)

// tells reports whether visits to a page tell how often it changes: they have found it unchanged, and have
// not since found a change each time, however soon they came. Otherwise the signature may see noise.
func (l *learned) tells() bool { return trusted <= l.noiseState && l.noiseState < doubted }

// believes reports whether what visits to a page have shown is how often it changes.
func (p *Plan) believes(l *learned) bool {
	return !l.noisy() && (p == nil || !p.Doubt || l.tells())
}

// setDoubt sets Doubt, from the probing pages: see probes.
func (p *Plan) setDoubt(old *Plan, kept []page) {
	noisy, tell := 0., 0.
	for i := range kept {
		switch k := &kept[i]; {
		case !k.known || !p.probes(k.url):
		case k.learned.noisy():
			noisy++
		case k.learned.tells():
			tell++
		}
	}
	p.Doubt = old == nil || old.Doubt
	if noisy+tell >= enoughProbes {
		p.Doubt = noisy > 1+mostNoise*(noisy+tell)
	}
}

// updateNoiseState takes in what a visit says about noise, given how many changes were expected until it, and the mean
// interval of pages in days. A page that changes often has changed between visits that are far apart, too, so only
// visits that came much sooner tell.
func (l *learned) updateNoiseState(changed bool, after time.Duration, expected, every float64) {
	if !changed {
		l.noiseState = trusted
		return
	}
	if l.noiseState == 0 {
		l.noiseState = doubted
	}
	if days(after) > every/sooner {
		return
	}
	evidence := -math.Log(-math.Expm1(-max(expected, 1e-3)))
	l.noiseState = uint8(min(float64(l.noiseState)+math.Round(evidence/evidenceStep), noisy))
}

// noisy reports whether the signature of a page probably sees noise.
func (l *learned) noisy() bool { return l.noiseState == noisy }

// checkInterval returns the interval for a page that may be noisy: it is visited sooner once in a while. The more such
// visits have found a change, the sooner the next and the fewer there are.
func (l *learned) checkInterval(url string, v Visit, every float64, interval, least time.Duration) time.Duration {
	n := 0.
	if l.noiseState > doubted {
		n = float64((l.noiseState - doubted) / checkSteps)
	}
	if v.Change != Changed || chance(url, v) > math.Exp2(-n-1) {
		return interval
	}
	return seconds(every*math.Pow(checkShorter, -n-1)*day.Seconds(), least, interval)
}

// findNoisyHosts returns the noisy hosts of a sample, those with most pages first, and if the others
// together are noisy, these last.
func findNoisyHosts(kept []page) (found []NoisyHost) {
	by := map[string]*NoisyHost{}
	for i := range kept {
		k := &kept[i]
		if !k.known || !k.learned.tells() && !k.learned.noisy() {
			continue
		}
		n := by[k.s.Host]
		if n == nil {
			n = &NoisyHost{Host: k.s.Host}
			by[k.s.Host] = n
		}
		if n.Checked++; k.learned.noisy() {
			n.Changed++
		}
	}
	is := func(n *NoisyHost) bool {
		return n.Changed >= noisePages && float64(n.Changed) >= noiseShare*float64(n.Checked)
	}
	others := NoisyHost{}
	for _, n := range by {
		if is(n) {
			found = append(found, *n)
		} else {
			others.Checked += n.Checked
			others.Changed += n.Changed
		}
	}
	slices.SortFunc(found, func(a, b NoisyHost) int {
		return cmp.Or(cmp.Compare(b.Changed, a.Changed), cmp.Compare(a.Host, b.Host))
	})
	if is(&others) {
		found = append(found, others)
	}
	return found
}

// Budgets may be any number. Beyond these bounds, the bounds of intervals apply anyway.
const (
	leastCautiousRate = 1e-9
	mostCautiousRate  = 1e9
)

// cautiousRate returns the rate of pages that change once in two mean intervals, in changes a day.
func (p *Plan) cautiousRate() float64 {
	return max(leastCautiousRate, min(0.5*p.Budget/p.live(), mostCautiousRate))
}

// NoisyHost returns what the plan says of the host of a URL, or else of all hosts it does not name;
// nil if it says nothing, or has no Outlook.
func (p *Plan) NoisyHost(url string) *NoisyHost {
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
