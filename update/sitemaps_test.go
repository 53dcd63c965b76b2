package update_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/stores/memstore"
	"github.com/recrawl/recrawl/update"
)

func claim(at time.Time, span time.Duration) *crawldb.SitemapEntry {
	return &crawldb.SitemapEntry{Modified: at, Span: span}
}

// What a sitemap says of a page that is known.
func TestNextAppliesSitemapEntries(t *testing.T) {
	visited := noon.Add(-30 * day) // the last time
	for _, c := range []struct {
		name    string
		status  crawldb.Status
		hint    *crawldb.SitemapEntry
		distrib bool // not trusted
		due     time.Time
		same    bool // the record stays as it is
	}{
		{name: "changed since", hint: claim(noon.Add(-2*day), time.Second), due: noon},
		{name: "changed on a day since", hint: claim(noon.Add(-2*day), day), due: noon},
		{name: "not changed since", hint: claim(noon.Add(-31*day), time.Hour), due: noon.Add(9 * day)},
		{name: "on the day of the visit", hint: claim(visited.Add(-12*time.Hour), day), due: noon},
		{name: "in the month of the visit, which lasts", hint: claim(visited.Add(-time.Hour), 31*day), due: visited.Add(31*day - time.Hour)},
		{name: "in the year of the visit", hint: claim(visited.Add(-day), 365*day), due: noon.Add(9 * day)},
		{name: "not trusted", hint: claim(noon.Add(-2*day), time.Second), distrib: true, due: noon.Add(9 * day)},
		{name: "nothing", hint: &crawldb.SitemapEntry{Every: time.Hour, HasPriority: true, Priority: 1}, due: noon.Add(9 * day), same: true},
		{name: "to be tried again", status: crawldb.Unfetched, hint: claim(noon.Add(-2*day), time.Second), due: noon.Add(9 * day)},
		{name: "gone", status: crawldb.Gone, hint: claim(noon.Add(-2*day), time.Second), due: noon},
	} {
		old := known(c.status, 0, "A")
		if c.status == 0 {
			old.Status = crawldb.Fetched
		}
		old.FetchTime, old.LeasedBy, old.LeasedUntil = noon.Add(9*day), "", time.Time{}
		o := update.Options{Now: func() time.Time { return noon }, Scoring: scoring.OPIC{}}
		in := update.Input{URL: page, Segment: seg, SitemapEntry: c.hint, Trusted: !c.distrib}
		d := update.Next(&old, in, o)
		if !d.FetchTime.Equal(c.due) {
			t.Errorf("%s: due at %v, want %v", c.name, d.FetchTime, c.due)
		}
		if got, _ := crawldb.SitemapEntryOf(d.Meta); !c.same && got != *c.hint {
			t.Errorf("%s: remembers %+v", c.name, got)
		}
		if c.same != (d == &old) || d.Score != old.Score || scoring.Cash(d) != scoring.Cash(&old) || string(d.Signature) != "A" || d.Interval != old.Interval {
			t.Errorf("%s: %+v", c.name, d)
		}
		// The same sitemap once more changes nothing.
		if again := update.Next(d, in, o); again != d {
			t.Errorf("%s: read again: %+v", c.name, again)
		}
		if c.due.After(noon) {
			continue
		}
		// A visit that finds no change was for nothing, and postpones nothing either.
		listed := *d
		in = update.Input{URL: page, Segment: seg, Visit: visitAt(noon.Add(time.Hour), protocol.Success), Parse: parsed("A")}
		d = update.Next(&listed, in, o)
		if !d.FetchTime.Equal(noon.Add(9*day)) || d.Interval != old.Interval || d.Status != crawldb.NotModified {
			t.Errorf("%s: a claim that was false: due at %v, interval %v", c.name, d.FetchTime, d.Interval)
		}
		// And the claim counts no more.
		in = update.Input{URL: page, Segment: seg, SitemapEntry: c.hint, Trusted: true}
		if again := update.Next(d, in, o); !again.FetchTime.Equal(noon.Add(9 * day)) {
			t.Errorf("%s: due once more at %v", c.name, again.FetchTime)
		}
		in.Visit, in.Parse, in.SitemapEntry = visitAt(noon.Add(time.Hour), protocol.Success), parsed("B"), nil
		if d = update.Next(&listed, in, o); !d.FetchTime.Equal(noon.Add(time.Hour + d.Interval)) {
			t.Errorf("%s: a claim that was true: due at %v, interval %v", c.name, d.FetchTime, d.Interval)
		}
	}
}

// What a sitemap says of a page that is new.
func TestNextNewFromSitemap(t *testing.T) {
	for _, c := range []struct {
		name     string
		in       update.Input
		o        update.Options
		interval time.Duration
		score    float32
		modified time.Time
	}{
		{name: "nothing", in: update.Input{SitemapEntry: &crawldb.SitemapEntry{}, Trusted: true}, interval: 30 * day},
		{name: "weekly", in: update.Input{SitemapEntry: &crawldb.SitemapEntry{Every: 7 * day, Priority: 1, HasPriority: true}, Trusted: true}, interval: 7 * day},
		{name: "always", in: update.Input{SitemapEntry: &crawldb.SitemapEntry{Every: time.Second}, Trusted: true}, interval: day},
		{name: "always, sitemaps hourly", in: update.Input{SitemapEntry: &crawldb.SitemapEntry{Every: time.Second}, Trusted: true}, o: update.Options{Sitemaps: update.SitemapOptions{Interval: time.Hour}}, interval: time.Hour},
		{name: "always, sitemaps at no interval of their own", in: update.Input{SitemapEntry: &crawldb.SitemapEntry{Every: time.Second}, Trusted: true}, o: update.Options{Sitemaps: update.SitemapOptions{Interval: -1}}, interval: day},
		{name: "never", in: update.Input{SitemapEntry: &crawldb.SitemapEntry{Every: 1 << 30 * time.Second}, Trusted: true}, interval: 30 * day},
		{name: "not trusted", in: update.Input{SitemapEntry: &crawldb.SitemapEntry{Every: 7 * day}}, interval: 30 * day},
		{name: "Nutch", in: update.Input{SitemapEntry: &crawldb.SitemapEntry{Every: time.Second, Priority: 0.8, HasPriority: true, Modified: noon.Add(-day), Span: time.Second}},
			o: update.Options{NutchCompat: true}, interval: time.Minute, score: 0.8, modified: noon.Add(-day)},
		{name: "Nutch, nothing", in: update.Input{SitemapEntry: &crawldb.SitemapEntry{}}, o: update.Options{NutchCompat: true}, interval: 30 * day, score: 0.5},
		{name: "Nutch, priority 0", in: update.Input{SitemapEntry: &crawldb.SitemapEntry{HasPriority: true, Every: 1 << 30 * time.Second}},
			o: update.Options{NutchCompat: true, Sitemaps: update.SitemapOptions{Bounds: schedule.Bounds{Max: 60 * day}}}, interval: 60 * day, score: 0.5},
	} {
		c.in.URL, c.in.Segment, c.o.Now = page, seg, func() time.Time { return noon }
		d := update.Next(nil, c.in, c.o)
		if d == nil || d.Status != crawldb.Unfetched || d.Interval != c.interval || !d.FetchTime.Equal(noon) || d.Score != c.score || d.Priority != c.score || !d.Modified.Equal(c.modified) {
			t.Errorf("%s: %+v", c.name, d)
		}
		c.o.NoAdditions = true
		if d := update.Next(nil, c.in, c.o); d != nil {
			t.Errorf("%s: added: %+v", c.name, d)
		}
		if !c.o.NutchCompat {
			continue
		}
		old := known(crawldb.Fetched, 0, "A")
		if d := update.Next(&old, c.in, c.o); d != &old {
			t.Errorf("%s: changed what is known: %+v", c.name, d)
		}
		c.o.Sitemaps.Overwrite = true
		d = update.Next(&old, c.in, c.o)
		every, at := c.interval, c.modified
		if c.in.SitemapEntry.Every == 0 {
			every = old.Interval
		}
		if at.IsZero() {
			at = old.Modified
		}
		score := old.Score
		if c.in.SitemapEntry.Priority > 0 {
			score = c.in.SitemapEntry.Priority
		}
		if d.Score != score || d.Interval != every || !d.Modified.Equal(at) || string(d.Signature) != "A" {
			t.Errorf("%s: overwritten by %+v", c.name, d)
		}
	}
}

// What is claimed of a page is over when the page is gone or has moved: nothing of it
// is left for the day when it is back.
func TestSignalOfAPageThatIsGone(t *testing.T) {
	o := update.Options{Now: func() time.Time { return noon }, Scoring: scoring.OPIC{}}
	for _, code := range []protocol.Code{protocol.NotFound, protocol.MovedPerm} {
		old := known(crawldb.Fetched, 0, "A")
		old.FetchTime = noon.Add(60 * day)
		d := update.Next(&old, update.Input{URL: page, Segment: seg, SitemapEntry: claim(noon.Add(-2*day), time.Second), Trusted: true}, o)
		if !d.FetchTime.Equal(noon) {
			t.Fatalf("due at %v", d.FetchTime)
		}
		d = update.Next(d, update.Input{URL: page, Segment: seg, Visit: visitAt(noon.Add(time.Hour), code)}, o)
		if at, ok := d.Meta.Get("sitemap.planned"); ok {
			t.Errorf("%v: the record still has when it would have been due without the claim, %s", code, at)
		}
		d = update.Next(d, update.Input{URL: page, Segment: seg, Visit: visitAt(noon.Add(2*time.Hour), protocol.Success), Parse: parsed("A")}, o)
		if want := noon.Add(2*time.Hour + d.Interval); d.Status != crawldb.Fetched || !d.FetchTime.Equal(want) {
			t.Errorf("%v, then back: due at %v, want %v", code, d.FetchTime, want)
		}
		at := noon.Add(3 * time.Hour)
		if d = update.Next(d, update.Input{URL: page, Segment: seg, Visit: visitAt(at, protocol.Success), Parse: parsed("A")}, o); !d.FetchTime.Equal(at.Add(d.Interval)) {
			t.Errorf("%v, then unchanged: due at %v, want %v", code, d.FetchTime, at.Add(d.Interval))
		}
	}
}

// A sitemap that somebody asks for is read at once, even if it is not modified.
func TestMarkSitemap(t *testing.T) {
	o := update.Options{Now: func() time.Time { return noon }, Scoring: scoring.OPIC{}}
	asked := crawldb.Sitemap{Budget: 5, Origins: []string{"http://a.example.test"}}
	d := update.MarkSitemap(nil, page, asked, o)
	if m, ok := crawldb.SitemapOf(d.Meta); !ok || m.Page || m.Budget != 5 || !d.FetchTime.Equal(noon) || d.Interval != day || d.Priority < 1 {
		t.Errorf("new: %+v", d)
	}
	later := *d
	later.FetchTime, later.Status, later.Signature, later.ETag, later.LastModified = noon.Add(day), crawldb.Fetched, []byte("s"), "e", "l"
	asked.Budget = 3
	again := update.MarkSitemap(&later, page, asked, o)
	if m, ok := crawldb.SitemapOf(again.Meta); !ok || m.Page || m.Budget != 5 || !again.FetchTime.Equal(noon) || again.Signature != nil || again.ETag != "" || again.LastModified != "" {
		t.Errorf("again: %+v", again)
	}
	old := known(crawldb.Fetched, 0, "A")
	was := known(crawldb.Fetched, 0, "A")
	d = update.MarkSitemap(&old, page, asked, o)
	if m, ok := crawldb.SitemapOf(d.Meta); !ok || !m.Page || m.Budget != 3 || d.FetchTime.After(noon) || d.Signature != nil || d.ETag != "" || d.Score != old.Score {
		t.Errorf("a page: %+v", d)
	}
	if fmt.Sprint(old) != fmt.Sprint(was) {
		t.Errorf("the old record was changed: %+v", old)
	}
}

// What several say of one sitemap adds up, and the records that became sitemaps are
// counted.
func TestSitemapNamedTwice(t *testing.T) {
	w := newWorld(t)
	d := known(crawldb.Fetched, 0, "A")
	d.LeasedBy, d.LeasedUntil = "", time.Time{}
	w.put(d)
	var parses []segment.Parse
	for i, m := range []crawldb.Sitemap{{Budget: 5, Depth: 2, Hops: 1, Origins: []string{"http://a.example.test"}}, {Budget: 9, Depth: 1, Hops: 2, Origins: []string{"http://b.example.test"}}} {
		l := segment.Link{URL: page}
		m.Set(&l.Meta)
		fresh := l
		fresh.URL = "http://a.example.test/new.xml"
		parses = append(parses, segment.Parse{URL: url(i), Signature: []byte("s"), Links: []segment.Link{l, fresh}})
	}
	write(w, seg, []crawldb.Datum{})
	write(w, seg, []segment.Visit{})
	write(w, seg, parses)
	r, err := update.Run(t.Context(), w.crawl, w.segments, seg, update.Options{Now: func() time.Time { return noon }})
	if err != nil || r.Sitemaps.Sitemaps != 2 {
		t.Errorf("%+v, %v", r.Sitemaps, err)
	}
	for _, u := range []string{page, "http://a.example.test/new.xml"} {
		m, ok := crawldb.SitemapOf(w.get(u).Meta)
		if got := fmt.Sprint(ok, m.Budget, m.Depth, m.Hops, m.Origins); got != "true 9 1 1 [http://a.example.test http://b.example.test]" {
			t.Errorf("%s: %s", u, got)
		}
	}
}

// The record of a sitemap, step by step.
func TestNextSitemap(t *testing.T) {
	o := update.Options{Now: func() time.Time { return noon }, Scoring: scoring.OPIC{}}
	origin := "http://a.example.test"
	own, foreign := &crawldb.Sitemap{Origins: []string{origin}, Budget: 3}, &crawldb.Sitemap{Origins: []string{"http://b.test"}}
	ordinary := []scoring.Link{{From: "http://b.test/", URL: page, Score: 1}}
	mark := func(d *crawldb.Datum) string {
		m, ok := crawldb.SitemapOf(d.Meta)
		fixed, _ := d.Meta.Get(schedule.FixedKey)
		return fmt.Sprintf("%v %v %d %v %s %v", ok, m.Page, m.Budget, m.Origins, fixed, d.Priority >= 1)
	}
	is := func(what string, d *crawldb.Datum, want string) {
		t.Helper()
		if got := mark(d); got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	d := update.Next(nil, update.Input{URL: page, Segment: seg, Sitemap: own}, o)
	is("new", d, "true false 3 [http://a.example.test]  true")
	if d.Interval != day || scoring.Cash(d) != 0 {
		t.Errorf("new: %+v", d)
	}
	if again := update.Next(d, update.Input{URL: page, Segment: seg, Sitemap: own}, o); again != d {
		t.Errorf("marked again: %+v", again)
	}
	d = update.Next(d, update.Input{URL: page, Segment: seg, Sitemap: foreign}, o)
	is("listed by another, too", d, "true false 3 [http://a.example.test http://b.test]  true")

	read := &segment.Parse{URL: page, Sitemap: true, Signature: []byte("S")}
	r := update.Next(d, update.Input{URL: page, Segment: seg, Visit: visitAt(noon, protocol.Success), Parse: read}, o)
	is("read", r, "true false 3 [http://a.example.test http://b.test] 86400 true")
	if r.Status != crawldb.Fetched || !r.FetchTime.Equal(noon.Add(day)) {
		t.Errorf("read: %+v", r)
	}
	r = update.Next(r, update.Input{URL: page, Segment: seg, Visit: visitAt(noon.Add(day), protocol.NotModified)}, o)
	if !r.FetchTime.Equal(noon.Add(2*day)) || r.Status != crawldb.NotModified {
		t.Errorf("not modified: %+v", r)
	}
	bad := update.Next(d, update.Input{URL: page, Segment: seg, Visit: visitAt(noon, protocol.Success), Parse: &segment.Parse{URL: page, Sitemap: true, Error: "not a sitemap"}}, o)
	is("no sitemap", bad, "true false 3 [http://a.example.test http://b.test]  true")
	if bad.Status != crawldb.ParseFailed || !bad.FetchTime.Equal(noon.Add(36*time.Hour)) {
		t.Errorf("no sitemap: %+v", bad)
	}
	p := update.Next(bad, update.Input{URL: page, Segment: seg, Links: ordinary}, o)
	is("linked as a page", p, "true true 3 [http://a.example.test http://b.test]  true")
	if p.Status != crawldb.Unfetched || !p.FetchTime.Equal(noon) || p.Interval != 30*day {
		t.Errorf("linked as a page: %+v", p)
	}
	p = update.Next(p, update.Input{URL: page, Segment: seg, Visit: visitAt(noon, protocol.Success), Parse: parsed("A")}, o)
	if !p.FetchTime.Equal(noon.Add(30*day)) || p.Status != crawldb.Fetched {
		t.Errorf("read as a page: %+v", p)
	}
	r = update.Next(r, update.Input{URL: page, Segment: seg, Visit: visitAt(noon.Add(day), protocol.Success), Parse: parsed("A")}, o)
	if _, ok := r.Meta.Get(schedule.FixedKey); ok {
		t.Error("a page keeps the interval of a sitemap")
	}

	old := known(crawldb.Fetched, 0, "A")
	old.FetchTime, old.LeasedBy, old.LeasedUntil = noon.Add(9*day), "", time.Time{}
	if d := update.Next(&old, update.Input{URL: page, Segment: seg, Sitemap: foreign}, o); d != &old {
		t.Errorf("another site has made a page a sitemap: %+v", d)
	}
	d = update.Next(&old, update.Input{URL: page, Segment: seg, Sitemap: own}, o)
	is("known as a page", d, "true true 3 [http://a.example.test]  true")
	if !d.FetchTime.Equal(noon) || d.Signature != nil || d.ETag != "" || d.Score != old.Score {
		t.Errorf("known as a page: %+v", d)
	}
	d = update.Next(nil, update.Input{URL: page, Segment: seg, Sitemap: own, Links: ordinary}, o)
	is("both at once", d, "true true 3 [http://a.example.test]  true")

	// Under a schedule of one's own nothing is fixed.
	o.Sitemaps.Interval = -1
	d = update.Next(nil, update.Input{URL: page, Segment: seg, Sitemap: own, Visit: visitAt(noon, protocol.Success), Parse: read}, o)
	if _, ok := d.Meta.Get(schedule.FixedKey); ok || d.Interval != 30*day {
		t.Errorf("%+v", d)
	}
}

// signalledSegment makes a segment in which some pages that sitemaps speak of were visited,
// and one sitemap was read.
func signalledSegment(w *world) (want hostdb.SignalStats) {
	var list []crawldb.Datum
	var visits []segment.Visit
	var parses []segment.Parse
	for i := range 40 {
		url := fmt.Sprintf("http://a.example.test/%02d", i)
		d := known(crawldb.Fetched, 0, "A")
		d.URL = url
		sum, code := "A", protocol.Success
		switch i % 8 {
		case 0: // true
			claim(noon.Add(-day), time.Second).Set(&d.Meta)
			sum = "B"
			want.Hits++
		case 1: // false
			claim(noon.Add(-day), time.Second).Set(&d.Meta)
			want.False++
		case 2: // false
			claim(noon.Add(-day), time.Second).Set(&d.Meta)
			code = protocol.NotModified
			want.False++
		case 3: // not claimed
			claim(noon.Add(-35*day), time.Second).Set(&d.Meta)
			sum = "B"
			want.Misses++
		case 4: // rightly not claimed
			claim(noon.Add(-35*day), time.Second).Set(&d.Meta)
		case 5: // who knows
			claim(noon.Add(-31*day), 2*day).Set(&d.Meta)
			sum = "B"
		case 6: // nothing to compare
			claim(noon.Add(-day), time.Second).Set(&d.Meta)
			d.Signature = nil
		case 7: // nothing found
			claim(noon.Add(-day), time.Second).Set(&d.Meta)
			code = protocol.Failed
		}
		list = append(list, d)
		v := *visitAt(noon, code)
		v.URL = url
		visits = append(visits, v)
		if code == protocol.Success {
			p := *parsed(sum)
			p.URL = url
			parses = append(parses, p)
		}
	}
	read := segment.Parse{URL: "http://a.example.test/39"}
	for i := range 60 {
		l := segment.Link{URL: fmt.Sprintf("http://a.example.test/%02d", i)}
		claim(noon.Add(time.Hour), time.Second).Set(&l.Meta)
		read.Links = append(read.Links, l)
	}
	parses = append(parses, read)
	w.put(list...)
	write(w, seg, list)
	write(w, seg, visits)
	write(w, seg, parses)
	return want
}

// cut is a store that fails after some updates.
type cut struct {
	*memstore.Crawl
	left int
}

var errCut = errors.New("cut")

func (c *cut) Update(ctx context.Context, b crawldb.Batch) error {
	if c.left--; c.left < 0 {
		return errCut
	}
	return c.Crawl.Update(ctx, b)
}

// A segment is counted once, however often the update of it dies, and what comes
// of it is the same.
func TestSignalsAreCountedOnce(t *testing.T) {
	first := ""
	for died := range 9 {
		w := newWorld(t)
		want := signalledSegment(w)
		want.Segment = seg
		hosts := new(memstore.Hosts)
		o := update.Options{Hosts: hosts, Now: func() time.Time { return noon }}
		o = o.WithChunk(8)
		for range died {
			_, err := update.Run(t.Context(), &cut{w.crawl, 1}, w.segments, seg, o)
			if err != nil && !errors.Is(err, errCut) {
				t.Fatal(err)
			}
		}
		r, err := update.Run(t.Context(), w.crawl, w.segments, seg, o)
		if err != nil {
			t.Fatal(err)
		}
		h, err := hosts.Get(t.Context(), "a.example.test")
		got := h.Signals
		if first == "" && !(got.Precision() > .2 && got.Precision() < .5) {
			t.Errorf("a third of the signals are true: precision %v", got.Precision())
		}
		want.Truth, want.Tests = got.Truth, got.Tests
		if err != nil || got != want {
			t.Errorf("died %d times: %+v, want %+v, %v", died, h.Signals, want, err)
		}
		if died == 0 && (r.Sitemaps.New != 20 || r.Sitemaps.Known != 40 || r.Sitemaps.Due != 0 || r.Sitemaps.Untrusted == 0) {
			t.Errorf("%+v", r.Sitemaps)
		}
		if dump := w.dump(); first == "" {
			first = dump
		} else if dump != first {
			t.Errorf("died %d times: another crawl db", died)
		}
	}
}

// A segment that was counted under a clock that was ahead keeps no other from being
// counted, and is not counted twice itself.
func TestSignalsAfterAClockThatWasAhead(t *testing.T) {
	for _, last := range []string{seg, "20360101000000-000"} {
		w := newWorld(t)
		want := signalledSegment(w)
		if last == seg {
			want = hostdb.SignalStats{}
		}
		hosts := new(memstore.Hosts)
		err := hosts.Update(t.Context(), "a.example.test", func(*hostdb.Host) (*hostdb.Host, error) {
			return &hostdb.Host{Signals: hostdb.SignalStats{Segment: last}}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		at := noon
		if last == seg { // as it is named, the clock was ahead when it was generated
			at = noon.AddDate(-1, 0, 0)
		}
		if _, err := update.Run(t.Context(), w.crawl, w.segments, seg, update.Options{Hosts: hosts, Now: func() time.Time { return at }}); err != nil {
			t.Fatal(err)
		}
		h, err := hosts.Get(t.Context(), "a.example.test")
		if got := h.Signals; err != nil || got.Segment != seg || got.Hits != want.Hits || got.False != want.False || got.Misses != want.Misses {
			t.Errorf("behind %s: %+v, want %+v, %v", last, got, want, err)
		}
	}
}

// Of a host that is not known yet, a few signals are believed.
func TestFewSignalsOfAnUnknownHostAreBelieved(t *testing.T) {
	w := newWorld(t)
	var list []crawldb.Datum
	read := segment.Parse{URL: "http://a.example.test/sitemap.xml"}
	for i := range 1000 {
		d := known(crawldb.Fetched, 0, "A")
		d.URL, d.FetchTime, d.LeasedBy, d.LeasedUntil = fmt.Sprintf("http://a.example.test/%04d", i), noon.Add(9*day), "", time.Time{}
		list = append(list, d)
		l := segment.Link{URL: d.URL}
		claim(noon.Add(-day), time.Second).Set(&l.Meta)
		read.Links = append(read.Links, l)
	}
	w.put(list...)
	v := *visitAt(noon, protocol.Success)
	v.URL = read.URL
	write(w, seg, []crawldb.Datum{{URL: read.URL}})
	write(w, seg, []segment.Visit{v})
	write(w, seg, []segment.Parse{read})
	hosts := new(memstore.Hosts)
	r, err := update.Run(t.Context(), w.crawl, w.segments, seg, update.Options{Hosts: hosts, Now: func() time.Time { return noon }})
	if err != nil || r.Sitemaps.Due < 4 || r.Sitemaps.Due > 40 || r.Sitemaps.Due+r.Sitemaps.Untrusted != 1000 {
		t.Errorf("%+v %v", r.Sitemaps, err)
	}
}
