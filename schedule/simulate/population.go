package simulate

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// Subject is one page of a population: one that changes at random, or one with a
// history.
type Subject struct {
	URL string
	// ContentType is the media type; empty means text/html.
	ContentType string
	// Weight is the importance of the page: what a copy that is up to date is worth.
	// It is the score of its record, as if link analysis had found it.
	Weight float64
	// PerDay is how often a day the page changes, at independent random moments (a Poisson
	// process). If it is not above zero, Events say when the page changes; without events it
	// never does.
	PerDay float64
	// Events are the history of the page, as those of a [Page], as are Seen, EachVisit and Until.
	Events, Seen           []Event
	SignatureAlwaysDiffers bool
	Until                  time.Time
}

// rate returns how often a day the page changes. For a history it is the mean over the whole
// simulation, which cannot be known in advance.
func (s *Subject) rate(from, to time.Time) float64 {
	if s.PerDay > 0 || len(s.Events) == 0 {
		return max(s.PerDay, 0)
	}
	n, there, since, life := 0, s.Events[0].Kind != Appears, from, time.Duration(0)
	for _, e := range s.Events {
		if !e.Time.Before(to) {
			break
		}
		at := e.Time
		if at.Before(from) {
			at = from
		}
		if there {
			life += at.Sub(since)
			if e.Time.After(from) {
				n++
			}
		}
		since, there = at, e.Kind != Deleted
	}
	if there {
		life += to.Sub(since)
	}
	if life <= 0 {
		return 0
	}
	return float64(n) / max(1, days(life))
}

// Population is the pages of a crawl.
type Population []Subject

// Importance is the distribution of the weights of a population's pages. Their mean
// is 1.
type Importance string

const (
	// Zipf gives the page of rank k the weight k to the power of -0.8, whatever its rate of
	// change: measured importance is much like that.
	Zipf Importance = "zipf"
	// Uniform gives all pages the same weight.
	Uniform Importance = "uniform"
	// Correlated is Zipf with ranks that are half chance, and half the rank of the
	// rate of change: pages that matter change more often.
	Correlated Importance = "correlated"
	// Anticorrelated is the reverse: pages that matter change less often.
	Anticorrelated Importance = "anticorrelated"
)

// Importances returns all names.
func Importances() []Importance { return []Importance{Zipf, Uniform, Correlated, Anticorrelated} }

// Rates are how often the pages of a made-up population change.
type Rates string

const (
	// Cho5 is the histogram of Cho and Garcia-Molina (The Evolution of the Web and
	// Implications for an Incremental Crawler, 2000) of 720,000 pages: 23 % change
	// daily, 15 % weekly, 16 % monthly, 16 % every four months, 30 % once a year.
	Cho5 Rates = "cho5"
	// LogNormal is a median of once in 30 days, and a standard deviation of 2 of
	// the logarithm: some pages change every hour, some once in a century.
	LogNormal Rates = "lognorm"
	// Equal is once in 30 days, Hourly once an hour and Static never, for all pages. Of
	// TwoKinds every second page changes once a day, the others once a year.
	Equal    Rates = "equal"
	Hourly   Rates = "hourly"
	Static   Rates = "static"
	TwoKinds Rates = "two"
	// Daily, Weekly and Yearly are once in 1, 7 and 365 days, for all pages.
	Daily  Rates = "daily"
	Weekly Rates = "weekly"
	Yearly Rates = "yearly"
	// Weekdays is a change a day from Monday to Friday, each page at its own time of day.
	// Seasonal is once in 60 days, and ten times as often in three months of each year of 360
	// days. Both are histories of 1080 days from 1 January 2026 on.
	Weekdays Rates = "weekdays"
	Seasonal Rates = "seasonal"
)

// AllRates returns all names.
func AllRates() []Rates {
	return []Rates{Cho5, LogNormal, Equal, Hourly, Daily, Weekly, Yearly, Static, TwoKinds, Weekdays, Seasonal}
}

// published lists those for which figures were published.
func published() []Rates { return []Rates{Cho5, LogNormal} }

// class is a share of the pages, and how often they change.
type class struct{ share, perDay float64 }

func cho5() []class {
	return []class{{.23, 1}, {.15, 1. / 7}, {.16, 1. / 30}, {.16, 1. / 120}, {.30, 1. / 365}}
}

// Synthetic returns a population of n pages that change at random, on n/100 hosts.
// The same arguments give the same population.
func Synthetic(rates Rates, importance Importance, n int, seed uint64) (Population, error) {
	if n < 1 {
		return nil, fmt.Errorf("simulate: a population of %d pages", n)
	}
	// Seed 1 must give the draws that have the published figures.
	rnd := rand.New(rand.NewPCG(seed+map[Rates]uint64{Cho5: 164, LogNormal: 208}[rates], 1))
	p := make(Population, n)
	hosts := n/100 + 1
	for i := range p {
		s := &p[i]
		s.URL = fmt.Sprintf("http://h%d.example/%d", rnd.IntN(hosts), i)
		switch rates {
		case Cho5: // exact numbers of each class
			left := (float64(i) + 0.5) / float64(n)
			for _, c := range cho5() {
				s.PerDay = c.perDay
				if left -= c.share; left < 0 {
					break
				}
			}
		case LogNormal:
			s.PerDay = math.Exp(2*rnd.NormFloat64()) / 30
		case Equal:
			s.PerDay = 1. / 30
		case Hourly:
			s.PerDay = 24
		case Daily:
			s.PerDay = 1
		case Weekly:
			s.PerDay = 1. / 7
		case Yearly:
			s.PerDay = 1. / 365
		case Static:
		case Weekdays, Seasonal:
			// Separate histories take memory: from this number on, pages share them.
			const most = 1000
			if s.Until = historyBegins().Add(historyDays * 24 * time.Hour); i < most {
				s.Events = madeUp(rates, rnd)
			} else {
				s.Events = p[i%most].Events
			}
		case TwoKinds:
			if s.PerDay = 1; i%2 == 1 {
				s.PerDay = 1. / 365
			}
		default:
			return nil, fmt.Errorf("simulate: unknown rates %q; want one of %q", rates, AllRates())
		}
	}
	rnd.Shuffle(n, func(i, j int) { p[i].PerDay, p[j].PerDay = p[j].PerDay, p[i].PerDay })
	perDay := make([]float64, n)
	for i := range p {
		perDay[i] = p[i].PerDay
	}
	if err := p.weigh(importance, perDay, rnd); err != nil {
		return nil, err
	}
	return p, nil
}

// historyBegins is the first day of the made-up histories, a Thursday.
func historyBegins() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

const historyDays = 1080

// madeUp returns a history of Weekdays or Seasonal.
func madeUp(rates Rates, rnd *rand.Rand) []Event {
	begins := historyBegins()
	events := []Event{{begins, Appears}}
	hour := rnd.Float64()
	for day := range historyDays {
		add := func(part float64) {
			at := inDays(float64(day) + part).Truncate(time.Second)
			events = append(events, Event{begins.Add(at), Modified})
		}
		if rates == Weekdays {
			if weekday := begins.AddDate(0, 0, day).Weekday(); weekday != time.Saturday && weekday != time.Sunday {
				add(hour)
			}
			continue
		}
		perDay := 1. / 60
		if day%360 >= 150 && day%360 < 240 {
			perDay *= 10
		}
		for at := rnd.ExpFloat64() / perDay; at < 1; at += rnd.ExpFloat64() / perDay {
			add(at)
		}
	}
	return events
}

// Histories returns a population of pages with a history. Pages that have a weight keep it;
// if none has one, importance decides.
func Histories(pages []Page, importance Importance, seed uint64) (Population, error) {
	if len(pages) == 0 {
		return nil, fmt.Errorf("simulate: the population has no pages")
	}
	p := make(Population, len(pages))
	perDay := make([]float64, len(pages))
	said, sum := 0, 0.0
	for i := range pages {
		p[i] = Subject{URL: pages[i].URL, ContentType: pages[i].ContentType, Weight: pages[i].Weight, Events: pages[i].Events, Seen: pages[i].Seen, SignatureAlwaysDiffers: pages[i].SignatureAlwaysDiffers, Until: pages[i].Until}
		perDay[i] = float64(len(pages[i].Events))
		if p[i].Weight > 0 {
			said++
			sum += p[i].Weight
		}
	}
	if said == 0 {
		return p, p.weigh(importance, perDay, rand.New(rand.NewPCG(seed, 1)))
	}
	for i := range p { // those without a weight are average
		if p[i].Weight > 0 {
			p[i].Weight *= float64(said) / sum
		} else {
			p[i].Weight = 1
		}
	}
	return p, nil
}

// weigh sets the weights.
func (p Population) weigh(importance Importance, perDay []float64, rnd *rand.Rand) error {
	n := len(p)
	order := rnd.Perm(n)
	switch importance {
	case Uniform:
		for i := range p {
			p[i].Weight = 1
		}
		return nil
	case Zipf:
	case Correlated, Anticorrelated:
		byRate := slices.Clone(order)
		slices.SortStableFunc(byRate, func(a, b int) int { return cmp.Compare(perDay[b], perDay[a]) })
		if importance == Anticorrelated {
			slices.Reverse(byRate)
		}
		mix := make([]float64, n)
		for rank, i := range byRate {
			mix[i] = float64(rank)/float64(n) + rnd.Float64()
		}
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(mix[a], mix[b]) })
	default:
		return fmt.Errorf("simulate: unknown importance %q; want one of %q", importance, Importances())
	}
	sum := 0.0
	for rank := range n {
		sum += math.Pow(float64(rank+1), -0.8)
	}
	for rank, i := range order {
		p[i].Weight = math.Pow(float64(rank+1), -0.8) / sum * float64(n)
	}
	return nil
}

func days(d time.Duration) float64 { return d.Hours() / 24 }

// inDays converts a number of days to a Duration of at most a century.
func inDays(n float64) time.Duration {
	const most = 100 * 365 * 24 * time.Hour
	if d := n * 24 * float64(time.Hour); d < float64(most) {
		return time.Duration(d)
	}
	return most
}
