package render

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/recrawl/recrawl"
)

// ShowProgress keeps a line on a terminal up to date until stop is called;
// elsewhere it prints nothing.
func ShowProgress(w io.Writer, crawler *recrawl.Crawler) (stop func()) {
	f := Terminal(w)
	if f == nil {
		return func() {}
	}
	quit := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(250 * time.Millisecond)
		defer tick.Stop()
		var rate Meter
		for {
			select {
			case <-quit:
				fmt.Fprint(f, "\r\x1b[K")
				return
			case now := <-tick.C:
				s := crawler.Status()
				fmt.Fprintf(f, "\r\x1b[K%s", progressLine(&s, rate.PerSecond(now, s.Visited())))
			}
		}
	})
	return func() { close(quit); wg.Wait() }
}

// IsTerminal reports whether what is written to a file is seen at once.
func IsTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// progressLine is one line about a crawl under way.
func progressLine(s *recrawl.Status, perSecond float64) string {
	bad := 0
	for code, n := range s.Visits {
		if code.Transient() {
			bad += n
		}
	}
	line := fmt.Sprintf("round %d %-8s %d pages, %.0f/s, %s, %d errors, %d hosts active", s.Rounds+1, s.Stage, s.Visited(), perSecond, Size(s.Bytes), bad, s.Fetch.Hosts)
	if s.Fetch.Listed > s.Fetch.Done {
		line += fmt.Sprintf(", %d waiting", s.Fetch.Listed-s.Fetch.Done)
	}
	if !s.NextDue.IsZero() {
		line += ", next due " + s.NextDue.Format(time.DateTime)
	}
	return line
}

// Meter measures a rate over the last ten seconds.
type Meter struct {
	at []time.Time
	n  []int
}

// PerSecond notes that n things are done by now, and returns how many are done a second.
func (m *Meter) PerSecond(now time.Time, n int) float64 {
	m.at, m.n = append(m.at, now), append(m.n, n)
	for len(m.at) > 2 && now.Sub(m.at[0]) > 10*time.Second {
		m.at, m.n = m.at[1:], m.n[1:]
	}
	if d := now.Sub(m.at[0]).Seconds(); d > 0 {
		return float64(n-m.n[0]) / d
	}
	return 0
}

// longWork is after how long ShowWork says what is being done, and how often it says so again.
const longWork, againEvery = 3 * time.Second, 30 * time.Second

// ShowWork says what takes so long, on a terminal or elsewhere, until stop is called: once
// after three seconds, and then every half minute with the time it has taken.
func ShowWork(w io.Writer, what string) (stop func()) {
	quit := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		began, wait := time.Now(), longWork
		for {
			select {
			case <-quit:
				return
			case <-time.After(wait):
			}
			fmt.Fprintf(w, "recrawl: %s, for %v so far\n", what, time.Since(began).Round(time.Second))
			wait = againEvery
		}
	})
	return func() { close(quit); wg.Wait() }
}
