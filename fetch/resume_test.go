package fetch_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/stores/memstore"
)

func threeHosts(n int) []string {
	var urls []string
	for i := range n {
		for h := range 3 {
			urls = append(urls, fmt.Sprintf("http://h%d.example.test/%d", h, i))
		}
	}
	return urls
}

func TestCancelledFetchResumes(t *testing.T) {
	for _, threads := range []int{1, 2, 50} {
		for at := 50 * time.Millisecond; at < 30*time.Second; at += 2370 * time.Millisecond {
			synctest.Test(t, func(t *testing.T) {
				s := &site{latency: 300 * time.Millisecond}
				r := newRig(t, s, threeHosts(6)...)
				r.o.Politeness.Delay, r.o.Threads = time.Second, threads
				visits := 0
				for i := 0; ; i++ {
					ctx, cancel := context.WithTimeout(t.Context(), at)
					rep, err := fetch.Run(ctx, r.db.Segments(), seg, r.o)
					cancel()
					if rep.Resumed != visits && err == nil {
						t.Errorf("%d resumed of %d visits", rep.Resumed, visits)
					}
					if visits += rep.Visited(); err == nil {
						break
					}
					if !errors.Is(err, context.DeadlineExceeded) {
						t.Fatal(err)
					}
					at += 700 * time.Millisecond // so that it ends
				}
				if visits != 18 || len(r.visits(seg)) != 18 {
					t.Errorf("%d visits were made and %d kept of 18", visits, len(r.visits(seg)))
				}
				aligned(t, r.db.Segments(), seg)
				whole := map[string]int{}
				for _, a := range s.of("http") {
					if !a.cut {
						whole[a.url]++
					}
				}
				for u, n := range whole {
					if n != 1 {
						t.Errorf("cancelled each %v with %d threads: %s was fetched %d times", at, threads, u, n)
					}
				}
				for h := range 3 {
					for _, gap := range gaps(t, s.of(fmt.Sprintf("h%d.", h))) {
						if gap < time.Second {
							t.Errorf("pause of %v", gap)
						}
					}
				}
				rep := r.run(seg)
				if !rep.Already || rep.Visited() != 0 {
					t.Errorf("a complete segment: %+v", rep)
				}
			})
		}
	}
}

var errDied = errors.New("died")

// dying is a segment store that is dead from its n-th call on. Writes that it
// took before are kept.
type dying struct {
	segment.Store
	n *int
}

func (s dying) dead() bool { *s.n--; return *s.n <= 0 }

func (s dying) Append(ctx context.Context, name, part string, keep int) (segment.BlockWriter, error) {
	if s.dead() {
		return nil, errDied
	}
	w, err := s.Store.Append(ctx, name, part, keep)
	return dyingWriter{w, s}, err
}

type dyingWriter struct {
	segment.BlockWriter
	s dying
}

func (w dyingWriter) Append(ctx context.Context, b []byte) error {
	if w.s.dead() {
		return errDied
	}
	return w.BlockWriter.Append(ctx, b)
}

func (w dyingWriter) Sync(ctx context.Context) error {
	if w.s.dead() {
		return errDied
	}
	return w.BlockWriter.Sync(ctx)
}

func (w dyingWriter) Commit(ctx context.Context) error {
	if w.s.dead() {
		return errDied
	}
	return w.BlockWriter.Commit(ctx)
}

func TestFetchResumesAfterItsStoreFailed(t *testing.T) {
	for n := 1; ; n++ {
		finished := false
		synctest.Test(t, func(t *testing.T) {
			s := &site{latency: 300 * time.Millisecond}
			r := newRig(t, s, threeHosts(5)...)
			left := n
			_, err := fetch.Run(t.Context(), dying{r.db.Segments(), &left}, seg, r.o)
			if err == nil {
				finished = true
				return
			}
			if !errors.Is(err, errDied) {
				t.Fatal(err)
			}
			kept := map[string]bool{}
			for block, err := range segment.Partial[segment.Visit](t.Context(), r.db.Segments(), seg, 0) {
				if err != nil && !errors.Is(err, segment.ErrNotFound) {
					t.Fatal(err)
				}
				for _, v := range block {
					kept[v.URL] = true
				}
			}
			before := len(s.of("http"))
			rep := r.run(seg)
			if rep.Resumed != len(kept) || rep.Visited()+rep.Resumed != 15 || len(r.visits(seg)) != 15 {
				t.Errorf("died at call %d with %d kept: %+v", n, len(kept), rep)
			}
			aligned(t, r.db.Segments(), seg)
			for _, a := range s.of("http")[before:] {
				if kept[a.url] {
					t.Errorf("died at call %d: %s was kept and fetched again", n, a.url)
				}
			}
			for h := range 3 {
				if rec := hostOf(t, r, fmt.Sprintf("h%d.example.test", h)); len(rec.Grants) > 0 {
					t.Errorf("died at call %d: the turn of %s was not given back", n, rec.Name)
				}
			}
		})
		if finished {
			if n < 30 {
				t.Fatalf("only %d calls: the test does not test anything", n)
			}
			return
		}
		if t.Failed() {
			return
		}
	}
}

// deadHosts is a host store that fails from its n-th update on.
type deadHosts struct {
	hostdb.Store
	n *int
}

func (s deadHosts) Update(ctx context.Context, name string, next func(*hostdb.Host) (*hostdb.Host, error)) error {
	if *s.n--; *s.n <= 0 {
		return errDied
	}
	return s.Store.Update(ctx, name, next)
}

func TestHostStoreThatFailsEndsTheRun(t *testing.T) {
	for n := 1; n < 40; n++ {
		synctest.Test(t, func(t *testing.T) {
			s := &site{latency: 300 * time.Millisecond}
			r := newRig(t, s, threeHosts(4)...)
			o, left := r.o, n
			o.Threads = 1 // or the counter needs a lock
			o.Hosts = deadHosts{r.db.Hosts(), &left}
			if _, err := fetch.Run(t.Context(), r.db.Segments(), seg, o); !errors.Is(err, errDied) && n < 24 {
				t.Fatalf("call %d failed: %v", n, err)
			}
			if took := len(s.of("http")); took > n {
				t.Errorf("%d requests went out, %d updates came first", took, n)
			}
			time.Sleep(time.Hour) // a grant that could not be released ends
			r.run(seg)
			if len(r.visits(seg)) != 12 {
				t.Errorf("call %d failed: %d visits", n, len(r.visits(seg)))
			}
			aligned(t, r.db.Segments(), seg)
		})
	}
}

func TestNoContent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &site{}
		r := newRig(t, s, threeHosts(2)...)
		r.o.NoContent = true
		rep := r.run(seg)
		if rep.Parsed != 6 {
			t.Errorf("%+v", rep)
		}
		aligned(t, r.db.Segments(), seg)
		info, err := r.db.Segments().Stat(t.Context(), seg, segment.ContentPart)
		if err != nil || !info.Committed {
			t.Errorf("%+v, %v", info, err)
		}
		if got := contents(t, r.db.Segments(), seg); len(got) > 0 {
			t.Errorf("%d contents", len(got))
		}
		// Without contents and unparsed there is nothing to parse.
		r.list("s2", pageURLs(host, 2)...)
		o := r.o
		o.Parser = nil
		if _, err := fetch.Run(t.Context(), r.db.Segments(), "s2", o); err != nil {
			t.Fatal(err)
		}
		if rep, err := fetch.Parse(t.Context(), r.db.Segments(), "s2", r.o); err != nil || rep.Parsed+rep.ParseFailed != 0 {
			t.Errorf("%+v, %v", rep, err)
		}
		if p := r.parses("s2"); len(p) > 0 {
			t.Errorf("%+v", p)
		}
	})
}

// copyParts copies raw parts to another store.
func copyParts(t *testing.T, from segment.Store, name string, parts ...string) *memstore.Segments {
	t.Helper()
	to := new(memstore.Segments)
	for _, part := range parts {
		w, err := to.Append(t.Context(), name, part, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range blocks(t, from, name, part) {
			if err := w.Append(t.Context(), b); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

func blocks(t *testing.T, s segment.Store, name, part string) [][]byte {
	t.Helper()
	var out [][]byte
	for b, err := range s.Read(t.Context(), name, part, 0) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, slices.Clone(b))
	}
	return out
}

func TestParseLaterIsParseAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, richSite(), richURLs()...)
		r.o.Parser = picky(r.o.Parser)
		atOnce := r.run(seg)
		aligned(t, r.db.Segments(), seg)
		if atOnce.Parsed == 0 || atOnce.ParseFailed == 0 || atOnce.Links == 0 || atOnce.LinksRejected == 0 {
			t.Fatalf("the site does not test anything: %+v", atOnce)
		}
		fetched := []string{segment.GeneratePart, segment.FetchPart, segment.ContentPart}
		same := func(s segment.Store, name string) {
			t.Helper()
			for _, part := range []string{segment.ParseTextPart, segment.ParseDataPart, segment.ParsePart} {
				got, want := blocks(t, s, name, part), blocks(t, r.db.Segments(), seg, part)
				if !slices.EqualFunc(got, want, slices.Equal) {
					t.Errorf("%s differs", part)
				}
			}
		}
		later := copyParts(t, r.db.Segments(), seg, fetched...)
		rep, err := fetch.Parse(t.Context(), later, seg, r.o)
		if err != nil {
			t.Fatal(err)
		}
		if rep.Parsed != atOnce.Parsed || rep.ParseFailed != atOnce.ParseFailed || rep.Links != atOnce.Links || rep.LinksRejected != atOnce.LinksRejected {
			t.Errorf("later %+v\nat once %+v", rep, atOnce)
		}
		same(later, seg)
		if rep, err := fetch.Parse(t.Context(), later, seg, r.o); err != nil || !rep.Already {
			t.Errorf("again: %+v, %v", rep, err)
		}
		// Whatever happens in between.
		for n := 1; ; n++ {
			s := copyParts(t, r.db.Segments(), seg, fetched...)
			left := n
			_, err := fetch.Parse(t.Context(), dying{s, &left}, seg, r.o)
			if err == nil {
				if n < 8 {
					t.Fatalf("only %d calls", n)
				}
				break
			}
			if !errors.Is(err, errDied) {
				t.Fatal(err)
			}
			if _, err := fetch.Parse(t.Context(), s, seg, r.o); err != nil {
				t.Fatalf("died at call %d: %v", n, err)
			}
			same(s, seg)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := fetch.Parse(ctx, copyParts(t, r.db.Segments(), seg, fetched...), seg, r.o); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
	})
}

func TestFetchBegunWithoutParser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		want := newRig(t, richSite(), richURLs()...)
		want.run(seg)
		pages := len(want.visits(seg))
		for n := 1; ; n++ {
			r := newRig(t, richSite(), richURLs()...)
			o, left := r.o, n
			o.Parser = nil
			_, err := fetch.Run(t.Context(), dying{r.db.Segments(), &left}, seg, o)
			if err == nil {
				break
			}
			if !errors.Is(err, errDied) {
				t.Fatal(err)
			}
			kept := 0
			for b := range segment.Partial[segment.Visit](t.Context(), r.db.Segments(), seg, 0) {
				kept += len(b)
			}
			rep, err := fetch.Run(t.Context(), r.db.Segments(), seg, r.o)
			if err != nil {
				t.Fatalf("died at call %d: %v", n, err)
			}
			if rep.Resumed != kept || rep.Visited()+kept != pages {
				t.Errorf("died at call %d with %d pages kept: %+v", n, kept, rep)
			}
			aligned(t, r.db.Segments(), seg)
			if got, want := len(r.parses(seg)), len(want.parses(seg)); got != want {
				t.Errorf("died at call %d: %d pages parsed, want %d", n, got, want)
			}
		}
	})
}

func TestNothingToFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, &site{})
		if rep := r.run(seg); rep.Visited() != 0 || rep.Already {
			t.Errorf("%+v", rep)
		}
		aligned(t, r.db.Segments(), seg)
		if _, err := fetch.Run(t.Context(), r.db.Segments(), "none", r.o); !errors.Is(err, segment.ErrNotFound) {
			t.Errorf("no such segment: %v", err)
		}
		if _, err := fetch.Run(t.Context(), r.db.Segments(), seg, fetch.Options{Hosts: r.o.Hosts}); err == nil {
			t.Error("no protocol, no error")
		}
		if _, err := fetch.Run(t.Context(), r.db.Segments(), seg, fetch.Options{Protocol: r.o.Protocol}); err == nil {
			t.Error("no hosts, no error")
		}
		if _, err := fetch.Parse(t.Context(), r.db.Segments(), seg, fetch.Options{}); err == nil {
			t.Error("no parser, no error")
		}
	})
}

func TestProtocolErrorEndsTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := errors.New("disk full")
		s := &site{latency: time.Second}
		r := newRig(t, s, threeHosts(3)...)
		o := r.o
		o.Protocol = protocolFunc(func(ctx context.Context, q protocol.Request) (protocol.Response, error) {
			if q.URL == "http://h1.example.test/1" {
				return protocol.Response{}, disk
			}
			return s.Fetch(ctx, q)
		})
		if _, err := fetch.Run(t.Context(), r.db.Segments(), seg, o); !errors.Is(err, disk) {
			t.Fatal(err)
		}
		if rep := r.run(seg); rep.Resumed == 0 || rep.Resumed+rep.Visited() != 9 {
			t.Errorf("%+v", rep)
		}
	})
}

// If a part is lost and nothing can be appended any more, no page is requested in vain, and
// the error names the part.
func TestALostPartIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &site{}
		r := newRig(t, s, threeHosts(2)...)
		w, err := segment.NewWriter[page.Content](t.Context(), r.db.Segments(), seg, 0)
		if err == nil {
			err = errors.Join(w.Append(t.Context(), []page.Content{{URL: "http://h0.example/0"}}), w.Commit(t.Context()))
		}
		if err != nil {
			t.Fatal(err)
		}
		named := func(what string, err error, part string) {
			var damage *segment.CorruptError
			if !errors.As(err, &damage) || damage.File != seg+"/"+part {
				t.Errorf("%s returned %v, which does not name %s", what, err, part)
			}
		}
		_, err = fetch.Run(t.Context(), r.db.Segments(), seg, r.o)
		named("a fetch", err, segment.FetchPart)
		if _, err := r.db.Segments().Stat(t.Context(), seg, segment.FetchPart); !errors.Is(err, segment.ErrNotFound) {
			t.Errorf("visits were begun: %v", err)
		}

		r = newRig(t, s, threeHosts(2)...)
		parser := r.o.Parser
		r.o.Parser = nil
		r.run(seg)
		texts, err := segment.NewWriter[segment.Text](t.Context(), r.db.Segments(), seg, 0)
		if err == nil {
			err = errors.Join(texts.Append(t.Context(), nil), texts.Commit(t.Context()))
		}
		if err != nil {
			t.Fatal(err)
		}
		r.o.Parser = parser
		_, err = fetch.Parse(t.Context(), r.db.Segments(), seg, r.o)
		named("a parse", err, segment.ParseDataPart)
	})
}

// What a kill may cost grows with what was done: the first visits are kept a
// tenth of a second after they came, later ones within two seconds.
func TestFirstVisitsAreWrittenSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &site{latency: 10 * time.Millisecond}
		r := newRig(t, s, pageURLs("h0.example.test", 600)...)
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
