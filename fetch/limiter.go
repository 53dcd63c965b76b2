package fetch

import (
	"sync"
	"time"
)

// A Limiter limits the load of a crawl on the network, over all hosts: requests
// and bytes per second. A Limiter shared by several fetches is one budget for all
// of them. It may be used from many goroutines at once, and must not be changed
// or copied once in use.
type Limiter struct {
	// Requests is how many requests may begin per second, robots.txt included;
	// there are no bursts. Zero or less means any number.
	Requests float64
	// Bytes is how many bytes of bodies may be read per second on average, as sent;
	// zero or less means any number. The size of a body is known only once it has
	// come, so the limit may be exceeded by what was under way, which is then made
	// up for. (Nutch: fetcher.bandwidth.target, which changes the number of
	// threads.)
	Bytes float64

	mu sync.Mutex
	// requests and bytes are when the next request may begin.
	requests, bytes time.Time
	// meanBytes is the recent average size of a body.
	meanBytes float64
}

// A permit is permission for one request.
type permit struct {
	before, after time.Time // of Limiter.requests
	bytes         float64   // expected
}

// begin requests permission to make a request now. If refused, it returns when
// to try again.
func (l *Limiter) begin(now time.Time) (g permit, again time.Time) {
	if l == nil {
		return permit{}, time.Time{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if again = later(l.requests, l.bytes); again.After(now) {
		return permit{}, again
	}
	if l.Requests > 0 {
		g.before = l.requests
		l.requests = now.Add(seconds(1 / l.Requests))
		g.after = l.requests
	}
	if l.Bytes > 0 {
		g.bytes = l.meanBytes
		l.bytes = later(l.bytes, now).Add(seconds(g.bytes / l.Bytes))
	}
	return g, time.Time{}
}

// end reports the result of a request: whether it was made, and if so how many
// bytes came.
func (l *Limiter) end(g permit, made bool, n int64, now time.Time) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	// An unused grant is returned only if there was none since: otherwise some
	// request would be too early.
	if !made && l.requests.Equal(g.after) {
		l.requests = g.before
	}
	if l.Bytes <= 0 {
		return
	}
	l.bytes = later(l.bytes, now.Add(-seconds(g.bytes/l.Bytes))).Add(seconds((float64(n) - g.bytes) / l.Bytes))
	if made {
		l.meanBytes += (float64(n) - l.meanBytes) / 16
	}
}

// seconds returns a number of seconds as a duration, at most a year.
func seconds(s float64) time.Duration {
	const year = 365 * 24 * 3600
	return time.Duration(max(-year, min(s, year)) * float64(time.Second))
}
