package recrawl_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/webtest"
	"github.com/recrawl/recrawl/segment"
)

var errDied = errors.New("died")

func TestPageEventsOfChanges(t *testing.T)    { pageEvents(t, false) }
func TestPageEventsOfEveryVisit(t *testing.T) { pageEvents(t, true) }

func pageEvents(t *testing.T, everyVisit bool) {
	synctest.Test(t, func(t *testing.T) {
		// What a path answers in each round, and the events that makes.
		rounds := 6
		script, want := map[string][]string{}, map[string]string{}
		for path, s := range map[string]string{
			"steady":    "=a =a 304 =a =a =a | new unchanged unchanged unchanged unchanged unchanged | new - - - - -",
			"changes":   "=a =b =b =c 304 =a | new changed unchanged changed unchanged changed | new changed - changed - changed",
			"goes":      "=a 404 404 =a =a =a | new gone gone new unchanged unchanged | new gone - new - -",
			"moves":     "=a >steady >steady =a =a =a | new moved moved new unchanged unchanged | new moved - new - -",
			"wavers":    "=a >steady 404 404 >steady >steady | new moved gone gone moved moved | new moved gone - moved -",
			"never":     "404 404 404 404 404 404 | gone gone gone gone gone gone | gone - - - - -",
			"fails":     "=a 503 503 =a =a =a | new - - unchanged unchanged unchanged | new - - - - -",
			"dies":      "=a 503 503 503 503 =a | new - - gone gone new | new - - gone - new",
			"forbidden": "404 404 404 404 404 404 | refused refused refused refused refused refused | refused - - - - -",
		} {
			of := strings.Split(s, " | ")
			script[path], want[path] = strings.Fields(of[0]), of[2]
			if everyVisit {
				want[path] = of[1]
			}
		}
		round := 0
		s := newSetup(&webtest.Web{Hosts: 1})
		s.opts.Protocol = scripted(script, &round)
		s.opts.Fetch.Politeness.MaxFailures = -1
		s.opts.EveryVisit = everyVisit
		began := s.now
		got := map[string][]string{}
		s.opts.OnPage = func(ctx context.Context, e recrawl.PageEvent) error {
			path := strings.TrimPrefix(e.URL, "http://a.example.test/")
			for len(got[path]) < round {
				got[path] = append(got[path], "-")
			}
			got[path] = append(got[path], e.Kind.String())
			if p := e.Previous; p.Time.IsZero() != (round == 0) || round > 0 && !p.Time.Equal(began.Add(time.Duration(round-1)*time.Hour)) {
				t.Errorf("%s in round %d: the visit before was at %v", path, round, p.Time)
			}
			if p := e.Previous.Kind; (p == recrawl.PageMoved) != (round > 0 && script[path][round-1][0] == '>') || (p == recrawl.PageUnchanged) != (e.Previous.Signature != nil) {
				t.Errorf("%s in round %d: it was %v before, with the signature %x", path, round, p, e.Previous.Signature)
			}
			switch e.Kind {
			case recrawl.PageNew:
				if e.Previous.Signature != nil || e.Signature == nil {
					t.Errorf("%s is new: signatures %x, %x", path, e.Previous.Signature, e.Signature)
				}
			case recrawl.PageChanged:
				if e.Previous.Signature == nil || e.Signature == nil || string(e.Previous.Signature) == string(e.Signature) {
					t.Errorf("%s has changed: signatures %x, %x", path, e.Previous.Signature, e.Signature)
				}
			case recrawl.PageUnchanged:
				if e.Previous.Signature == nil || string(e.Previous.Signature) != string(e.Signature) {
					t.Errorf("%s is the same: signatures %x, %x", path, e.Previous.Signature, e.Signature)
				}
			}
			content, err1 := e.Content(ctx)
			text, err2 := e.Text(ctx)
			parsed, err3 := e.Parsed(ctx)
			if err := errors.Join(err1, err2, err3); err != nil {
				t.Errorf("%s: %v", path, err)
			}
			answer := script[path][round]
			if has := answer[0] == '='; has != (len(content.Body) > 0) || has != (text != "") || has != (parsed.Title == "T") {
				t.Errorf("%s answers %q: content %q, text %q, title %q", path, answer, content.Body, text, parsed.Title)
			} else if has && (!strings.HasSuffix(string(content.Body), answer[1:]) || !strings.Contains(text, answer[1:]) || content.URL != e.URL) {
				t.Errorf("%s answers %q: content %q, text %q", path, answer, content.Body, text)
			}
			// The update has been committed.
			d, err := s.db.Crawl().Get(ctx, e.URL)
			if err != nil || !d.LastFetch.Equal(e.Visit.Time) || d.LeasedBy != "" {
				t.Errorf("%s: %+v, %v", path, d, err)
			}
			return nil
		}
		c := s.crawler(t)
		defer c.Close()
		for path := range script {
			if _, err := c.Inject(t.Context(), "http://a.example.test/"+path); err != nil {
				t.Fatal(err)
			}
		}
		for ; round < rounds; round++ {
			for path := range script { // all are due
				force(t, s.db.Crawl(), "http://a.example.test/"+path, s.now)
			}
			r, err := c.Round(t.Context())
			if err != nil || r.Visited() != len(script) {
				t.Fatalf("round %d: %+v, %v", round, r, err)
			}
			s.now = s.now.Add(time.Hour)
		}
		for path := range script {
			for len(got[path]) < rounds {
				got[path] = append(got[path], "-")
			}
			if g := strings.Join(got[path], " "); g != want[path] {
				t.Errorf("%s: %s\nwant %s", path, g, want[path])
			}
		}
	})
}

func TestEventsAtLeastOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(&webtest.Web{Hosts: 2, PagesPerHost: 20, Calm: true})
		full := errors.New("full")
		seen := map[string]int{}
		calls, well := 0, false
		s.opts.OnPage = func(_ context.Context, e recrawl.PageEvent) error {
			if calls++; calls%7 == 0 && !well {
				return full
			}
			seen[e.URL]++
			return nil
		}
		s.opts.Fetch.Threads = 1
		c := s.crawler(t)
		defer func() { c.Close() }()
		if _, err := c.Inject(t.Context(), s.web.Seeds()...); err != nil {
			t.Fatal(err)
		}
		for i := 0; ; i++ {
			r, err := c.Round(t.Context())
			if err == nil && r.Rounds == 0 {
				break
			}
			if err != nil && !errors.Is(err, full) {
				t.Fatal(err)
			}
			if i > 1000 {
				t.Fatal("the crawl does not end")
			}
			if i%3 == 0 { // a process that died would have a new crawler
				c.Close()
				c = s.crawler(t)
			}
			if i == 100 {
				well = true // from now on
			}
		}
		for u, d := range s.records(t) {
			if d.Status == crawldb.Fetched && seen[u] == 0 {
				t.Errorf("no event of %s", u)
			}
		}
		if len(seen) != len(s.records(t)) {
			t.Errorf("events of %d pages of %d", len(seen), len(s.records(t)))
		}
	})
}

// dyingCrawl is a crawl db that is dead from its n-th write on.
type dyingCrawl struct {
	crawldb.Store
	left    *int
	applies bool
}

func (s dyingCrawl) Update(ctx context.Context, b crawldb.Batch) error {
	if *s.left--; *s.left > 0 || *s.left == 0 && s.applies {
		if err := s.Store.Update(ctx, b); err != nil || *s.left > 0 {
			return err
		}
	}
	return errDied
}

// dyingSegments is dead with it.
type dyingSegments struct {
	segment.Store
	left *int
}

func (s dyingSegments) Append(ctx context.Context, name, part string, keep int) (segment.BlockWriter, error) {
	if *s.left--; *s.left <= 0 {
		return nil, errDied
	}
	return s.Store.Append(ctx, name, part, keep)
}

func (s dyingSegments) Remove(ctx context.Context, name string) error {
	if *s.left--; *s.left <= 0 {
		return errDied
	}
	return s.Store.Remove(ctx, name)
}

func TestCrawlerThatDiesAnywhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := func() *setup {
			s := newSetup(&webtest.Web{Hosts: 2, PagesPerHost: 6})
			s.opts.Retention.Segments = 2
			return s
		}
		calm := web()
		calm.run(t, calm.web.Seeds()...)
		want := calm.dump(t)
		died := true
		for n := 1; died; n += 1 + n/20 {
			for _, applies := range []bool{false, true} {
				s := web()
				events := map[string]bool{}
				s.opts.OnPage = func(_ context.Context, e recrawl.PageEvent) error {
					events[e.URL] = true
					return nil
				}
				if c := s.crawler(t); true {
					if _, err := c.Inject(t.Context(), s.web.Seeds()...); err != nil {
						t.Fatal(err)
					}
					c.Close()
				}
				left := n
				stores := s.stores()
				stores.Crawl, stores.Segments = dyingCrawl{stores.Crawl, &left, applies}, dyingSegments{stores.Segments, &left}
				c, err := recrawl.New(stores, s.opts)
				if err == nil {
					_, err = c.Run(t.Context())
					c.Close()
				}
				if died = err != nil; died && !errors.Is(err, errDied) {
					t.Fatal(err)
				}
				s.run(t)
				if got := s.dump(t); got != want {
					t.Fatalf("died at write %d (applied: %v): %s", n, applies, firstDifference(got, want))
				}
				for u, d := range s.records(t) {
					if d.Status == crawldb.Fetched && !events[u] {
						t.Errorf("died at write %d (applied: %v): no event of %s", n, applies, u)
					}
				}
				if t.Failed() {
					return
				}
			}
		}
	})
}

func TestRecordDeletedDuringItsRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(&webtest.Web{Hosts: 1})
		round := 0
		inner := scripted(map[string][]string{"x": {"503"}, "y": {"=y"}}, &round)
		s.opts.Protocol = protocolFunc(func(ctx context.Context, r protocol.Request) (protocol.Response, error) {
			if !strings.HasSuffix(r.URL, "robots.txt") {
				err := s.db.Crawl().Update(ctx, crawldb.Batch{URLs: []string{r.URL}, Next: func(int, *crawldb.Datum) (*crawldb.Datum, error) { return nil, nil }})
				if err != nil {
					t.Error(err)
				}
			}
			return inner.Fetch(ctx, r)
		})
		s.opts.Update.NoAdditions = true
		var events []string
		s.opts.OnPage = func(_ context.Context, e recrawl.PageEvent) error {
			events = append(events, fmt.Sprint(e.URL, " ", e.Kind))
			return nil
		}
		s.run(t, "http://a.example.test/x", "http://a.example.test/y")
		if !slices.Equal(events, []string{"http://a.example.test/y new"}) || len(s.records(t)) > 0 {
			t.Errorf("%v, %v", events, s.records(t))
		}
	})
}

// OnPage is called for each page, wherever it ends a round, and once for the pages of a
// block that it has completed.
// An error of OnPage costs the same crawler nothing, and another one a block at most.
func TestEventsOfManyBlocks(t *testing.T) {
	t.Run("one crawler", func(t *testing.T) { eventsOfManyBlocks(t, false) })
	t.Run("each time another", func(t *testing.T) { eventsOfManyBlocks(t, true) })
}

func eventsOfManyBlocks(t *testing.T, another bool) {
	synctest.Test(t, func(t *testing.T) {
		s := newSetup(&webtest.Web{Hosts: 1, PagesPerHost: 25, Calm: true})
		s.opts.Fetch.Politeness.Delay = time.Second // so that some pages come with each group
		told, left, refused := map[string]int{}, -1, ""
		s.opts.OnPage = func(_ context.Context, e recrawl.PageEvent) error {
			if refused != "" && refused != e.URL && !another {
				t.Errorf("%s follows the error about %s", e.URL, refused)
			}
			if refused = ""; left == 0 {
				left, refused = -1, e.URL
				return errors.New("no more")
			}
			left--
			told[e.URL]++
			return nil
		}
		c := s.crawler(t)
		defer func() { c.Close() }()
		for i := range 25 {
			url := s.web.Seeds()[0]
			if i > 0 {
				url += fmt.Sprintf("pages/%d.html", i)
			}
			if _, err := c.Inject(t.Context(), url); err != nil {
				t.Fatal(err)
			}
		}
		blocks, failed := 0, 0
		for left = 1; ; left = 1 + failed%7 {
			r, err := c.Round(t.Context())
			if err == nil {
				for range segment.Blocks[segment.Visit](t.Context(), s.db.Segments(), r.Segments[0], 0) {
					blocks++
				}
				break
			}
			if failed++; failed > 100 {
				t.Fatal(err)
			}
			if another {
				c.Close()
				c = s.crawler(t)
			}
		}
		if blocks < 4 || len(told) != 25 {
			t.Errorf("%d blocks, %d pages were delivered", blocks, len(told))
		}
		twice := 0
		for _, n := range told {
			if n > 1 {
				twice++
			}
		}
		if !another && twice > 0 || another && (twice == 0 || twice == len(told)) {
			t.Errorf("%d of %d pages were delivered again", twice, len(told))
		}
	})
}

// What is known of a page is known when it was not selected as due: asked for by
// GenerateFree, or visited because another led there.
func TestPageEventsOfWhatIsNotDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const site = "http://a.example.test/"
		round := 0
		web := scripted(map[string][]string{
			"free":  strings.Fields("=a =a =b 404 =b"),
			"from":  strings.Fields(">to >to >to >to >to"),
			"to":    strings.Fields("=a =a =b =b =b"),
			"fresh": strings.Fields("404 404 404 =a =a"),
		}, &round)
		conditional := 0
		s := newSetup(&webtest.Web{})
		s.opts.Protocol = protocolFunc(func(ctx context.Context, r protocol.Request) (protocol.Response, error) {
			if r.ETag != "" || r.LastModified != "" {
				conditional++
			}
			resp, err := web.Fetch(ctx, r)
			resp.ETag = `"e"`
			return resp, err
		})
		s.opts.Fetch.Following.MaxRedirects = 2
		s.opts.EveryVisit = true
		got := map[string][]string{}
		s.opts.OnPage = func(_ context.Context, e recrawl.PageEvent) error {
			got[strings.TrimPrefix(e.URL, site)] = append(got[strings.TrimPrefix(e.URL, site)], e.Kind.String())
			if e.Visit.Outcome.Code == protocol.Success && (e.Kind == recrawl.PageNew) != (e.Previous.Signature == nil) {
				t.Errorf("round %d: %s is %v, and its signature was %x", round, e.URL, e.Kind, e.Previous.Signature)
			}
			return nil
		}
		c := s.crawler(t)
		defer c.Close()
		if _, err := c.Inject(t.Context(), site+"free", site+"from"); err != nil {
			t.Fatal(err)
		}
		for round = range 5 {
			if round > 0 {
				s.now = s.now.Add(time.Hour)
				if _, err := c.GenerateFree(t.Context(), func(yield func(string, error) bool) {
					_ = yield(site+"free", nil) && yield(site+"from", nil) && yield(site+"fresh", nil)
				}); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := c.Round(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for path, want := range map[string]string{
			"free":  "new unchanged changed gone new",
			"from":  "moved moved moved moved moved",
			"to":    "new unchanged changed unchanged unchanged",
			"fresh": "gone gone new unchanged",
		} {
			if got := strings.Join(got[path], " "); got != want {
				t.Errorf("%s: %s, want %s", path, got, want)
			}
		}
		if conditional > 0 {
			t.Errorf("%d requests asked for what has changed since", conditional)
		}
	})
}

// A service can test its OnPage with events of its own making.
func TestPageEventOfATest(t *testing.T) {
	e := recrawl.PageEvent{URL: "http://a.example/", Kind: recrawl.PageNew}
	content, err := e.Content(t.Context())
	text, err2 := e.Text(t.Context())
	parsed, err3 := e.Parsed(t.Context())
	if err := errors.Join(err, err2, err3); err != nil || content.Body != nil || text != "" || parsed.Outlinks != nil {
		t.Errorf("%+v, %q, %+v, %v", content, text, parsed, err)
	}
}
