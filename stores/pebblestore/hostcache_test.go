package pebblestore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/hostdb"
)

// An update gets the host that the engine stores, also if the cache has it. The test makes random
// updates, lets some of them fail, and adds, enlarges and removes robots.txt files.
func TestHostCacheReturnsTheStoredHost(t *testing.T) {
	db, err := Open(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	s, ctx := &db.hosts, context.Background()
	rnd := rand.New(rand.NewPCG(1, 2))
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	stop := errors.New("stop")
	for step := range 1200 {
		name := fmt.Sprintf("h%d.example", rnd.IntN(20))
		want, err := s.Get(ctx, name)
		known := err == nil
		var h *hostdb.Host
		use, fails := ctx, rnd.IntN(5)
		if fails == 0 {
			use = cancelled
		}
		err = s.Update(use, name, func(old *hostdb.Host) (*hostdb.Host, error) {
			if (old != nil) != known || known && !reflect.DeepEqual(*old, want) {
				t.Fatalf("step %d: lent %+v, the engine has %+v", step, old, want)
			}
			if fails == 1 {
				return nil, stop
			}
			h = &hostdb.Host{Name: name}
			if old != nil {
				*h = *old
			}
			switch rnd.IntN(8) {
			case 0:
				h = nil
			case 1:
				body := bytes.Repeat([]byte("a"), rnd.IntN(2*maxCachedSide))
				h.Robots = []hostdb.Robots{{Origin: "http://" + name, Status: 200, Body: body}}
			case 2:
				h.Robots = nil
			case 3:
				return old, nil
			default:
				h.NextFetch = time.UnixMilli(int64(step)).UTC()
			}
			return h, nil
		})
		if (fails == 1) != errors.Is(err, stop) || (fails == 0) != errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
}

func TestHostCacheIsBounded(t *testing.T) {
	var c hostCache
	value := make([]byte, 60)
	for i := range 40_000 {
		c.put(fmt.Sprintf("h%06d.example", i), hostValues{value, make([]byte, i%100)})
		for _, m := range []map[string]hostValues{c.young, c.old} {
			if n := len(m) * (hostEntry + 60); n > maxHostCache+hostEntry+200 {
				t.Fatalf("%d hosts in one generation", len(m))
			}
		}
	}
	size := 0
	for name, v := range c.young {
		size += v.size(name)
	}
	if size != c.size {
		t.Errorf("counted %d bytes, there are %d", c.size, size)
	}
	// Those in use stay.
	c = hostCache{}
	c.put("busy.example", hostValues{value, nil})
	for i := range 40_000 {
		c.put(fmt.Sprintf("h%06d.example", i), hostValues{value, nil})
		if _, ok := c.get("busy.example"); !ok {
			t.Fatalf("forgotten after %d others", i)
		}
	}
	c.put("long.example", hostValues{value, []byte(strings.Repeat("a", maxCachedSide+1))})
	if v, ok := c.get("long.example"); !ok || v.side != nil {
		t.Error("a long side value is kept")
	}
	if c.forget("long.example"); c.size <= 0 {
		t.Error(c.size)
	}
	if _, ok := c.get("long.example"); ok {
		t.Error("what was forgotten is known")
	}
}
