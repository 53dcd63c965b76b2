package simulate

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/update"
)

// Signals are signs that pages have changed, as sitemaps and feeds give them, or a service.
// There is at most one for each change.
type Signals struct {
	// Share is the share of the hosts that have such signs, for all of their pages; zero
	// means all.
	Share float64
	// Recall is the share of changes with a sign, Precision the share of signs
	// that are true; zero means all of them. The others come at random.
	Precision, Recall float64
	// PerDay is the number of additional, meaningless signs a day for each page.
	PerDay float64
	// Delay is the time from a change to its sign.
	Delay time.Duration
}

// ParseSignals reads signals such as "precision=0.8,recall=0.6,share=0.5,flood=1,delay=6h":
// flood is PerDay, and what is missing is zero. A time is a number with s, m, h or d.
func ParseSignals(text string) (s Signals, err error) {
	for field := range strings.SplitSeq(text, ",") {
		name, value, ok := strings.Cut(strings.TrimSpace(field), "=")
		if !ok {
			return s, fmt.Errorf("simulate: signals: %q is not of the form recall=0.8", field)
		}
		if name == "delay" {
			days, isDays := strings.CutSuffix(value, "d")
			if f, err := strconv.ParseFloat(days, 64); isDays && err == nil && f >= 0 && f < 1e4 {
				s.Delay = inDays(f)
			} else if s.Delay, err = time.ParseDuration(value); err != nil || s.Delay < 0 {
				return s, fmt.Errorf("simulate: signals: %q is not a time such as 90m, 6h or 2d", value)
			}
			continue
		}
		to := map[string]*float64{"share": &s.Share, "precision": &s.Precision, "recall": &s.Recall, "flood": &s.PerDay}[name]
		if to == nil {
			return s, fmt.Errorf("simulate: signals: unknown name %q; want precision, recall, share, flood or delay", name)
		}
		if *to, err = strconv.ParseFloat(value, 64); err != nil {
			return s, fmt.Errorf("simulate: signals: %s=%q is not a number", name, value)
		}
	}
	return s, s.check()
}

func (s Signals) check() error {
	for _, f := range []float64{s.Share, s.Precision, s.Recall} {
		if !(f >= 0 && f <= 1) {
			return fmt.Errorf("simulate: signals: %v is not a share from 0 to 1", f)
		}
	}
	if !(s.PerDay >= 0 && s.PerDay <= 1e4) {
		return fmt.Errorf("simulate: signals: %v signs a day", s.PerDay)
	}
	if s.Delay < 0 {
		return errors.New("simulate: signals: they come after the change")
	}
	return nil
}

// precision returns Precision, for signs that come with changes.
func (s *Signals) precision() float64 {
	if s.Precision == 0 {
		return 1
	}
	return s.Precision
}

// signalsOf returns which of the signals a host has; nil if none.
func signalsOf(all []Signals, host string, seed uint64) *Signals {
	if len(all) == 0 {
		return nil
	}
	u := drawn("%d %s", seed, host)
	for i := range all {
		share := all[i].Share
		if share == 0 {
			share = 1
		}
		if u -= share; u < 0 {
			return &all[i]
		}
	}
	return nil
}

// hostOf returns the host of a page; in histories, pages may have names that are not URLs.
func hostOf(page string) string {
	if u, err := url.Parse(page); err == nil && u.Host != "" {
		return crawldb.Host(page)
	}
	return ""
}

// signs is the state of the signs of one page.
type signs struct {
	*Signals
	worth *signalWorth
	// hidden is how often a day the page changes without a sign, if it changes at random.
	hidden float64
	// The next sign: when its change happens, and whether it really does.
	next  float64
	true  bool
	drawn uint64
	// changed is the time of the first change with a sign since the copy was made; infinite
	// if there was none.
	changed float64
	seen    int // signs since then
}

// Signs have their own random numbers.
const signDraws = 1 << 40

func (s *subject) draw() float64 {
	s.signs.drawn++
	return s.chance(signDraws + s.signs.drawn)
}

// nextSign draws the next sign after a moment, in days.
func (s *subject) nextSign(after float64) {
	g := s.signs
	p, noise := g.precision(), g.PerDay
	if !s.random() {
		noise += g.Recall * s.rateOf * (1 - p) / p
		if g.next, g.true = math.Inf(1), false; noise > 0 {
			g.next = after - math.Log(s.draw())/noise
		}
		return
	}
	for {
		rate, until := s.PerDay, s.shift()
		if after >= until {
			rate, until = rate*s.o.ShiftBy, math.Inf(1)
		}
		all := g.Recall*rate/p + noise
		if all <= 0 && math.IsInf(until, 1) {
			g.next = math.Inf(1)
			return
		}
		g.next = after - math.Log(s.draw())/all
		if g.next <= until {
			g.true = s.draw() < g.Recall*rate/all
			return
		}
		after = until
	}
}

// signal is a sign that is on its way.
type signal struct {
	page int32
	day  float64 // of its change
}

// signaller has the signals of a crawl.
type signaller struct {
	happens [][]int32  // by cycle, the pages with a change that has a sign
	arrives [][]signal // by cycle
	hosts   map[string]*known
	ended   []*known // hosts with claims to count
}

// known is what a crawl has learned of the signs of a host.
type known struct {
	lastmod hostdb.SignalStats
	claims  []hostdb.SignalCheck
}

// signed prepares the signs of a page.
func (c *crawl) signed(s *subject) {
	g := signalsOf(c.o.Signals, hostOf(s.URL), c.o.Seed)
	if g == nil {
		return
	}
	if c.signs == nil {
		c.signs = &signaller{happens: make([][]int32, c.cycles+1), arrives: make([][]signal, c.cycles+1), hosts: map[string]*known{}}
	}
	s.signs = &signs{Signals: g, changed: math.Inf(1)}
	s.signs.hidden = s.PerDay * (1 - g.Recall)
	if !s.random() { // the events with a sign are drawn here
		for k, e := range s.Events {
			if day := days(e.Time.Sub(c.o.Start)); day > 0 && s.chance(signDraws*2+uint64(k)) < g.Recall {
				c.arrive(s.number, day, g.Delay)
			}
		}
	}
	s.nextSign(0)
	c.happen(s)
}

// happen schedules the change of the next sign of a page.
func (c *crawl) happen(s *subject) {
	if at := math.Ceil(s.signs.next / days(c.o.Cycle)); at < float64(c.cycles) {
		c.signs.happens[int(at)] = append(c.signs.happens[int(at)], int32(s.number))
	}
}

func (c *crawl) arrive(page int, day float64, delay time.Duration) {
	if at := math.Ceil((day + days(delay)) / days(c.o.Cycle)); at < float64(c.cycles) {
		c.signs.arrives[int(at)] = append(c.signs.arrives[int(at)], signal{int32(page), day})
	}
}

// signalled makes changes with a sign happen up to a cycle, and handles the signs that arrive.
func (c *crawl) signalled(cycle int) {
	if c.signs == nil {
		return
	}
	now := float64(cycle) * days(c.o.Cycle)
	for _, i := range c.signs.happens[cycle] {
		s := &c.pages[i]
		for g := s.signs; g.next <= now; s.nextSign(g.next) {
			if g.true && s.fetched && math.IsInf(g.changed, 1) {
				c.meter.credit(s, g.next)
				s.chanceFresh, g.changed = 0, g.next
			}
			c.arrive(s.number, g.next, g.Delay)
		}
		c.happen(s)
	}
	c.signs.happens[cycle] = nil
	// A sign that arrives at once comes after earlier ones.
	slices.SortStableFunc(c.signs.arrives[cycle], func(a, b signal) int { return int(a.page) - int(b.page) })
	for _, g := range c.signs.arrives[cycle] {
		c.sign(g, cycle)
	}
	c.signs.arrives[cycle] = nil
}

// sign handles a sign, as a crawl would.
func (c *crawl) sign(g signal, cycle int) {
	s, d := &c.pages[g.page], &c.records[g.page]
	if !s.begun || c.p.NutchCompat || g.day <= s.last && s.fetched {
		return
	}
	due := d.FetchTime
	switch {
	case c.intervals == nil:
		*d = *update.Signal(d, c.o.Start.Add(inDays(g.day)), c.signs.of(s).lastmod, c.o.Update)
	case c.p.Signals && s.fetched && s.signs.worth != nil:
		// Policies that know the rates know what a sign is worth.
		s.signs.seen++
		wait := days(c.intervals[s.number]) - float64(s.signs.seen)*s.signs.worth.beta/s.rateOf
		if at := c.o.Start.Add(inDays(s.last + max(wait, 0))); at.Before(d.FetchTime) {
			d.FetchTime = at
		}
	}
	if !d.FetchTime.Before(due) {
		return
	}
	if s.queued { // it moves further ahead
		c.ready.push(s.number, c.key(d))
		c.again++
		return
	}
	c.wait(s.number, cycle-1)
}

func (g *signaller) of(s *subject) *known {
	host := hostOf(s.URL)
	k := g.hosts[host]
	if k == nil {
		k = &known{}
		g.hosts[host] = k
	}
	return k
}

// checked counts what a visit says about the signs of a page.
func (c *crawl) checked(s *subject, listed *crawldb.Datum, changed bool) {
	if c.signs == nil || s.signs == nil || listed.Signature == nil {
		return
	}
	k := c.signs.of(s)
	claim, ok := update.CheckSignals(listed, c.at, changed, k.lastmod)
	if !ok {
		return
	}
	if len(k.claims) == 0 {
		c.signs.ended = append(c.signs.ended, k)
	}
	k.claims = append(k.claims, claim)
}

// counted ends a cycle.
func (c *crawl) counted(cycle int) {
	if c.signs == nil {
		return
	}
	name := fmt.Sprintf("%09d", cycle)
	for _, k := range c.signs.ended {
		k.lastmod = k.lastmod.With(name, k.claims)
		k.claims = k.claims[:0]
	}
	c.signs.ended = c.signs.ended[:0]
}

// signalsOf returns what is known of the signs of a host.
func (c *crawl) signalsOf(host string) (schedule.SignalQuality, bool) {
	if c.signs == nil {
		return schedule.SignalQuality{}, false
	}
	k := c.signs.hosts[host]
	if k == nil || !k.lastmod.Known() {
		return schedule.SignalQuality{}, false
	}
	return schedule.SignalQuality{Precision: k.lastmod.Precision(), Recall: k.lastmod.Recall()}, true
}

// worth computes what visits to pages with signs are worth, by their signals.
func (c *crawl) worth() []*signalWorth {
	of := map[*Signals]*signalWorth{}
	all := make([]*signalWorth, len(c.pages))
	for i := range c.pages {
		g := c.pages[i].signs
		if g == nil || g.Recall == 0 {
			continue
		}
		w := of[g.Signals]
		if w == nil {
			w = newSignalWorth(g.precision(), g.Recall)
			of[g.Signals] = w
		}
		g.worth, all[i] = w, w
	}
	return all
}
