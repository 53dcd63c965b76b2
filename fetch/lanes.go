package fetch

import (
	"container/list"
	"time"
)

// lanes says which visits may begin, so that hosts which take their time cost the
// others nothing.
//
// There may be threads visits at once. One that has lasted for long, or whose host
// is known to take long, does not count among them, but among spare others. Half
// of those only hosts may use that are known to answer quickly: however many others
// there are that never answer, these have threads visits to themselves.
type lanes struct {
	threads, spare int
	// long is when a visit has lasted for long.
	long time.Duration
	// under counts the visits under way; fresh those of them that count among
	// threads, strange those at hosts not known to be quick, slow those at hosts
	// that were known to be slow when they began.
	under, fresh, strange, slow int
	// young are those that are fresh, in the order in which they began.
	young list.List
}

// A flight is a visit under way.
type flight struct {
	began time.Time
	pace  pace
	young *list.Element // nil if it is not fresh
}

// begin notes that a visit begins.
func (s *lanes) begin(p pace, now time.Time) *flight {
	f := &flight{began: now, pace: p}
	s.under++
	if p != quick {
		s.strange++
	}
	if p == slow && s.spare > 0 {
		s.slow++
	} else {
		s.fresh++
		f.young = s.young.PushBack(f)
	}
	return f
}

// end notes that a visit is over.
func (s *lanes) end(f *flight) {
	s.under--
	if f.pace != quick {
		s.strange--
	}
	if f.pace == slow && s.spare > 0 {
		s.slow--
	}
	s.late(f)
}

func (s *lanes) late(f *flight) {
	if f.young != nil {
		s.young.Remove(f.young)
		s.fresh--
		f.young = nil
	}
}

// age looks which visits have lasted for long by now, and returns when to look
// again; zero if there is no need to.
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

// open says hosts of which pace may be visited now.
func (s *lanes) open() (w [paces]bool) {
	if s.under >= s.threads+s.spare {
		return w
	}
	room := s.fresh < s.threads
	strange := s.strange < s.threads+s.spare/2
	w[quick] = room
	w[unknown] = room && strange
	w[slow] = strange && s.slow < s.threads
	if s.spare == 0 {
		w[slow] = room
	}
	return w
}
