package fetch

import (
	"container/list"
	"time"
)

// threadShares decides which visits may begin, so that slow hosts cost the others
// nothing.
//
// At most threads visits may be under way. A visit that has lasted long, or
// whose host is known to be slow, counts not among them but among spare others.
// Of all these threads, hosts known to be slow may take threads; with hosts
// about which nothing is known, a quarter of the spare ones more; with those
// that have answered for their robots.txt, another quarter. So there are always
// some left for hosts that are better known: however many hosts never answer,
// those known to be quick have threads visits to themselves, if there are twice
// as many spare ones.
type threadShares struct {
	threads, spare int
	// slowAfter is the duration from which a visit counts as long.
	slowAfter time.Duration
	// running counts the visits under way by what was known about their hosts
	// when they began; fresh counts those of them that are among threads.
	running [paces]int
	fresh   int
	// freshVisits are the fresh visits, oldest first.
	freshVisits list.List
}

// A runningVisit is a visit under way.
type runningVisit struct {
	began time.Time
	pace  pace
	fresh *list.Element // nil if it is not fresh
}

// begin records that a visit begins.
func (s *threadShares) begin(p pace, now time.Time) *runningVisit {
	f := &runningVisit{began: now, pace: p}
	s.running[p]++
	if p != slow || s.spare == 0 {
		s.fresh++
		f.fresh = s.freshVisits.PushBack(f)
	}
	return f
}

// end records that a visit is over.
func (s *threadShares) end(f *runningVisit) {
	s.running[f.pace]--
	s.unfresh(f)
}

// inFlight counts the visits under way.
func (s *threadShares) inFlight() (n int) {
	for _, u := range s.running {
		n += u
	}
	return n
}

func (s *threadShares) unfresh(f *runningVisit) {
	if f.fresh != nil {
		s.freshVisits.Remove(f.fresh)
		s.fresh--
		f.fresh = nil
	}
}

// ageOut finds visits that have become long, and returns when to check again; zero
// if there is no need to.
func (s *threadShares) ageOut(now time.Time) time.Time {
	if s.spare == 0 {
		return time.Time{}
	}
	for e := s.freshVisits.Front(); e != nil; e = s.freshVisits.Front() {
		f := e.Value.(*runningVisit)
		if at := f.began.Add(s.slowAfter); at.After(now) {
			return at
		}
		s.unfresh(f)
	}
	return time.Time{}
}

// openPaces returns the paces of hosts that may be visited now.
func (s *threadShares) openPaces() (w [paces]bool) {
	room := s.fresh < s.threads
	n := s.running[slow]
	w[slow] = n < s.threads && (room || s.spare > 0)
	n += s.running[unknown]
	w[unknown] = room && n < s.threads+s.spare/4
	n += s.running[fair]
	w[fair] = room && n < s.threads+s.spare/2
	n += s.running[quick]
	w[quick] = room && n < s.threads+s.spare
	if n >= s.threads+s.spare {
		return [paces]bool{}
	}
	return w
}
