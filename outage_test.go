package recrawl_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/index"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/stores/memstore"
)

// outages is a site that is down at times, and counts what it is asked for.
type outages struct {
	pages int
	down  bool
	asked int
}

func (o *outages) Fetch(_ context.Context, r protocol.Request) (protocol.Response, error) {
	o.asked++
	var resp protocol.Response
	_, path, _ := strings.Cut(strings.TrimPrefix(r.URL, "http://"), "/")
	switch {
	case o.down:
		resp.Outcome = protocol.Outcome{Code: protocol.Failed, Reason: "connect: refused"}
	case path == "robots.txt":
		resp.Outcome = protocol.Outcome{Code: protocol.NotFound, Status: 404}
	default:
		resp.Outcome = protocol.Outcome{Code: protocol.Success, Status: 200}
		text := "<p>" + r.URL
		for i := range o.pages {
			text += fmt.Sprintf("<a href=/%d>%d</a>", i, i)
		}
		resp.Content = page.Content{Type: "text/html", Body: []byte(text)}
	}
	return resp, nil
}

// urls is an index that keeps no more than URLs.
type urls map[string]bool

func (u urls) Write(_ context.Context, d *index.Document) error { u[d.URL] = true; return nil }

func (u urls) Delete(_ context.Context, url string) error { delete(u, url); return nil }

func (u urls) Commit(context.Context) error { return nil }

// An outage of two weeks costs a consumer nothing. The pages of a site that is down for much longer than GoneAfter leave
// the consumer of OnPage and an index, and come back when the site does, at no more requests than if they never left.
func TestPagesOfASiteThatIsDownForGood(t *testing.T) {
	const day, pages = 24 * time.Hour, 12
	asked := map[time.Duration]int{}
	for _, after := range []time.Duration{0, -1} {
		for name, s := range map[string]schedule.FetchSchedule{"default": &schedule.Default{}, "learned": schedule.Learned{Budget: 10}} {
			t.Run(fmt.Sprint(name, " ", after), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					site, db := &outages{pages: pages}, &memstore.DB{}
					there, gone := urls{}, 0
					c, err := recrawl.New(recrawl.Stores{Crawl: db.Crawl(), Hosts: db.Hosts(), Segments: db.Segments()}, recrawl.Options{
						Agent: "recrawl-test", Protocol: site, Retention: recrawl.Retention{Segments: 3}, Schedule: s,
						Fetch: fetch.Options{Politeness: fetch.Politeness{Delay: -1, GoneAfter: after}},
						OnPage: func(_ context.Context, e recrawl.PageEvent) error {
							if there[e.URL] = e.Kind != recrawl.PageGone; !there[e.URL] {
								gone++
								delete(there, e.URL)
							}
							return nil
						},
					})
					if err != nil {
						t.Fatal(err)
					}
					defer c.Close()
					if _, err := c.Inject(t.Context(), "http://a.example.test/"); err != nil {
						t.Fatal(err)
					}
					shelf := urls{}
					began := time.Now()
					live := func(days int, down bool) {
						site.down = down
						for range days / 2 {
							r, err := c.Run(t.Context())
							if err != nil {
								t.Fatal(err)
							}
							if _, err := index.Run(t.Context(), db.Crawl(), nil, db.Segments(), shelf, index.Options{Segments: r.Segments}); err != nil {
								t.Fatal(err)
							}
							time.Sleep(2 * day)
						}
					}
					all := func(want int) {
						t.Helper()
						if len(there) != want || len(shelf) != want {
							t.Errorf("day %d: OnPage knows of %d pages, the index of %d, want %d", time.Since(began)/day, len(there), len(shelf), want)
						}
					}
					live(40, false)
					all(pages + 1)
					live(14, true)
					all(pages + 1)
					live(40, false)
					all(pages + 1)
					if gone > 0 {
						t.Errorf("after an outage of two weeks: %d gone", gone)
					}
					before := site.asked
					live(60, true)
					if len(there) < pages/2 {
						t.Errorf("%d of %d pages are gone after two months", pages+1-len(there), pages+1)
					}
					live(290, true)
					asked[after] += site.asked - before
					if after == 0 {
						all(0)
					} else if len(there) < pages/2 || len(shelf) != len(there) {
						t.Errorf("%d and %d of %d pages are left", len(there), len(shelf), pages+1)
					}
					live(90, false)
					all(pages + 1)
				})
			})
		}
	}
	if asked[0] > asked[-1] {
		t.Errorf("%d requests while the site was down, and %d if its pages are never gone", asked[0], asked[-1])
	}
}
