package recrawl_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/crawldb/groups"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/webtest"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/stores/memstore"
	"github.com/recrawl/recrawl/update"
)

// dividedCrawl is a crawl of several groups in memory.
type dividedCrawl struct {
	*groups.Local
	dbs   map[int]*memstore.DB
	hosts *memstore.Hosts
}

// newDividedCrawl divides by host, since all hosts of a synthetic web are of one domain.
func newDividedCrawl(t *testing.T, n int) *dividedCrawl {
	t.Helper()
	table, err := groups.Divide(n, groups.Routing{Hot: []string{"example.test"}})
	if err != nil {
		t.Fatal(err)
	}
	d := &dividedCrawl{dbs: map[int]*memstore.DB{}, hosts: new(memstore.Hosts)}
	d.Local, err = groups.OpenLocal(t.Context(), new(memstore.Crawl), table, func(id int) (groups.Stores, func() error, error) {
		db := new(memstore.DB)
		d.dbs[id] = db
		return groups.Stores{Crawl: db.Crawl(), Links: db.Links(), Segments: db.Segments(), Hosts: d.hosts}, db.Close, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// contents is what a crawl knows of each page: its status, signature and inlinks, or its whole
// record.
type contents map[string]string

// owns reports whether the inlinks of a page count: a group keeps those of pages that were moved.
func (c contents) add(t *testing.T, db *memstore.DB, whole bool, owns func(string) bool) (cash float64) {
	t.Helper()
	for d, err := range db.Crawl().Scan(t.Context(), crawldb.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		if c[d.URL] != "" {
			t.Errorf("two groups have %s", d.URL)
		}
		c[d.URL] = fmt.Sprintf("%s %x", d.Status, d.Signature)
		if whole {
			raw, err := d.AppendBinary(nil)
			if err != nil {
				t.Fatal(err)
			}
			c[d.URL] = fmt.Sprintf("%x", raw)
		}
		cash += scoring.Cash(&d)
	}
	for e, err := range db.Links().Scan(t.Context(), crawldb.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		if !owns(e.URL) {
			continue
		}
		c["links to "+e.URL] = fmt.Sprintf("%q", e.Inlinks)
	}
	return cash
}

func (c contents) compare(t *testing.T, want contents) {
	t.Helper()
	n := 0
	for url, w := range want {
		if g := c[url]; g != w {
			if n++; n < 5 {
				t.Errorf("%s:\ngot  %s\nwant %s", url, g, w)
			}
		}
	}
	for url := range c {
		if _, ok := want[url]; !ok {
			if n++; n < 5 {
				t.Errorf("%s is there", url)
			}
		}
	}
	if n > 0 {
		t.Errorf("%d differences of %d", n, len(want))
	}
}

// undividedContents crawls a web in one process without groups.
func undividedContents(t *testing.T, web *webtest.Web, o recrawl.Options, whole bool, seeds ...string) (contents, float64) {
	t.Helper()
	db := new(memstore.DB)
	c, err := recrawl.New(recrawl.Stores{Crawl: db.Crawl(), Hosts: db.Hosts(), Links: db.Links(), Segments: db.Segments()}, o)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Inject(t.Context(), seeds...); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	all := contents{}
	return all, all.add(t, db, whole, func(string) bool { return true })
}

func (d *dividedCrawl) contents(t *testing.T, whole bool) (all contents, cash float64) {
	t.Helper()
	all = contents{}
	table, err := d.Table(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	router := table.Routing.Router()
	for id, db := range d.dbs {
		cash += all.add(t, db, whole, table.Member(id, router).Owns)
	}
	return all, cash
}

// rowsLeft counts the rows that are still in the outboxes.
func (d *dividedCrawl) rowsLeft(t *testing.T) (n int64) {
	t.Helper()
	table, err := d.Table(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, from := range table.Groups {
		for _, to := range table.Groups {
			marks, err := d.Marks(t.Context(), []groups.MarkName{{Group: from.ID, Name: groups.OutboxMark(to.ID)}})
			if err != nil {
				t.Fatal(err)
			}
			b, err := groups.ParseBounds(marks[0])
			if err != nil {
				t.Fatal(err)
			}
			n += b.Next - b.First
		}
	}
	return n
}

func TestDividedCrawlEqualsUndivided(t *testing.T) {
	web := func() *webtest.Web { return &webtest.Web{Seed: 3, Hosts: 9, PagesPerHost: 25, WordsPerPage: 20} }
	const seed = "http://news.example.test/"
	options := func(w *webtest.Web) recrawl.Options {
		return recrawl.Options{Agent: "recrawl-test", Protocol: w.Protocol(), Update: update.Options{MaxGrowth: -1}}
	}
	for _, n := range []int{1, 4, 7} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			plain := web()
			var want contents
			var cash float64
			synctest.Test(t, func(t *testing.T) {
				want, cash = undividedContents(t, plain, options(plain), n == 1, seed)
			})
			synctest.Test(t, func(t *testing.T) {
				d := newDividedCrawl(t, n)
				defer d.Close()
				w := web()
				k, err := recrawl.NewWorker(d, options(w), recrawl.WorkerOptions{})
				if err != nil {
					t.Fatal(err)
				}
				defer k.Close()
				if err := k.Inject(t.Context(), seed); err != nil {
					t.Fatal(err)
				}
				r, err := k.Run(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				got, gotCash := d.contents(t, n == 1)
				got.compare(t, want)
				if math.Abs(gotCash-cash) > 1e-9 {
					t.Errorf("the cash is %v, want %v", gotCash, cash)
				}
				if left := d.rowsLeft(t); left > 0 {
					t.Errorf("%d rows are left", left)
				}
				if r.Visited() < 200 {
					t.Errorf("%d visits", r.Visited())
				}
				if w.Requests() != plain.Requests() {
					t.Errorf("%d requests, an undivided crawl makes %d", w.Requests(), plain.Requests())
				}
				for _, host := range []string{"news.example.test", "docs.example.test", "h0008.example.test"} {
					politeTo(t, w, host)
				}
			})
		})
	}
}

func politeTo(t *testing.T, w *webtest.Web, host string) {
	t.Helper()
	l := w.HostLog(host)
	if l.Requests < 20 || l.MaxInFlight > 1 || l.MinGap < 5*time.Second {
		t.Errorf("%s had %d requests, %d at a time, and %v between two", host, l.Requests, l.MaxInFlight, l.MinGap)
	}
}

func TestWorkerRefusesOptionsForOnePlace(t *testing.T) {
	d := newDividedCrawl(t, 2)
	defer d.Close()
	o := recrawl.Options{Agent: "recrawl-test", Protocol: (&webtest.Web{}).Protocol(), Scoring: scoring.PageRank{}}
	k, err := recrawl.NewWorker(d, o, recrawl.WorkerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	if _, err := k.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "PageRank") {
		t.Errorf("PageRank over two groups: %v", err)
	}
}

func TestRowsFromOutsideReachTheirGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := &webtest.Web{Hosts: 6, PagesPerHost: 5, WordsPerPage: 10, Calm: true}
		d := newDividedCrawl(t, 3)
		defer d.Close()
		o := recrawl.Options{Agent: "recrawl-test", Protocol: web.Protocol()}
		o.Run.Wait = true
		k, err := recrawl.NewWorker(d, o, recrawl.WorkerOptions{Name: "one"})
		if err != nil {
			t.Fatal(err)
		}
		defer k.Close()
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() {
			_, err := k.Run(ctx)
			ended <- err
		}()
		if err := k.Inject(t.Context(), "http://news.example.test/", "http://docs.example.test/", "mailto:nobody@example.test"); err == nil || !strings.Contains(err.Error(), "mailto:") {
			t.Errorf("a seed that is no page: %v", err)
		}
		time.Sleep(time.Hour)
		all, _ := d.contents(t, false)
		for _, u := range []string{"http://news.example.test/", "http://docs.example.test/"} {
			if !strings.HasPrefix(all[u], "db_fetched") {
				t.Errorf("the seed %s is %q", u, all[u])
			}
		}
		before := web.Count("http://docs.example.test/")
		if err := k.FetchNow(t.Context(), "http://docs.example.test/"); err != nil {
			t.Fatal(err)
		}
		if err := k.Signal(t.Context(), "http://news.example.test/", time.Time{}); err != nil {
			t.Fatal(err)
		}
		if err := k.Signal(t.Context(), "http://unknown.example.test/", time.Time{}); err != nil {
			t.Fatal(err)
		}
		signalled := web.Count("http://news.example.test/")
		time.Sleep(5 * time.Minute)
		if n := web.Count("http://docs.example.test/"); n != before+1 {
			t.Errorf("a page that was to be fetched now was fetched %d times", n-before)
		}
		if n := web.Count("http://news.example.test/"); n != signalled+1 {
			t.Errorf("a page with a signal was fetched %d times", n-signalled)
		}
		stop()
		if err := <-ended; err != context.Canceled {
			t.Errorf("Run: %v", err)
		}
		state, err := d.State(t.Context())
		if err != nil || len(state.Workers) > 0 || state.Groups[0].Owner != "" {
			t.Errorf("after Run the state is %+v, %v", state, err)
		}
	})
}

// TestHostOfKilledWorkerIsAskedSoon kills a worker in the middle of a request: the grant that it has
// not given back must not keep its successor from the host for longer than a pause.
func TestHostOfKilledWorkerIsAskedSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := &webtest.Web{Hosts: 1, PagesPerHost: 5, WordsPerPage: 10, Calm: true}
		d := newDividedCrawl(t, 1)
		defer d.Close()
		first := recrawl.Options{Agent: "recrawl-test"}
		hanging := make(chan struct{})
		first.Protocol = protocolFunc(func(ctx context.Context, r protocol.Request) (protocol.Response, error) {
			if strings.HasSuffix(r.URL, "robots.txt") {
				return web.Protocol().Fetch(ctx, r)
			}
			close(hanging)
			<-t.Context().Done()
			return protocol.Response{}, errors.New("the process is dead")
		})
		k, err := recrawl.NewWorker(deadEngine{d, hanging}, first, recrawl.WorkerOptions{Name: "dead"})
		if err != nil {
			t.Fatal(err)
		}
		if err := k.Inject(t.Context(), "http://news.example.test/"); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go k.Run(ctx)
		<-hanging
		began := time.Now()
		o := recrawl.Options{Agent: "recrawl-test", Protocol: web.Protocol()}
		next, err := recrawl.NewWorker(d, o, recrawl.WorkerOptions{Name: "next"})
		if err != nil {
			t.Fatal(err)
		}
		defer next.Close()
		go next.Run(ctx)
		for web.Count("http://news.example.test/") == 0 {
			time.Sleep(time.Second)
		}
		if took := time.Since(began); took < 15*time.Second || took > 45*time.Second {
			t.Errorf("the next worker asked the host after %v", took)
		}
	})
}

// deadEngine answers nothing once the process is dead.
type deadEngine struct {
	*dividedCrawl
	dead chan struct{}
}

func (e deadEngine) Renew(ctx context.Context, owner string) ([]groups.Lease, error) {
	select {
	case <-e.dead:
		return nil, errors.New("the process is dead")
	default:
		return e.dividedCrawl.Renew(ctx, owner)
	}
}
