package recrawl_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/segment"
)

// A clock that is ahead for a day keeps no segment longer than those after it.
func TestRetentionByAgeWhenTheClockWasAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := changingWeb()
		s.opts.Retention = recrawl.Retention{Age: 48 * time.Hour}
		c := s.seeded(t)
		defer c.Close()
		s.live(t, c, 3)
		right := s.now
		s.now = s.now.AddDate(10, 0, 0)
		s.live(t, c, 1)
		s.now = right.AddDate(0, 0, 1)
		ahead := segments(t, s)
		s.live(t, c, 5)
		for _, name := range segments(t, s) {
			if slices.Contains(ahead, name) {
				t.Errorf("%s is kept", name)
			}
		}
	})
}

func TestDroppedConsumerFreesSegments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := changingWeb()
		s.opts.Retention.Segments = 1
		c := s.seeded(t)
		defer c.Close()
		dead := s.consumer(t, c, "dead", recrawl.ConsumerOptions{})
		if s.live(t, c, 3); len(segments(t, s)) < 6 {
			t.Fatalf("%d segments", len(segments(t, s)))
		}
		if err := c.RemoveSegment(t.Context(), segments(t, s)[0]); !errors.Is(err, recrawl.ErrUnacknowledged) || !strings.Contains(err.Error(), "dead") {
			t.Error(err)
		}
		if err := c.DropConsumer(t.Context(), "dead"); err != nil || len(segments(t, s)) != 1 {
			t.Errorf("%v, %d segments", err, len(segments(t, s)))
		}
		if err := c.DropConsumer(t.Context(), "dead"); !errors.Is(err, recrawl.ErrNoConsumer) {
			t.Error(err)
		}
		if err := dead.Ack(t.Context(), "1.0.0"); !errors.Is(err, recrawl.ErrNoConsumer) {
			t.Error(err)
		}
		for _, err := range dead.Events(t.Context()) {
			if !errors.Is(err, recrawl.ErrNoConsumer) {
				t.Error(err)
			}
		}
		if all, err := c.Consumers(t.Context()); err != nil || len(all) > 0 {
			t.Errorf("%v, %v", all, err)
		}
	})
}

// unsyncedCursors notes whether a cursor was written and is not synced.
type unsyncedCursors struct {
	crawldb.Store
	unsynced *bool
}

func (s unsyncedCursors) Update(ctx context.Context, b crawldb.Batch) error {
	if b.Marks != nil {
		for name := range b.Marks() {
			*s.unsynced = *s.unsynced || strings.HasPrefix(name, "consumer/")
		}
	}
	return s.Store.Update(ctx, b)
}

func (s unsyncedCursors) Sync(ctx context.Context) error {
	*s.unsynced = false
	return s.Store.Sync(ctx)
}

type removals struct {
	segment.Store
	removed func(name string)
}

func (s removals) Remove(ctx context.Context, name string) error {
	s.removed(name)
	return s.Store.Remove(ctx, name)
}

// A power cut must not take back an acknowledgement and leave the segment away.
func TestAcknowledgementIsSyncedBeforeItsSegmentIsRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := changingWeb()
		s.opts.Retention.Segments = 1
		unsynced, removed := false, 0
		stores := s.stores()
		stores.Crawl = unsyncedCursors{stores.Crawl, &unsynced}
		stores.Segments = removals{stores.Segments, func(name string) {
			if removed++; unsynced {
				t.Errorf("%s is removed, and its acknowledgement may be lost", name)
			}
		}}
		c, err := recrawl.New(stores, s.opts)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Inject(t.Context(), s.web.Seeds()...); err != nil {
			t.Fatal(err)
		}
		s.consumer(t, c, "index", recrawl.ConsumerOptions{})
		var x signatures
		for range 5 {
			s.live(t, c, 1)
			x.read(t, c, "index", -1)
		}
		if removed < 5 {
			t.Errorf("%d segments were removed", removed)
		}
		names := segments(t, s)
		if err := c.RemoveSegment(t.Context(), names[len(names)-1]); err != nil {
			t.Error(err)
		}
	})
}
