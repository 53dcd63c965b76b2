package recrawl_test

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/webtest"
	"github.com/recrawl/recrawl/segment"
)

// Seeds that cannot be used are no error; the Logger gets them.
func TestUnusableSeedsAreReported(t *testing.T) {
	s := newSetup(&webtest.Web{Hosts: 1})
	var log strings.Builder
	s.opts.Logger = slog.New(slog.NewTextHandler(&log, nil))
	c := s.crawler(t)
	defer c.Close()
	r, err := c.Inject(t.Context(), "example.com", "doc://guide/a", s.web.Seeds()[0])
	if err != nil || r.New != 1 || r.Invalid != 2 || len(r.Bad) != 2 {
		t.Errorf("%+v, %v", r, err)
	}
	if err := errors.Join(err, r.Err()); err == nil || strings.Count(err.Error(), "\n") != 1 || !strings.Contains(err.Error(), "doc://guide/a") {
		t.Errorf("the report as an error is %v", err)
	}
	if !strings.Contains(log.String(), `seeds were left out`) || !strings.Contains(log.String(), "example.com") || !strings.Contains(log.String(), "invalid=2") {
		t.Errorf("the log has %q", &log)
	}
}

func TestStagesOneByOneAreARound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := func() *setup { return newSetup(&webtest.Web{Hosts: 2, PagesPerHost: 25}) }
		calm := web()
		calm.run(t, calm.web.Seeds()...)
		want := calm.dump(t)
		for name, stages := range map[string]func(*recrawl.Crawler, string) error{
			"each": func(c *recrawl.Crawler, seg string) error {
				_, err1 := c.FetchOnly(t.Context(), seg)
				_, err2 := c.Parse(t.Context(), seg)
				_, err3 := c.Update(t.Context(), seg)
				_, err4 := c.InvertLinks(t.Context(), seg)
				return errors.Join(err1, err2, err3, err4, c.Finish(t.Context(), seg))
			},
			"fetch, then a round": func(c *recrawl.Crawler, seg string) error {
				_, err1 := c.FetchOnly(t.Context(), seg)
				r, err2 := c.Round(t.Context())
				if len(r.Segments) != 1 || r.Segments[0] != seg {
					t.Errorf("the round worked on %v, not %s", r.Segments, seg)
				}
				return errors.Join(err1, err2)
			},
			"a round": func(c *recrawl.Crawler, seg string) error {
				_, err := c.Round(t.Context())
				return err
			},
		} {
			s := web()
			c := s.crawler(t)
			if _, err := c.Inject(t.Context(), s.web.Seeds()...); err != nil {
				t.Fatal(err)
			}
			for {
				g, err := c.Generate(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if len(g.Segments) == 0 {
					break
				}
				if err := stages(c, g.Segments[0]); err != nil {
					t.Fatal(name, err)
				}
				if done, err := c.Updated(t.Context(), g.Segments[0]); !done || err != nil {
					t.Errorf("%s: %s is not updated: %v", name, g.Segments[0], err)
				}
			}
			c.Close()
			if got := s.dump(t); got != want {
				t.Errorf("%s: %s", name, firstDifference(got, want))
			}
		}
	})
}

// Lists by address are made by the addresses that the protocol connects to, whatever the
// system says of the names.
func TestListsByTheAddressesOfTheProtocol(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(&webtest.Web{Hosts: 4, PagesPerHost: 5, Calm: true})
		p := &mapped{Protocol: s.web.Protocol(), addrs: map[string]netip.Addr{}}
		for h := range 4 {
			p.addrs[s.web.Host(h)] = netip.AddrFrom4([4]byte{192, 0, 2, byte(h / 2)})
		}
		s.opts.Protocol = p
		s.opts.Generate.Lists.Count, s.opts.Generate.Lists.By = 10, hostdb.ByIP
		c := s.crawler(t)
		defer c.Close()
		if _, err := c.Inject(t.Context(), s.web.Seeds()...); err != nil {
			t.Fatal(err)
		}
		g, err := c.Generate(t.Context())
		if err != nil || g.Selected != 4 {
			t.Fatalf("%+v, %v", g, err)
		}
		lists := map[netip.Addr]map[int]bool{}
		for d, err := range segment.Records[crawldb.Datum](t.Context(), s.db.Segments(), g.Segments[0]) {
			if err != nil {
				t.Fatal(err)
			}
			turn, err := segment.TakePlacement(&d)
			if err != nil {
				t.Fatal(err)
			}
			addr := p.addrs[crawldb.Host(d.URL)]
			if lists[addr] == nil {
				lists[addr] = map[int]bool{}
			}
			lists[addr][turn.List] = true
		}
		if len(lists) != 2 || p.asked.Load() != 4 {
			t.Errorf("%d addresses, %d names were looked up", len(lists), p.asked.Load())
		}
		for addr, on := range lists {
			if len(on) != 1 {
				t.Errorf("hosts at %v are on %d lists", addr, len(on))
			}
		}
	})
}

// mapped is a protocol that knows where hosts are.
type mapped struct {
	protocol.Protocol
	addrs map[string]netip.Addr
	asked atomic.Int64
}

func (p *mapped) Lookup(_ context.Context, host string) ([]netip.Addr, error) {
	p.asked.Add(1)
	return []netip.Addr{p.addrs[host]}, nil
}
