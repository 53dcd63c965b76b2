package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/metrics"
	"github.com/recrawl/recrawl/protocol/webtest"
	"github.com/recrawl/recrawl/stores/memstore"
)

func newCrawler(t *testing.T) *recrawl.Crawler {
	t.Helper()
	var db memstore.DB
	web := &webtest.Web{Hosts: 1, PagesPerHost: 2, Calm: true}
	c, err := recrawl.New(recrawl.Stores{Crawl: db.Crawl(), Hosts: db.Hosts(), Segments: db.Segments()}, recrawl.Options{Agent: "test", Protocol: web.Protocol(), Fetch: fetch.Options{Politeness: fetch.Politeness{Delay: -1}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); db.Close() })
	if _, err := c.Inject(t.Context(), web.Seeds()...); err != nil {
		t.Fatal(err)
	}
	return c
}

// read returns what Read records, by name and label.
func read(t *testing.T, s *metrics.Source) map[string]float64 {
	t.Helper()
	values := map[string]float64{}
	all := metrics.Instruments()
	s.Read(t.Context(), func(i int, label string, v float64) {
		name := all[i].Name + "/" + label
		if _, twice := values[name]; twice {
			t.Errorf("%s is recorded twice", name)
		}
		values[name] = v
	})
	return values
}

// countedStore counts its calls, and fails from the third on.
type countedStore struct{ calls int }

func (s *countedStore) Usage(context.Context) (map[string]int64, int64, error) {
	if s.calls++; s.calls >= 3 {
		return nil, 0, errors.New("the disk is gone")
	}
	return map[string]int64{"db": int64(s.calls)}, -1, nil
}

// The stores are read once a second, however often the source is; what cannot be read is left out and
// counted.
func TestStoresAreReadOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &countedStore{}
		s := metrics.NewSource(newCrawler(t), store)
		for second := 1; second <= 4; second++ {
			for range 10 {
				values := read(t, s)
				size, ok := values["recrawl.store.size/db"]
				if _, free := values["recrawl.disk.free/"]; free || store.calls != second || ok != (second < 3) || ok && size != float64(second) || values["recrawl.read.errors/"] != float64(max(0, second-2)) {
					t.Fatalf("second %d: %d calls, %v", second, store.calls, values)
				}
			}
			time.Sleep(time.Second)
		}
	})
}

// With more consumers than have series of their own, the others are added up.
func TestConsumersAreBounded(t *testing.T) {
	c := newCrawler(t)
	for i := range 60 {
		if _, err := c.AddConsumer(t.Context(), fmt.Sprintf("c%02d", i), recrawl.ConsumerOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Round(t.Context()); err != nil {
		t.Fatal(err)
	}
	values := read(t, metrics.NewSource(c, nil))
	_, more := values["recrawl.consumer.lag.events/c50"]
	if values["recrawl.consumer.lag.events/c49"] != 1 || more || values["recrawl.consumer.lag.events/all others"] != 10 {
		t.Errorf("%v", values)
	}
}

// A census is made at once, and again after a pause. Without one, and without a schedule that learns,
// pages and backlog are not known.
func TestCensusIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrawler(t)
		s := metrics.NewSource(c, nil)
		if values := read(t, s); len(values) == 0 || values["recrawl.estimate.time/"] != 0 {
			t.Errorf("before a census: %v", values)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- s.KeepCensus(ctx) }()
		synctest.Wait()
		if values := read(t, s); values["recrawl.backlog/never"] != 1 || values["recrawl.pages/copies"] != 0 {
			t.Errorf("before a round: %v", values)
		}
		if _, err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(6 * time.Minute)
		if values := read(t, s); values["recrawl.backlog/never"] != 0 || values["recrawl.pages/copies"] != 2 {
			t.Errorf("after a run: %v", values)
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}
