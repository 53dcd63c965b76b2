package recrawl_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/protocol/webtest"
)

// A reader without a cursor gets the events behind a position and waits for more. If they were removed, it
// gets an error.
func TestFollowEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(&webtest.Web{Hosts: 1, PagesPerHost: 20, Calm: true})
		s.opts.Generate.TopN = 5
		c := s.crawler(t)
		defer c.Close()
		if _, err := c.Inject(t.Context(), s.web.Seeds()...); err != nil {
			t.Fatal(err)
		}
		start := func(position string, o recrawl.ConsumerOptions) (positions chan string, ended chan error, stop func()) {
			ctx, stop := context.WithCancel(t.Context())
			positions, ended = make(chan string, 100), make(chan error, 1)
			go func() {
				for e, err := range c.FollowEvents(ctx, position, o) {
					if err != nil {
						ended <- err
						return
					}
					positions <- e.Position
				}
			}()
			return positions, ended, stop
		}
		drain := func(c chan string) (all []string) {
			synctest.Wait()
			for len(c) > 0 {
				all = append(all, <-c)
			}
			return all
		}
		first, firstEnded, stop := start("", recrawl.ConsumerOptions{})
		if _, err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		all := drain(first)
		if len(all) != 20 {
			t.Fatalf("%d events: %v", len(all), all)
		}
		now, _, stopNow := start("", recrawl.ConsumerOptions{})
		beginning, _, stopBeginning := start("", recrawl.ConsumerOptions{Start: recrawl.StartAtBeginning})
		behind, _, stopBehind := start(all[7], recrawl.ConsumerOptions{})
		if got := drain(now); len(got) > 0 {
			t.Errorf("from now on: %v", got)
		}
		if got := drain(beginning); !slices.Equal(got, all) {
			t.Errorf("from the beginning: %v, want %v", got, all)
		}
		if got := drain(behind); !slices.Equal(got, all[8:]) {
			t.Errorf("behind %s: %v, want %v", all[7], got, all[8:])
		}
		for _, f := range []func(){stop, stopNow, stopBeginning, stopBehind} {
			f()
		}
		if err := <-firstEnded; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if err := c.RemoveSegment(t.Context(), segments(t, s)[0]); err != nil {
			t.Fatal(err)
		}
		for _, position := range []string{all[0], "99.0.0", "nonsense"} {
			_, ended, stop := start(position, recrawl.ConsumerOptions{})
			if err := <-ended; !errors.Is(err, recrawl.ErrNotInFeed) {
				t.Errorf("behind %s: %v", position, err)
			}
			stop()
		}
		_, ended, _ := start("", recrawl.ConsumerOptions{Start: recrawl.StartWithSnapshot})
		if err := <-ended; err == nil {
			t.Error("a snapshot began")
		}
	})
}
