package recrawl

import (
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/segment"
)

// Status is what a crawler is doing, for monitoring.
type Status struct {
	// Stage is the stage under way: generate, fetch, parse, update, invert, dedup, pages or
	// wait, and robots before the rounds of ReadSitemaps; empty when no round is made. Segment is
	// what it works on.
	Stage, Segment string
	// Since is when the stage began.
	Since time.Time `json:",omitzero"`
	// Fetch is the progress of the fetch under way, or of the last one.
	Fetch fetch.Progress
	// Rounds, Visits and Bytes count from New on.
	Rounds int
	Visits map[protocol.Code]int
	Bytes  int64
	// NextDue is when the next page is due, as far as the last selection could
	// tell.
	NextDue time.Time `json:",omitzero"`
	// Freshness is that of the Report of the last round.
	Freshness *Freshness `json:",omitempty"`
}

// Visited adds up the visits.
func (s *Status) Visited() int {
	f := fetch.Report{Visits: s.Visits}
	return f.Visited()
}

// Status returns a copy of what the crawler is doing now.
func (c *Crawler) Status() Status {
	c.status.mu.Lock()
	defer c.status.mu.Unlock()
	s := c.status.s
	s.Visits = maps.Clone(s.Visits)
	return s
}

type status struct {
	mu      sync.Mutex
	s       Status
	refused error // the first visit of the fetch under way that was refused
}

func (s *status) setStage(name, segment string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.s.Stage, s.s.Segment, s.s.Since = name, segment, time.Now()
}

func (s *status) addVisit(v *segment.Visit, p fetch.Progress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.s.Visits == nil {
		s.s.Visits = map[protocol.Code]int{}
	}
	s.s.Visits[v.Outcome.Code]++
	if v.Outcome.Code == protocol.Refused && s.refused == nil {
		s.refused = fmt.Errorf("%s: %s", v.URL, v.Outcome.Reason)
	}
	s.s.Bytes += v.Bytes
	s.s.Fetch = p
}

func (s *status) addRound(r *Report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.s.Rounds += r.Rounds
	s.s.NextDue = r.NextDue
	if r.Freshness != nil {
		s.s.Freshness = r.Freshness
	}
}

// takeRefused returns the first visit that was refused since the last call, nil if none was.
func (s *status) takeRefused() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.refused
	s.refused = nil
	return err
}
