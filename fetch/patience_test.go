package fetch_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl/protocol"
)

// The fetch waits for a host whose robots.txt fails, and puts its pages off if that does not
// help. No other host waits.
func TestRobotsRetries(t *testing.T) {
	for _, c := range []struct {
		retries int
		wait    time.Duration
		heals   time.Duration // when
		asks    []time.Duration
		visits  int
		took    time.Duration
	}{
		{0, 0, time.Minute, []time.Duration{0}, 0, 25 * time.Second},
		{3, 0, 4 * time.Minute, []time.Duration{0, 5 * time.Minute}, 3, 5*time.Minute + 20*time.Second},
		{1, 0, 8 * time.Minute, []time.Duration{0, 5 * time.Minute}, 0, 5*time.Minute + 10*time.Second},
		{2, 0, 8 * time.Minute, []time.Duration{0, 5 * time.Minute, 10 * time.Minute}, 3, 10*time.Minute + 25*time.Second},
		{2, 20 * time.Minute, 21 * time.Minute, []time.Duration{0, 20 * time.Minute, 40 * time.Minute}, 3, 40*time.Minute + 25*time.Second},
		// The cache asks again after a minute, whatever the fetch waits.
		{4, 20 * time.Second, 30 * time.Second, []time.Duration{0, 65 * time.Second}, 3, 80 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &site{}
			urls := append(urlSet("ill.example.test", 3), urlSet(host, 5)...)
			r := newRig(t, s, urls...)
			ill := &illRobots{site: s, began: time.Now(), heals: c.heals}
			r.o.Protocol, r.o.Politeness.RobotsRetries, r.o.Politeness.RobotsWait = ill, c.retries, c.wait
			r.renew()
			rep := r.run(seg)
			took := time.Since(ill.began)
			if rep.Visits[protocol.Success] != 5+c.visits || rep.Visits[protocol.RobotsFailed] != 3-c.visits || took != c.took {
				t.Errorf("%+v: %v after %v", c, rep.Visits, took)
			}
			same := len(ill.asks) == len(c.asks)
			for i := 0; same && i < len(c.asks); i++ {
				// Each look takes a turn of the host, and so a pause.
				same = ill.asks[i] >= c.asks[i] && ill.asks[i] <= c.asks[i]+20*time.Second
			}
			if !same {
				t.Errorf("%+v: asked at %v", c, ill.asks)
			}
			if last := s.of(host + "/4")[0].begin.Sub(ill.began); last != 25*time.Second {
				t.Errorf("%+v: the last page of another host came after %v", c, last)
			}
		})
	}
}

// illRobots is a site with one host whose robots.txt is unavailable at first.
type illRobots struct {
	*site
	began time.Time
	heals time.Duration
	asks  []time.Duration
}

func (i *illRobots) Fetch(ctx context.Context, r protocol.Request) (protocol.Response, error) {
	if r.URL == "http://ill.example.test/robots.txt" {
		since := time.Since(i.began)
		i.asks = append(i.asks, since)
		if since < i.heals {
			return code(protocol.Failed), nil
		}
	}
	return i.site.Fetch(ctx, r)
}
