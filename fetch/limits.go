package fetch

import "time"

// limits end a run before its list does.
type limits struct {
	deadline time.Time // zero if there is none
	// visits counts those of this run that asked a host for a page.
	visits int
	// The time of the last sample of the rate, of the next, and how many in a
	// row were too low.
	sampled, next  time.Time
	sample, tooLow int
	// left counts pages that will not be visited; nil while no limit is hit.
	left *int
}

func newLimits(o *Options) (m limits) {
	if o.Limits.TimeLimit > 0 {
		m.deadline = time.Now().Add(o.Limits.TimeLimit)
	}
	if o.Limits.MinRate > 0 {
		m.next = time.Now().Add(max(o.Limits.MinRateAfter, 0))
	}
	return m
}

// checkLimits checks whether a limit is hit, and if so empties the queues. It sets
// when the loop has to check again.
func (l *loop) checkLimits(wake *time.Time) (hit bool) {
	m := &l.limits
	now := time.Now()
	switch {
	case m.left != nil:
		return false
	case !m.deadline.IsZero() && !now.Before(m.deadline):
		m.left = &l.report.TimedOut
		l.opts.Logger.Warn("fetch: time limit reached", "limit", l.opts.Limits.TimeLimit)
	case isClosed(l.opts.Limits.End):
		m.left = &l.report.Ended
	case m.tooSlow(now, &l.opts):
		m.left = &l.report.TooSlow
		l.opts.Logger.Warn("fetch: ended because it is too slow", "least", l.opts.Limits.MinRate, "seconds", l.opts.Limits.MinRateSeconds)
	default:
		for _, at := range [...]time.Time{m.deadline, m.next} {
			if !at.IsZero() && (wake.IsZero() || at.Before(*wake)) {
				*wake = at
			}
		}
		return false
	}
	*m.left += l.queues.drain() + l.list.abandon()
	return true
}

// tooSlow takes a sample of the rate each second.
func (m *limits) tooSlow(now time.Time, o *Options) bool {
	if m.next.IsZero() || now.Before(m.next) {
		return false
	}
	if !m.sampled.IsZero() {
		if float64(m.visits-m.sample) < o.Limits.MinRate*now.Sub(m.sampled).Seconds() {
			m.tooLow++
		} else {
			m.tooLow = 0
		}
	}
	m.sampled, m.sample, m.next = now, m.visits, now.Add(time.Second)
	return m.tooLow >= o.Limits.MinRateSeconds
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
