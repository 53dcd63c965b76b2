// Package demo is the verb demo: a simulated web on loopback, crawled for weeks of simulated
// time, with a process that is killed on the way. It shares no code with the other verbs,
// so that what it shows is the library. Command is where to start.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/flags"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/render"
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/httpproto"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/stores/pebblestore"
)

const (
	agent      = "recrawl-demo"
	weeksShown = 8
	oneDay     = 24 * time.Hour
)

// startTime is when the simulated time begins, a Monday.
var startTime = time.Date(2026, 1, 5, 6, 0, 0, 0, time.UTC)

func Command(out, warn io.Writer) *cli.Command {
	return &cli.Command{
		Name: "demo", Category: flags.AllInOne, Usage: "crawl a simulated web on loopback for some weeks of simulated time",
		Description: `Needs no network and leaves nothing behind: a small web whose pages change by the
clock is served on loopback and crawled into a temporary directory, in simulated
time. It shows what comes back, how the schedule finds out what changes, and how
a crawl recovers from kill -9. It takes some seconds.

  recrawl demo
  recrawl demo -keep /tmp/demo`,
		Flags: flags.Join(
			&cli.StringFlag{Name: "keep", Usage: "keep the crawl in the directory `DIR`, which must be new or empty, to look at it afterwards"},
			&cli.BoolFlag{Name: "v", Usage: "report anything unusual on standard error"}),
		Action: func(ctx context.Context, c *cli.Command) (err error) {
			if err := flags.NoArgs(c); err != nil {
				return err
			}
			ignoreBrokenPipe() // there is a directory to remove
			dir, done, err := directory(c)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, done()) }()
			ctx, stop := context.WithCancelCause(ctx)
			defer stop(nil)
			d := &demo{out: out, err: warn, stop: stop, dir: dir, clock: new(simulated), verbose: c.Bool("v")}
			d.clock.set(startTime)
			err = d.run(ctx, c.String("keep") != "")
			switch cause := context.Cause(ctx); {
			case cause == nil:
				return err
			case errors.Is(cause, context.Canceled):
				return errors.New("interrupted")
			default:
				return cause
			}
		},
	}
}

// temporaryPattern names temporary directories. Each is removed when its demo ends or, if
// that was killed, by a later demo.
const temporaryPattern = "recrawl-demo-*.tmp"

// directory returns the directory of the demo and what removes it.
func directory(c *cli.Command) (dir string, done func() error, err error) {
	keep := c.String("keep")
	if keep == "" {
		return temporaryDirectory()
	}
	if err := os.MkdirAll(keep, 0o777); err != nil {
		return "", nil, err
	}
	if entries, err := os.ReadDir(keep); err != nil {
		return "", nil, err
	} else if len(entries) > 0 {
		return "", nil, fmt.Errorf("-keep: %s is not empty", keep)
	}
	return keep, func() error { return nil }, nil
}

// demo is one demonstration.
type demo struct {
	out, err io.Writer
	dir      string
	clock    *simulated
	web      *site
	verbose  bool
	stop     context.CancelCauseFunc // stops the demo when its output cannot be written

	sizes  map[string]int64   // of the body sent last, by URL
	visits map[string]int     // that found content, or that it is unchanged
	found  map[string]int     // changes
	chosen []watched          // pages whose intervals are shown
	fresh  map[string]float64 // sum over the days of those on which the copy was current
	days   int
}

// say prints a line.
func (d *demo) say(format string, args ...any) {
	if _, err := fmt.Fprintf(d.out, format+"\n", args...); err != nil {
		d.stop(err)
	}
}

func (d *demo) run(ctx context.Context, keep bool) (err error) {
	began := time.Now()
	if d.web, err = serveSite(d.clock.now); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.web.close()) }()
	d.say("recrawl demo: a crawl that comes back, in %d simulated weeks.", weeksShown)
	d.say("")
	d.say("A simulated web is served on %s: %d hosts, %d pages. An eighth of the", d.web.server.Addr, d.web.Hosts, d.web.Hosts*d.web.PagesPerHost)
	d.say("pages changes every day, a quarter every week, a quarter every month, and the")
	d.say("rest never. Some move, vanish or are forbidden. The crawler knows none of this:")
	d.say("it gets %d URLs to start from, and comes once a simulated day for what is due.", len(d.web.Seeds()))
	d.say("")
	crawl := filepath.Join(d.dir, "crawl")
	if err := d.weeks(ctx, crawl); err != nil {
		return err
	}
	if err := d.killed(ctx, crawl); err != nil {
		return err
	}
	d.say("")
	if keep {
		d.say("The crawl is kept. Look around:")
		d.say("  recrawl readdb -d %s -stats", crawl)
		d.say("  recrawl readseg -d %s", crawl)
	} else {
		d.say("Nothing is left behind; recrawl demo -keep DIR keeps the crawl to look around in.")
	}
	d.say("Now try a crawl of your own: see recrawl --help (%.0f s)", time.Since(began).Seconds())
	return nil
}

// session is an open crawl of the demo.
type session struct {
	db      *pebblestore.DB
	crawler *recrawl.Crawler
	client  *httpproto.Client
}

// end closes what openDemo opened.
func (s *session) end() (err error) {
	if s.crawler != nil {
		err = errors.Join(err, s.crawler.Close())
	}
	if s.client != nil {
		err = errors.Join(err, s.client.Close())
	}
	if s.db != nil {
		err = errors.Join(err, s.db.Close())
	}
	return err
}

// openDemo opens a crawl of the demo's web. The child process opens it too, and
// must decide everything as its parent would.
func openDemo(warn io.Writer, dir, connectTo string, now func() time.Time, onPage func(context.Context, recrawl.PageEvent) error, verbose bool) (s *session, err error) {
	ct, err := httpproto.ParseConnectTo(connectTo)
	if err != nil {
		return nil, flags.Usagef("-connect-to: %w", err)
	}
	s = &session{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.end())
		}
	}()
	if s.client, err = httpproto.New(httpproto.Options{Agent: agent, ConnectTo: []httpproto.ConnectTo{ct}, Now: now}); err != nil {
		return nil, err
	}
	logger := render.NewLogger(warn, verbose)
	if s.db, err = pebblestore.Open(dir, pebblestore.Options{Logger: logger}); err != nil {
		return nil, err
	}
	s.crawler, err = recrawl.New(
		recrawl.Stores{Crawl: s.db.Crawl(), Hosts: s.db.Hosts(), Links: s.db.Links(), Segments: s.db.Segments()},
		recrawl.Options{
			Agent: agent, Protocol: s.client,
			// The first interval is a week; then it adapts.
			Schedule: schedule.Adaptive{Default: schedule.Default{DefaultInterval: 7 * oneDay}, MinInterval: oneDay},
			Fetch:    fetch.Options{Politeness: fetch.Politeness{Delay: -1}}, // the server is ours
			OnPage:   onPage, EveryVisit: onPage != nil, Now: now, Logger: logger,
		})
	return s, err
}

// weeks crawls for some weeks and shows the results.
func (d *demo) weeks(ctx context.Context, dir string) (err error) {
	d.sizes, d.visits, d.found, d.fresh = map[string]int64{}, map[string]int{}, map[string]int{}, map[string]float64{}
	var w week
	s, err := openDemo(d.err, dir, d.web.server.ConnectTo(), d.clock.now, func(_ context.Context, e recrawl.PageEvent) error {
		d.page(&w, &e)
		return nil
	}, d.verbose)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.end()) }()
	if _, err := s.crawler.Inject(ctx, d.web.Seeds()...); err != nil {
		return err
	}
	d.choose()
	d.say("week rounds visits   new changed unchanged moved  gone barred   304 received    saved current")
	total, all := week{}, 0
	for n := range weeksShown {
		w = week{}
		for range 7 {
			r, err := s.crawler.Run(ctx)
			if err != nil {
				return err
			}
			w.rounds, w.visits, w.notModified = w.rounds+r.Rounds, w.visits+r.Visited(), w.notModified+r.Visits[protocol.NotModified]
			w.received += r.Bytes
			w.barred += r.Visits[protocol.RobotsDenied]
			d.clock.set(d.clock.now().Add(oneDay / 2))
			current, err := d.current(ctx, s.db.Crawl())
			if err != nil {
				return err
			}
			w.current += current / 7
			d.clock.set(d.clock.now().Add(oneDay / 2))
		}
		if err := d.watch(ctx, s.db.Crawl()); err != nil {
			return err
		}
		d.say("%4d %6d %6d %5d %7d %9d %5d %5d %6d %5d %8s %8s %6.0f%%", n+1, w.rounds, w.visits,
			w.kinds[recrawl.PageNew], w.kinds[recrawl.PageChanged], w.kinds[recrawl.PageUnchanged], w.kinds[recrawl.PageMoved], w.kinds[recrawl.PageGone],
			w.barred, w.notModified, render.Size(w.received), render.Size(w.saved), 100*w.current)
		total.visits, total.notModified = total.visits+w.visits, total.notModified+w.notModified
		all += 7 * len(d.visits)
	}
	d.clock.set(d.clock.now().Add(-oneDay / 2)) // the evening of the last day
	d.say("")
	d.say("barred: robots.txt forbids it, so it was not requested. 304: the server said \"not")
	d.say("modified\" and sent no page; saved: what it would have sent. current: the share of")
	d.say("stored pages that were as the web had them, half a day after each day's visits.")
	d.say("All this took %d visits, including those to pages moved, gone or barred. To look", total.visits)
	d.say("at each of the %d pages every day would have taken %d.", len(d.visits), all)
	d.say("")
	if err := d.showIntervals(ctx, s.db.Crawl()); err != nil {
		return err
	}
	if err := d.showStatuses(ctx, s.db.Crawl()); err != nil {
		return err
	}
	if err := d.showBest(ctx, s); err != nil {
		return err
	}
	return d.showExplain(ctx, s)
}

// week is one line of the table.
type week struct {
	rounds, visits      int
	notModified, barred int
	kinds               [recrawl.PageRefused + 1]int
	received, saved     int64
	current             float64
}

// page counts what a visit found.
func (d *demo) page(w *week, e *recrawl.PageEvent) {
	w.kinds[e.Kind]++
	switch e.Visit.Outcome.Code {
	case protocol.Success:
		d.sizes[e.URL] = e.Visit.Bytes
	case protocol.NotModified:
		w.saved += d.sizes[e.URL]
	default:
		return
	}
	d.visits[e.URL]++
	if e.Kind == recrawl.PageChanged {
		d.found[e.URL]++
	}
}

// current compares the stored copies with the web, and returns the share of pages that
// have not changed since they were visited.
func (d *demo) current(ctx context.Context, db crawldb.Store) (float64, error) {
	d.days++
	pages, current := 0, 0
	for r, err := range db.Scan(ctx, crawldb.Range{}) {
		if err != nil {
			return 0, err
		}
		if r.Status != crawldb.Fetched && r.Status != crawldb.NotModified {
			continue
		}
		pages++
		if truth, ok := d.web.Page(r.URL); ok && truth.Exists && !truth.Changed.After(r.LastFetch) {
			current++
			d.fresh[r.URL]++
		}
	}
	return float64(current) / float64(max(pages, 1)), nil
}

// A watched page is shown with its interval week by week.
type watched struct {
	url       string
	period    time.Duration
	intervals []time.Duration
}

// periodName says how often a page changes.
func periodName(p time.Duration) string {
	switch p {
	case oneDay:
		return "every day"
	case 7 * oneDay:
		return "every week"
	case 30 * oneDay:
		return "every month"
	}
	return "never"
}

// choose picks pages that exist all the time, two of each period, from hosts of
// different habits.
func (d *demo) choose() {
	for _, period := range []time.Duration{oneDay, 7 * oneDay, 0} {
		for h := range 2 {
			for u := range d.web.URLs() {
				t, _ := d.web.Page(u)
				later, _ := d.web.PageAt(u, startTime.Add(weeksShown*7*oneDay))
				if strings.Contains(u, "://"+d.web.Host(h)+"/pages/") && t.Exists && later.Exists && t.Period == period && !t.Disallowed {
					d.chosen = append(d.chosen, watched{url: u, period: period})
					break
				}
			}
		}
	}
}

// watch notes the intervals of the chosen pages at the end of a week.
func (d *demo) watch(ctx context.Context, db crawldb.Store) error {
	for i := range d.chosen {
		r, err := db.Get(ctx, d.chosen[i].url)
		if err != nil {
			return err
		}
		d.chosen[i].intervals = append(d.chosen[i].intervals, r.Interval)
	}
	return nil
}

func (d *demo) showIntervals(ctx context.Context, db crawldb.Store) error {
	d.say("The schedule adapts. Days between visits, at the end of each week:")
	d.say("  page                              changes")
	longest := time.Duration(0)
	for _, w := range d.chosen {
		longest = max(longest, slices.Max(w.intervals))
	}
	for _, w := range d.chosen {
		line := fmt.Sprintf("  %-33s %-11s", strings.TrimPrefix(w.url, "http://"), periodName(w.period))
		for _, i := range w.intervals {
			line += fmt.Sprintf(" %4.1f", i.Hours()/24)
		}
		d.say("%s  %s", line, bars(w.intervals, longest))
	}
	d.say("")
	type class struct {
		pages, visits, found, changes int
		fresh                         float64
		interval                      time.Duration
	}
	classes := map[time.Duration]*class{}
	for r, err := range db.Scan(ctx, crawldb.Range{}) {
		if err != nil {
			return err
		}
		first, known := d.web.PageAt(r.URL, startTime)
		last, _ := d.web.Page(r.URL)
		if !known || !first.Exists || !last.Exists || d.visits[r.URL] == 0 {
			continue
		}
		c := classes[last.Period]
		if c == nil {
			c = &class{}
			classes[last.Period] = c
		}
		c.pages++
		c.visits += d.visits[r.URL]
		c.found += d.found[r.URL]
		c.changes += last.Version - first.Version
		c.fresh += d.fresh[r.URL] / float64(d.days)
		c.interval += r.Interval
	}
	d.say("What the web knows, and the crawler had to find out:")
	d.say("  changes      pages  visits a page  changes seen of those made  days between visits  current")
	for _, p := range []time.Duration{oneDay, 7 * oneDay, 30 * oneDay, 0} {
		c := classes[p]
		if c == nil {
			continue
		}
		n := float64(c.pages)
		d.say("  %-11s %6d  %13.1f  %12d of %-11d  %19.1f  %6.0f%%", periodName(p), c.pages, float64(c.visits)/n,
			c.found, c.changes, c.interval.Hours()/24/n, 100*c.fresh/n)
	}
	d.say("")
	return nil
}

// bars draws values as a row of bars.
func bars(values []time.Duration, longest time.Duration) string {
	marks := []rune("▁▂▃▄▅▆▇█")
	var b strings.Builder
	for _, v := range values {
		b.WriteRune(marks[min(len(marks)-1, int(v*time.Duration(len(marks))/max(longest, 1)))])
	}
	return b.String()
}

func (d *demo) showStatuses(ctx context.Context, db crawldb.Store) error {
	st, err := crawldb.ReadStats(ctx, db, d.clock.now())
	if err != nil {
		return err
	}
	means := map[crawldb.Status]string{
		crawldb.Unfetched: "known, not yet fetched", crawldb.Fetched: "new or changed when last visited", crawldb.NotModified: "unchanged when last visited",
		crawldb.Gone: "missing, or forbidden by robots.txt", crawldb.RedirTemp: "redirects temporarily", crawldb.RedirPerm: "redirects permanently", crawldb.ParseFailed: "could not be parsed",
	}
	d.say("The crawl db knows %d URLs:", st.Total)
	for _, s := range crawldb.Statuses() {
		if n := st.Statuses[s]; n > 0 {
			d.say("  %-14s %5d  %s", s, n, means[s])
		}
	}
	d.say("")
	return nil
}

func (d *demo) showBest(ctx context.Context, s *session) error {
	best, err := render.BestScored(ctx, s.db.Crawl(), 5, math.Inf(-1))
	if err != nil {
		return err
	}
	d.say("The best pages by score, which decides what is fetched first:")
	d.say("   score  inlinks  page")
	for _, r := range best {
		in, err := s.db.Links().Get(ctx, r.URL)
		if err != nil {
			return err
		}
		d.say("  %6.2f  %7d  %s", r.Score, len(in), r.URL)
	}
	d.say("")
	return nil
}

// showExplain asks why some pages are not fetched next.
func (d *demo) showExplain(ctx context.Context, s *session) error {
	var forbidden string
	for r, err := range s.db.Crawl().Scan(ctx, crawldb.Range{}) {
		if err != nil {
			return err
		}
		if strings.Contains(r.URL, "/private/") {
			forbidden = r.URL
			break
		}
	}
	d.say("Why is a page not fetched next? recrawl explain says so, and makes no request.")
	for _, u := range []string{d.chosen[len(d.chosen)-1].url, forbidden, "http://" + d.web.Host(0) + "/never/heard/of"} {
		if u == "" {
			continue
		}
		e, err := s.crawler.Explain(ctx, u)
		if err != nil {
			return err
		}
		d.say("  %s", u)
		d.say("    %s", e.Verdict)
		switch {
		case e.RobotsKnown && !e.RobotsAllowed:
			d.say("    robots.txt of the host forbids it; it was requested %d times.", d.web.Count(u))
		case e.Record != nil:
			d.say("    Last visit %s, %s; the interval is %.1f days.", e.Record.LastFetch.Format(time.DateOnly), e.Record.Status, e.Record.Interval.Hours()/24)
		}
	}
	d.say("")
	return nil
}
