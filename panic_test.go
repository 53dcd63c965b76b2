package recrawl_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/protocol/webtest"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/signature"
	"github.com/recrawl/recrawl/urlfilter"
)

// A fuse panics over the front page of each host, while it is lit.
type fuse struct {
	lit   bool
	blown int
}

func (f *fuse) burn(url string) {
	if f.lit && strings.HasSuffix(url, "/") {
		f.blown++
		panic("a fault of the embedder")
	}
}

type fusedSchedule struct {
	schedule.FetchSchedule
	*fuse
}

func (s fusedSchedule) Fetched(d crawldb.Datum, v schedule.Visit) crawldb.Datum {
	s.burn(d.URL)
	return s.FetchSchedule.Fetched(d, v)
}

type fusedDue struct {
	schedule.FetchSchedule
	*fuse
}

func (s fusedDue) Due(d *crawldb.Datum, now time.Time) bool {
	s.burn(d.URL)
	return s.FetchSchedule.Due(d, now)
}

type fusedScoring struct {
	scoring.Filter
	*fuse
}

func (s fusedScoring) Updated(old, d *crawldb.Datum, f scoring.Flow) {
	s.burn(d.URL)
	s.Filter.Updated(old, d, f)
}

type fusedGift struct {
	scoring.Filter
	*fuse
}

func (s fusedGift) Distribute(p scoring.Page, l []scoring.Link) float64 {
	s.burn(p.Datum.URL)
	return s.Filter.Distribute(p, l)
}

type fusedSignature struct {
	signature.Signature
	*fuse
}

func (s fusedSignature) Sum(c *page.Content, p *page.Parsed) []byte {
	s.burn(c.URL)
	return s.Signature.Sum(c, p)
}

// TestPolicyThatPanics checks that a policy that panics fails the page that it was
// asked about, or ends Run with an error that names the page; that nothing is locked
// or leased then; and that the next Run goes on as if nothing had been.
func TestPolicyThatPanics(t *testing.T) {
	for _, c := range []struct {
		what string
		use  func(*recrawl.Options, *fuse)
		says string // the error of Run; that page fails if it is empty
	}{
		{"schedule, which says when", func(o *recrawl.Options, f *fuse) { o.Schedule = fusedSchedule{&schedule.Default{}, f} }, "the schedule or the scoring panicked: a fault of the embedder"},
		{"schedule, which says whether", func(o *recrawl.Options, f *fuse) { o.Schedule = fusedDue{&schedule.Default{}, f} }, "panicked: a fault of the embedder"},
		{"scoring, of a record", func(o *recrawl.Options, f *fuse) { o.Scoring = fusedScoring{&scoring.OPIC{}, f} }, "the schedule or the scoring panicked: a fault of the embedder"},
		{"scoring, of a page", func(o *recrawl.Options, f *fuse) { o.Scoring = fusedGift{&scoring.OPIC{}, f} }, ""},
		{"scoring, of a page that is parsed later", func(o *recrawl.Options, f *fuse) {
			o.Scoring, o.ParseLater = fusedGift{&scoring.OPIC{}, f}, true
		}, ""},
		{"signature", func(o *recrawl.Options, f *fuse) { o.Signature = fusedSignature{signature.TextMD5{}, f} }, ""},
		{"rule", func(o *recrawl.Options, f *fuse) {
			o.Rules = &urlfilter.Rules{Filters: []urlfilter.Filter{urlfilter.FilterFunc(func(u string) bool { f.burn(u); return true })}}
		}, "panicked: a fault of the embedder"},
		{"host rule", func(o *recrawl.Options, f *fuse) {
			o.Fetch.Politeness.HostRule = func(host string) fetch.HostRule { f.burn("http://" + host + "/"); return fetch.HostRule{} }
		}, "a host rule or another policy panicked: a fault of the embedder"},
		{"OnVisit", func(o *recrawl.Options, f *fuse) {
			o.Fetch.Threads, o.Fetch.OnVisit = 8, func(v segment.Visit, _ fetch.Progress) { f.burn(v.URL) }
		}, "OnVisit or another policy panicked: a fault of the embedder"},
		{"OnPage", func(o *recrawl.Options, f *fuse) {
			o.OnPage = func(_ context.Context, e recrawl.PageEvent) error { f.burn(e.URL); return nil }
		}, "panicked: a fault of the embedder"},
	} {
		t.Run(c.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSetup(&webtest.Web{Hosts: 2, PagesPerHost: 8, Calm: true})
				f := &fuse{}
				s.opts.Fetch.Threads = 1
				c.use(&s.opts, f)
				crawler := s.crawler(t)
				if _, err := crawler.Inject(t.Context(), s.web.Seeds()...); err != nil {
					t.Fatal(err)
				}
				f.lit = true
				_, err := crawler.Run(t.Context())
				f.lit = false
				if f.blown == 0 {
					t.Fatal("nothing panicked")
				}
				switch {
				case c.says == "" && err != nil:
					t.Error(err)
				case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "http://")):
					t.Errorf("Run: %v; want a URL and %q", err, c.says)
				}
				if c.says == "" {
					for _, u := range s.web.Seeds() {
						if d := s.records(t)[u]; d.Status != crawldb.ParseFailed {
							t.Errorf("%s: %v", u, d.Status)
						}
					}
					s.now = s.now.AddDate(0, 4, 0)
				}
				if _, err := crawler.Run(t.Context()); err != nil {
					t.Fatalf("the next Run: %v", err)
				}
				if err := crawler.Close(); err != nil {
					t.Fatal(err)
				}
				n := 0
				for u, d := range s.records(t) {
					if d.LeasedBy != "" {
						t.Errorf("%s is leased by %s", u, d.LeasedBy)
					}
					if d.Status == crawldb.Fetched || d.Status == crawldb.NotModified {
						n++
					}
				}
				if n < 12 {
					t.Errorf("%d pages were fetched", n)
				}
			})
		})
	}
}
