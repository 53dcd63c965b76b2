package recrawl_test

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/protocol/webtest"
)

// The diff of an event has the fields, links and words that differ from the last content that was seen.
func TestEventDiff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const page = "http://a.example.test/x"
		round := 0
		s := newSetup(&webtest.Web{Hosts: 1})
		s.opts.Protocol = scripted(map[string][]string{"x": {
			`=the price is 10 euro <a href="/old">o</a> <meta name=description content=Old>`,
			`304`,
			`=the price is 12 euro <a href="/new">o</a> <meta name=description content=New><meta name=robots content=noindex>`,
			`404`,
			`=all new`,
		}}, &round)
		c := s.crawler(t)
		defer c.Close()
		if _, err := c.Inject(t.Context(), page); err != nil {
			t.Fatal(err)
		}
		k := s.consumer(t, c, "index", recrawl.ConsumerOptions{})
		for ; round < 5; round++ {
			force(t, s.db.Crawl(), page, s.now)
			if r, err := c.Round(t.Context()); err != nil || r.Visited() == 0 {
				t.Fatalf("%+v, %v", r, err)
			}
			s.now = s.now.Add(time.Hour)
		}
		diffs := func() (all []string) {
			for e, err := range k.Events(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				if e.URL != page {
					continue
				}
				d, ok, err := e.Diff(t.Context(), 1)
				if err != nil {
					t.Fatal(err)
				}
				line := e.Kind.String()
				if ok {
					d.Since = time.Time{}
					raw, _ := json.Marshal(&d)
					line += " " + string(raw)
				}
				all = append(all, line)
			}
			return all
		}
		const since = ` {"since":"0001-01-01T00:00:00Z",`
		want := []string{
			`new`,
			`changed` + since + `"fields":[{"field":"robots","before":"","after":"noindex"},{"field":"meta.description","before":"Old","after":"New"},{"field":"meta.robots","before":"","after":"noindex"}],` +
				`"links_added":["http://a.example.test/new"],"links_removed":["http://a.example.test/old"],` +
				`"text":[{"op":"skipped","words":2},{"op":"same","text":"is ","words":1},{"op":"removed","text":"10 ","words":1},{"op":"added","text":"12 ","words":1},{"op":"same","text":"euro ","words":1},{"op":"skipped","words":1}]}`,
			`gone` + since + `"fields":[{"field":"outcome","before":"success","after":"not_found"}]}`,
			`new`,
		}
		got := diffs()
		if len(got) != len(want) {
			t.Fatalf("%q", got)
		}
		for i := range want {
			if i == 3 { // compared with nothing, or with the content before it was gone
				continue
			}
			if got[i] != want[i] {
				t.Errorf("event %d:\n%s, want\n%s", i, got[i], want[i])
			}
		}
		if err := k.Ack(t.Context(), "1.0.0"); err != nil {
			t.Fatal(err)
		}
		if got := diffs(); len(got) != 3 || got[0] == "changed" {
			t.Errorf("after an acknowledgement: %q", got)
		}
		if err := s.db.Segments().Remove(t.Context(), segments(t, s)[0]); err != nil {
			t.Fatal(err)
		}
		if got := diffs(); len(got) != 3 || got[0] != "changed" {
			t.Errorf("after the segment was removed: %q", got)
		}
	})
}
