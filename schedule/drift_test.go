package schedule

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
)

// drifting crawls pages on two hosts, each every five days, with a plan every two days. The rates
// of a host are those of a page times rate(host, day).
func drifting(pages, until int, rate func(host, day int) float64) (Learned, []crawldb.Datum, []float64) {
	rnd := rand.New(rand.NewPCG(1, 2))
	s, at := Learned{Budget: float64(pages) / 5}, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	records, perDay := make([]crawldb.Datum, pages), make([]float64, pages)
	for i := range records {
		records[i] = crawldb.Datum{URL: fmt.Sprintf("http://%c/%d", 'a'+i%2, i), Status: crawldb.Fetched, Score: 1, LastFetch: at}
		perDay[i] = math.Exp(rnd.NormFloat64()) / 10
	}
	visits := int64(0)
	for n := range until {
		if n%2 == 0 {
			sample := s.NewSample(at)
			for i := range records {
				sample.Add(&records[i])
			}
			s.Plan = sample.Plan(PlanOptions{Visits: visits})
		}
		at = at.Add(day)
		for i := n % 5; i < pages; i += 5 {
			d := &records[i]
			v := Visit{Time: at, PrevFetch: d.LastFetch, Change: Unchanged}
			if rnd.Float64() < -math.Expm1(-perDay[i]*rate(i%2, n)*days(at.Sub(d.LastFetch))) {
				v.Change = Changed
			}
			*d = s.Fetched(*d, v)
			d.LastFetch = at
			visits++
		}
	}
	for i := range perDay {
		perDay[i] *= rate(i%2, until)
	}
	return s, records, perDay
}

// estimates is the geometric mean of what is known of the pages of a host, by their rates.
func estimates(s Learned, records []crawldb.Datum, perDay []float64, host int) float64 {
	sum, n := 0.0, 0.0
	for i := range records {
		if i%2 == host {
			sum += math.Log(s.Explain(&records[i]).Rate.PerDay() / perDay[i])
			n++
		}
	}
	return math.Exp(sum / n)
}

func TestDrift(t *testing.T) {
	const pages, shift = 400, 120
	after := func(by ...float64) func(host, day int) float64 {
		return func(host, day int) float64 {
			if day < shift {
				return 1
			}
			return by[host]
		}
	}
	before, _, _ := drifting(pages, shift, after(1, 1))
	for name, c := range map[string]struct {
		by []float64
	}{
		"nothing":  {[]float64{1, 1}},
		"all":      {[]float64{2, 2}},
		"seldomer": {[]float64{0.5, 0.5}},
		"one host": {[]float64{1, 3}},
	} {
		s, records, perDay := drifting(pages, shift+50, after(c.by...))
		for host := range 2 {
			octaves := float64(int(s.Plan.level(records[host].URL))-int(before.Plan.level(records[host].URL))) / octave
			if want := math.Log2(c.by[host]); math.Abs(octaves-want) > 0.5 || want == 0 && c.by[0] == c.by[1] && octaves != 0 {
				t.Errorf("%s, host %d: %v octaves, want %v", name, host, octaves, want)
			}
			if got := estimates(s, records, perDay, host); math.Abs(math.Log2(got)) > 0.3 {
				t.Errorf("%s, host %d: estimates are %.2f of the rates", name, host, got)
			}
		}

		// A plan that is lost is made of the records. Those that were not visited since the
		// levels changed are of others.
		again := s
		again.Plan = nil
		sample := again.NewSample(s.Plan.Made)
		for i := range records {
			sample.Add(&records[i])
		}
		again.Plan = sample.Plan(PlanOptions{})
		for i := range records {
			if got, want := again.Explain(&records[i]).Rate, s.Explain(&records[i]).Rate; math.Abs(got.PerDay()/want.PerDay()-1) > 1e-6 {
				t.Fatalf("%s: %s: %v after the plan is lost, want %v", name, records[i].URL, got, want)
			}
		}
	}
}

// Where all pages of a site change at one moment, again and again, as with new templates, that is no
// shift; and a shift of such a site is seen all the same.
func TestDriftOfTemplates(t *testing.T) {
	templates := func(shift int) func(host, day int) float64 {
		return func(host, day int) float64 {
			switch {
			case host == 0 && day%25 < 5: // each page has the new template at its next visit
				return 1e6
			case host == 0 && day >= shift:
				return 4
			}
			return 1
		}
	}
	for until := 150; until < 250; until += 20 {
		s, _, _ := drifting(400, until, templates(1000))
		for _, url := range []string{"http://a/", "http://b/"} {
			if level := s.Plan.level(url); level != 0 {
				t.Errorf("day %d: %s changes %v octaves more often", until, url, float64(level)/octave)
			}
		}
	}
	s, _, _ := drifting(400, 250, templates(150))
	a, b := s.Plan.level("http://a/"), s.Plan.level("http://b/")
	if octaves := float64(int(a)-int(b)) / octave; octaves < 0.5 {
		t.Errorf("after a shift of two octaves of one host beside its templates it is taken to change %v octaves more often than the other", octaves)
	}
}

// What visits say of the factor adds up to nothing if what was expected is true, and finds
// it if not.
func TestDriftIsUnbiased(t *testing.T) {
	for expected := 0.01; expected < mostExpected; expected *= 1.5 {
		o := outcome{expected: expected}
		code, after := o.encode()
		if back := decodeOutcome(code, after, Rate{}); math.Abs(math.Sqrt(back.expected/expected)-1) > 0.1 && expected > 0.05 || back.changed || back.after != 0 {
			t.Errorf("%v is read as %v", o, back)
		}
		mean := func(factor float64) float64 {
			p := -math.Expm1(-expected * factor)
			var yes, no Drift
			yes.add(outcome{expected: expected, changed: true})
			no.add(outcome{expected: expected})
			return (p*yes.Score + (1-p)*no.Score) / yes.Information
		}
		if math.Abs(mean(1)) > 1e-9 {
			t.Errorf("%v expected: %v if it is true", expected, mean(1))
		}
		if by := 1.05; math.Abs(mean(by)/math.Log(by)-1) > 0.1 {
			t.Errorf("%v expected: %v, want %v", expected, mean(by), math.Log(by))
		}
	}
	// What is more than that is not kept: it is what is known since.
	for _, changed := range []bool{false, true} {
		r := Rate{3, 10}
		for _, days := range []float64{40, 100, 200} {
			after := fromDays(days)
			o := outcome{expected: r.expect(after), changed: changed, after: days}
			known := r.Unchanged(after)
			if changed {
				known = r.Changed(after)
			}
			code, time := o.encode()
			if back := decodeOutcome(code, time, known); back.changed != changed || back.expected < 0.6*o.expected || back.expected > 1.15*o.expected || changed && math.Abs(back.expected/o.expected-1) > 0.05 || math.Abs(back.after/days-1) > afterStep/2+1e-3 {
				t.Errorf("%v is read as %v", o, back)
			}
		}
	}
	if code, after := (outcome{expected: mostExpected + 1, changed: true}).encode(); code != 0 || after != 0 {
		t.Errorf("%x %x", code, after)
	}
}

// How fresh a copy is depends on how often its page changes now, not when it was visited.
func TestFreshnessIsOfTheRateOfNow(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	d := crawldb.Datum{URL: "http://a/", Status: crawldb.Fetched, Score: 1, LastFetch: now.Add(-5 * day), FetchTime: now.Add(day)}
	learned{Rate: Rate{4, 40}}.keep(&d)
	s := Learned{Plan: &Plan{Prior: Rate{1, 10}, Mean: 1, Drift: Drift{Level: octave}}}
	want := Rate{4, 20}.Fresh(5 * day)
	if got, _ := s.Fresh(&d, now); math.Abs(got-want) > 1e-9 {
		t.Errorf("a copy: %v, want %v", got, want)
	}
	c := s.NewCensus(now)
	c.Add(&d)
	if got, _ := c.Condition(0); math.Abs(got.Freshness-want) > 1e-9 {
		t.Errorf("all copies: %v, want %v", got.Freshness, want)
	}
}
