package scoring

import (
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/page"
)

// Nutch's TestOrphanScoringFilter.
func TestOrphanAsInNutch(t *testing.T) {
	for _, o := range []Orphan{
		{GoneAfter: 5 * time.Second, OrphanAfter: 10 * time.Second},
		{GoneAfter: 5 * time.Second, OrphanAfter: 10 * time.Second, NutchCompat: true},
	} {
		d := crawldb.Datum{Status: crawldb.NotModified}
		step := func(at time.Duration, links int, want crawldb.Status, seen string) {
			t.Helper()
			old := d
			o.Updated(&old, &d, Flow{In: make([]Link, links), Time: t0.Add(at)})
			got, _ := d.Meta.Get(OrphanKey)
			if d.Status != want || got != seen {
				t.Errorf("%+v after %v: %v, seen %s; want %v, %s", o, at, d.Status, got, want, seen)
			}
		}
		step(0, 0, crawldb.NotModified, "")
		step(0, 1, crawldb.NotModified, "1735689600")
		step(time.Second, 1, crawldb.NotModified, "1735689601")
		step(2*time.Second, 0, crawldb.NotModified, "1735689601")
		step(6*time.Second, 0, crawldb.NotModified, "1735689601") // strictly more than five
		step(7*time.Second, 0, crawldb.Gone, "1735689601")
		step(11*time.Second, 0, crawldb.Gone, "1735689601")
		step(12*time.Second, 0, crawldb.Orphan, "1735689601")
	}
}

func TestOrphanThatIsLinkedAgain(t *testing.T) {
	for compat, want := range map[bool]crawldb.Status{false: crawldb.Unfetched, true: crawldb.Orphan} {
		d := crawldb.Datum{Status: crawldb.Orphan, Meta: crawldb.MetaOf(OrphanKey, "1000")}
		Orphan{NutchCompat: compat}.Updated(nil, &d, Flow{In: make([]Link, 1), Time: t0})
		if d.Status != want {
			t.Errorf("compat %v: %v, want %v", compat, d.Status, want)
		}
	}
}

func TestOlderSegmentKeepsOrphanState(t *testing.T) {
	for compat, want := range map[bool]string{false: "1735689600", true: "1735689540"} {
		d := crawldb.Datum{}
		o := Orphan{NutchCompat: compat}
		o.Updated(nil, &d, Flow{In: make([]Link, 1), Time: t0})
		o.Updated(nil, &d, Flow{In: make([]Link, 1), Time: t0.Add(-time.Minute)})
		if got, _ := d.Meta.Get(OrphanKey); got != want {
			t.Errorf("compat %v: %v, want %v", compat, got, want)
		}
	}
}

func TestOrphanTimes(t *testing.T) {
	const day = 24 * time.Hour
	for _, c := range []struct {
		o    Orphan
		age  time.Duration
		want crawldb.Status
	}{
		{Orphan{}, 30 * day, crawldb.Fetched},
		{Orphan{}, 30*day + time.Second, crawldb.Gone},
		{Orphan{}, 40*day + time.Second, crawldb.Orphan},
		{Orphan{GoneAfter: -1}, 39 * day, crawldb.Fetched},
		{Orphan{OrphanAfter: -1}, 4000 * day, crawldb.Gone},
		{Orphan{GoneAfter: 50 * day}, 45 * day, crawldb.Orphan},
	} {
		d := crawldb.Datum{Status: crawldb.Fetched}
		c.o.Updated(nil, &d, Flow{In: make([]Link, 1), Time: t0})
		if c.o.Orphaned(&d, t0.Add(c.age)); d.Status != c.want {
			t.Errorf("%+v after %v: %v, want %v", c.o, c.age, d.Status, c.want)
		}
	}
	d := crawldb.Datum{Status: crawldb.Fetched, Meta: crawldb.MetaOf(OrphanKey, "when?")}
	if (Orphan{}).Orphaned(&d, t0); d.Status != crawldb.Fetched {
		t.Errorf("a time that is none: %v", d.Status)
	}
}

// Nutch's TestMetadataScoringFilter.
func TestMetadataAsInNutch(t *testing.T) {
	give := func(m Metadata, p Page) []Link {
		links := []Link{{URL: "http://a.example/1"}, {URL: "http://a.example/2"}, {URL: "http://a.example/3", Drop: true}}
		p.Datum.URL = "http://a.example/"
		if gave := m.Distribute(p, links); gave != 0 {
			t.Errorf("gave %v", gave)
		}
		if links[2].Meta.Len() > 0 || show(links[0].Meta) != show(links[1].Meta) {
			t.Errorf("%+v", links)
		}
		return links
	}
	parsed := &page.Parsed{Meta: []page.Property{{Name: "parent", Value: "https://nutch.apache.org/"}, {Name: "depth", Value: "1"}, {Name: "depth", Value: "2"}, {Name: "secret", Value: "x"}}}
	seed := crawldb.MetaOf("parent", "seed", "depth", "0", "secret", "y")
	both := []string{"parent", "depth"}
	for _, c := range []struct {
		name string
		m    Metadata
		p    Page
		want string
	}{
		{"of the page", Metadata{Parse: both}, Page{Datum: &crawldb.Datum{}, Content: &page.Content{}, Parsed: parsed}, "depth=1 parent=https://nutch.apache.org/ "},
		{"of the record", Metadata{DB: both, Parse: both}, Page{Datum: &crawldb.Datum{Meta: seed}, Content: &page.Content{}, Parsed: &page.Parsed{}}, "depth=0 parent=seed "},
		{"the page goes first", Metadata{DB: both, Parse: both}, Page{Datum: &crawldb.Datum{Meta: seed}, Content: &page.Content{}, Parsed: parsed}, "depth=1 parent=https://nutch.apache.org/ "},
		{"the record goes first", Metadata{DB: both, Content: both, Parse: both}, Page{Datum: &crawldb.Datum{Meta: seed}, Content: &page.Content{}, Parsed: parsed}, "depth=0 parent=seed "},
		{"not asked for", Metadata{DB: both, Content: both}, Page{Datum: &crawldb.Datum{Meta: seed}, Content: &page.Content{}, Parsed: parsed}, ""},
		{"the record is not asked", Metadata{Parse: both}, Page{Datum: &crawldb.Datum{Meta: seed}, Content: &page.Content{}, Parsed: &page.Parsed{}}, ""},
		{"tags", URLMeta("parent"), Page{Datum: &crawldb.Datum{Meta: seed}, Content: &page.Content{}, Parsed: parsed}, "parent=seed "},
		{"a redirect", URLMeta("parent"), Page{Datum: &crawldb.Datum{Meta: seed}}, "parent=seed "},
		{"Nutch: a redirect is not the filter's", Metadata{DB: both, Parse: both, NutchCompat: true}, Page{Datum: &crawldb.Datum{Meta: seed}}, ""},
	} {
		if got := show(give(c.m, c.p)[0].Meta); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestLinkAnalysis(t *testing.T) {
	d := crawldb.Datum{Score: 4}
	for _, c := range []struct {
		l    LinkAnalysis
		d    *crawldb.Datum
		want float32
	}{
		{LinkAnalysis{}, &d, 12},
		{LinkAnalysis{Normalize: 0.5}, &d, 6},
		{LinkAnalysis{Normalize: -1}, &d, 3},
		{LinkAnalysis{}, nil, 3},
		{LinkAnalysis{NutchCompat: true}, &d, 4}, // the weight so far is ignored
		{LinkAnalysis{NutchCompat: true, Normalize: 0.5}, &d, 2},
		{LinkAnalysis{NutchCompat: true}, nil, 3},
	} {
		if got := c.l.Boost(c.d, 3); got != c.want {
			t.Errorf("%+v: %v, want %v", c.l, got, c.want)
		}
	}
	n := crawldb.Datum{Score: 9}
	if (LinkAnalysis{}).Discovered(&n); n.Score != 0 {
		t.Errorf("a new page has %v", n.Score)
	}
	next := d
	(LinkAnalysis{}).Updated(&d, &next, Flow{Visited: true, In: []Link{{Score: 3}}})
	if p := (LinkAnalysis{}).Priority(&next, next.Score); next.Score != 4 || p != 4 {
		t.Errorf("score %v, priority %v", next.Score, p)
	}
}
