package fetch_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/segment"
)

// What a kill may cost grows with what was done: the first visits are kept a
// tenth of a second after they came, later ones within two seconds.
func TestFirstVisitsAreKeptSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &site{latency: 10 * time.Millisecond}
		r := newRig(t, s, urlSet("h0.example.test", 600)...)
		r.o.Politeness.Delay, r.o.Threads = -1, 1
		ended := make(chan error)
		go func() {
			_, err := fetch.Run(t.Context(), r.db.Segments(), seg, r.o)
			ended <- err
		}()
		begin := time.Now()
		for _, at := range []struct {
			after time.Duration
			kept  int // blocks
		}{{90 * time.Millisecond, 0}, {200 * time.Millisecond, 1}, {500 * time.Millisecond, 2}, {time.Second, 3}, {5 * time.Second, 5}} {
			time.Sleep(time.Until(begin.Add(at.after)))
			synctest.Wait()
			info, _ := r.db.Segments().Stat(t.Context(), seg, segment.FetchPart)
			if info.Blocks != at.kept {
				t.Errorf("after %v %d blocks are kept, want %d", at.after, info.Blocks, at.kept)
			}
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
