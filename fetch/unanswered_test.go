package fetch_test

import (
	"testing"
	"testing/synctest"

	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/protocol"
)

// A request over a kept connection that the server closed is made once more, under another
// grant and after the pause of the host. The first does not count as a failure of the host.
func TestUnansweredRequestIsRepeatedUnderAnotherGrant(t *testing.T) {
	for _, c := range []struct {
		unanswered, requests int
		code                 protocol.Code
	}{{0, 1, protocol.Success}, {1, 2, protocol.Success}, {5, 2, protocol.Failed}} {
		synctest.Test(t, func(t *testing.T) {
			left := c.unanswered
			s := &site{answer: func(string) protocol.Response {
				if left--; left < 0 {
					return body("text/html", "<p>text")
				}
				r := code(protocol.Failed)
				r.Unanswered = true
				return r
			}}
			url := "http://" + host + "/page"
			r := newRig(t, s, url)
			rep := r.run(seg)
			if got, v := len(s.of("/page")), r.visits(seg)[url]; got != c.requests || v.Outcome.Code != c.code || rep.Visited() != 1 {
				t.Errorf("%d unanswered: %d requests, %v, %d visits", c.unanswered, got, v.Outcome.Code, rep.Visited())
			}
			polite(t, s, hostdb.ByHost, five)
			failed := int64(0)
			if c.code == protocol.Failed {
				failed = 1
			}
			if h := hostOf(t, r, host); len(h.Grants) > 0 || h.Spent.Requests != int64(c.requests)+1 || h.Stats.Failed != failed {
				t.Errorf("%d unanswered: %+v", c.unanswered, h)
			}
		})
	}
}
