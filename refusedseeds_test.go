package recrawl_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/webtest"
	"github.com/recrawl/recrawl/urlfilter"
)

// rejectPath is a filter that rejects the URLs that end in it.
type rejectPath string

func (p rejectPath) Accept(url string) bool { return !strings.HasSuffix(url, string(p)) }

// linkingSite is a host whose robots.txt forbids /forbidden. Each of its pages links there.
func linkingSite(_ context.Context, r protocol.Request) (protocol.Response, error) {
	resp := protocol.Response{Outcome: protocol.Outcome{Code: protocol.Success}}
	resp.Content = page.Content{Type: "text/html", Body: []byte("<a href=/forbidden/linked>a</a>")}
	if strings.HasSuffix(r.URL, "/robots.txt") {
		resp.Content = page.Content{Type: "text/plain", Body: []byte("User-agent: *\nDisallow: /forbidden\n")}
	}
	return resp, nil
}

// A seed that is not requested is named by the report, whose Err is not nil, and if it was
// selected by an event. A page that is no seed is not.
func TestRefusedSeedIsReported(t *testing.T) {
	gopher := urlfilter.Default().AllowSchemes("gopher")
	stricter := urlfilter.Default()
	stricter.Filters = append(stricter.Filters, rejectPath("/rejected"))
	for _, c := range []struct {
		name, seed, reason string
		events             int
		protocol           protocol.Protocol
		injected, rules    *urlfilter.Rules // when the seed is injected, and later
	}{
		{name: "guard", seed: "http://127.0.0.1:8000/", reason: "address: loopback", events: 1},
		{name: "port", seed: "http://127.0.0.1:25/", reason: "url: port 25 is that of another protocol", events: 1},
		{name: "robots.txt", seed: "http://a.example.test/forbidden/", reason: "robots.txt", events: 1, protocol: protocolFunc(linkingSite)},
		{name: "scheme", seed: "gopher://a.example.test/", reason: "url: no protocol for its scheme", events: 1, protocol: protocol.Mux{"http": protocolFunc(linkingSite)}, injected: gopher, rules: gopher},
		{name: "rules that have changed", seed: "http://a.example.test/rejected", reason: "the rules reject it", protocol: protocolFunc(linkingSite), rules: stricter},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSetup(&webtest.Web{Hosts: 1})
			var events []string
			s.opts.Protocol, s.opts.Rules = c.protocol, c.injected
			s.opts.OnPage = func(_ context.Context, e recrawl.PageEvent) error {
				if e.Kind == recrawl.PageRefused {
					events = append(events, e.URL+": "+e.Visit.Outcome.Reason)
				}
				return nil
			}
			crawler := s.crawler(t)
			seeds := []string{c.seed}
			if c.protocol != nil { // nil is a client of the network
				seeds = append(seeds, "http://a.example.test/")
			}
			r, err := crawler.Inject(t.Context(), seeds...)
			crawler.Close()
			if err != nil || r.Err() != nil || r.New != len(seeds) {
				t.Fatal(r, err)
			}
			s.opts.Rules = c.rules
			rep := s.run(t)
			if len(rep.RefusedSeeds) != 1 || rep.RefusedSeeds[0].URL != c.seed || rep.RefusedSeeds[0].Outcome.Reason != c.reason {
				t.Errorf("the report names %+v", rep.RefusedSeeds)
			}
			if want := fmt.Sprintf("recrawl: the seed %s was not requested: %s", c.seed, c.reason); rep.Err() == nil || rep.Err().Error() != want {
				t.Errorf("Err is %v, want %s", rep.Err(), want)
			}
			if !strings.Contains(rep.String(), "refused seed") {
				t.Errorf("the report prints %s", rep)
			}
			if len(events) != c.events || c.events > 0 && events[0] != c.seed+": "+c.reason {
				t.Errorf("events: %q", events)
			}
		})
	}
}
