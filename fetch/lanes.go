package fetch

import (
	"container/list"
	"time"
)

// lanes decides which visits may begin, so that slow hosts cost the others
// nothing.
//
// At most threads visits may be under way. A visit that has lasted long, or
// whose host is known to be slow, counts not among them but among spare others.
// Of all these places, hosts known to be slow may take threads; with hosts
// about which nothing is known, a quarter of the spare ones more; with those
// that have answered for their robots.txt, another quarter. So there are always
// some left for hosts that are better known: however many hosts never answer,
// those known to be quick have threads visits to themselves, if there are twice
// as many spare ones.
type lanes struct {
	threads, spare int
	// long is the duration from which a visit counts as long.
	long time.Duration
	// under counts the visits under way by what was known about their hosts
	// when they began; fresh counts those of them that are among threads.
	under [paces]int
	fresh int
	// young are the fresh visits, oldest first.
	young list.List
}

// A flight is a visit under way.
type flight struct {
	began time.Time
	pace  pace
	young *list.Element // nil if it is not fresh
}

// begin records that a visit begins.
func (s *lanes) begin(p pace, now time.Time) *flight {
	f := &flight{began: now, pace: p}
	s.under[p]++
	if p != slow || s.spare == 0 {
		s.fresh++
		f.young = s.young.PushBack(f)
	}
	return f
}

// end records that a visit is over.
func (s *lanes) end(f *flight) {
	s.under[f.pace]--
	s.late(f)
}

// flying counts the visits under way.
func (s *lanes) flying() (n int) {
	for _, u := range s.under {
		n += u
	}
	return n
}

func (s *lanes) late(f *flight) {
	if f.young != nil {
		s.young.Remove(f.young)
		s.fresh--
		f.young = nil
	}
}

// age finds visits that have become long, and returns when to check again; zero
// if there is no need to.
func (s *lanes) age(now time.Time) time.Time {
	if s.spare == 0 {
		return time.Time{}
	}
	for e := s.young.Front(); e != nil; e = s.young.Front() {
		f := e.Value.(*flight)
		if at := f.began.Add(s.long); at.After(now) {
			return at
		}
		s.late(f)
	}
	return time.Time{}
}

// open returns the paces of hosts that may be visited now.
func (s *lanes) open() (w [paces]bool) {
	room := s.fresh < s.threads
	n := s.under[slow]
	w[slow] = n < s.threads && (room || s.spare > 0)
	n += s.under[unknown]
	w[unknown] = room && n < s.threads+s.spare/4
	n += s.under[fair]
	w[fair] = room && n < s.threads+s.spare/2
	n += s.under[quick]
	w[quick] = room && n < s.threads+s.spare
	if n >= s.threads+s.spare {
		return [paces]bool{}
	}
	return w
}
