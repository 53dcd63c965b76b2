package httpproto_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/httpproto"
)

// Addresses are remembered for a while, whatever the case of the host, and
// forgotten when they can no longer be dialled.
func TestLookupsAreRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := map[string]int{}
		resolve := func(_ context.Context, network, host string) ([]netip.Addr, error) {
			asked[host]++
			if network != "ip" {
				t.Errorf("network %q", network)
			}
			return []netip.Addr{netip.MustParseAddr("192.0.2.1")}, nil
		}
		answer := func(nc net.Conn) {
			readRequest(nc)
			io.WriteString(nc, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello")
		}
		c := bubble(t, httpproto.Options{Resolver: resolve}, answer)
		for _, url := range []string{"http://name.example/", "http://NAME.example:81/", "http://other.example/", "http://name.example/2", "http://192.0.2.2/"} {
			get(t, c, url, protocol.Success, 200, "")
		}
		if got := fmt.Sprint(asked); got != "map[name.example:1 other.example:1]" {
			t.Errorf("lookups: %v", got)
		}
		time.Sleep(4 * time.Minute)
		get(t, c, "http://name.example/", protocol.Success, 200, "")
		time.Sleep(time.Minute) // use does not prolong it
		get(t, c, "http://name.example/", protocol.Success, 200, "")
		if asked["name.example"] != 2 {
			t.Errorf("after 5 min: lookups %v", asked)
		}

		c.SetDial(func(context.Context, string, string) (net.Conn, error) { return nil, io.EOF })
		for range 3 {
			if r := fetch(t, c, protocol.Request{URL: "http://name.example/"}); r.Outcome.Code != protocol.Failed {
				t.Errorf("%+v", r.Outcome)
			}
		}
		if asked["name.example"] != 4 {
			t.Errorf("three failures after a success: lookups %v", asked)
		}

		c = bubble(t, httpproto.Options{Resolver: resolve, LookupTime: -1}, answer)
		for range 3 {
			get(t, c, "http://none.example/", protocol.Success, 200, "")
		}
		if asked["none.example"] != 3 || c.Remembered() != 0 {
			t.Errorf("without a cache: lookups %v, %d remembered", asked, c.Remembered())
		}
	})
}

func TestLookupsAreBounded(t *testing.T) {
	fails := errors.New("no")
	c := newClient(t, httpproto.Options{Resolver: func(_ context.Context, _, host string) ([]netip.Addr, error) {
		if strings.HasPrefix(host, "bad") {
			return nil, fails
		}
		return make([]netip.Addr, 10*httpproto.MaxAddrs), nil
	}})
	for i := range httpproto.MaxLookups * 3 / 2 {
		addrs, err := c.Lookup(t.Context(), fmt.Sprintf("h%d.example", i))
		if len(addrs) != httpproto.MaxAddrs || cap(addrs) > 2*httpproto.MaxAddrs || err != nil {
			t.Fatalf("%d addresses, room for %d, %v", len(addrs), cap(addrs), err)
		}
	}
	n := c.Remembered()
	if n > httpproto.MaxLookups || n < httpproto.MaxLookups/2 {
		t.Errorf("%d hosts remembered", n)
	}
	c.Lookup(t.Context(), strings.Repeat("x", 1000))
	if _, err := c.Lookup(t.Context(), "bad"); !errors.Is(err, fails) {
		t.Errorf("error %v", err)
	}
	if c.Remembered() != n {
		t.Errorf("a failure or a name that is too long is remembered")
	}
}

// A name that points elsewhere at each lookup, its addresses remembered or not,
// never leads to one that is not public.
func TestRebinding(t *testing.T) {
	for _, remember := range []time.Duration{0, -1} {
		n := 0
		c, err := httpproto.New(httpproto.Options{Agent: "bot", LookupTime: remember, Resolver: func(context.Context, string, string) ([]netip.Addr, error) {
			n++
			return []netip.Addr{netip.MustParseAddr([]string{"127.0.0.1", "10.0.0.1", "::1", "169.254.169.254", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::"}[n%7])}, nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 1000 {
			r := fetch(t, c, protocol.Request{URL: fmt.Sprintf("http://name%d.example/", i%3)})
			if r.Outcome.Code != protocol.Refused || r.Addr != "" {
				t.Fatalf("visit %d: %+v of %q", i, r.Outcome, r.Addr)
			}
		}
		if n != 1000 {
			t.Errorf("%d lookups: addresses that were refused are remembered", n)
		}
		c.Close()
	}
}
