package recrawl_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/protocol/webtest"
)

// The text before a change is found where it was last sent, as long as that segment is kept.
func TestPreviousText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const page = "http://a.example.test/x"
		round := 0
		s := newSetup(&webtest.Web{Hosts: 1})
		s.opts.Protocol = scripted(map[string][]string{"x": {"=one", "304", "=one", "304", "=two", "304", "404"}}, &round)
		c := s.crawler(t)
		defer c.Close()
		if _, err := c.Inject(t.Context(), page); err != nil {
			t.Fatal(err)
		}
		k := s.consumer(t, c, "index", recrawl.ConsumerOptions{})
		texts := func() (all []string) {
			for e, err := range k.Events(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				text, ok, err := e.PreviousText(t.Context())
				if err != nil || ok != (text != "") {
					t.Errorf("%q, %v, %v", text, ok, err)
				}
				all = append(all, e.Kind.String()+" "+strings.TrimPrefix(text, "T "))
			}
			return all
		}
		for ; round < 7; round++ {
			force(t, s.db.Crawl(), page, s.now)
			if r, err := c.Round(t.Context()); err != nil || r.Visited() != 1 {
				t.Fatalf("%+v, %v", r, err)
			}
			s.now = s.now.Add(time.Hour)
		}
		if got := texts(); len(got) != 3 || got[0] != "new " || !strings.HasSuffix(got[1], "one") || !strings.HasSuffix(got[2], "two") {
			t.Errorf("%q", got)
		}
		if err := k.Ack(t.Context(), "1.0.0"); err != nil {
			t.Fatal(err)
		}
		if got := texts(); len(got) != 2 {
			t.Errorf("%q after an acknowledgement", got)
		}
		if err := s.db.Segments().Remove(t.Context(), segments(t, s)[0]); err != nil {
			t.Fatal(err)
		}
		if got := texts(); len(got) != 2 || !strings.HasSuffix(got[0], "one") {
			t.Errorf("%q of the third round", got)
		}
		if err := s.db.Segments().Remove(t.Context(), segments(t, s)[1]); err != nil {
			t.Fatal(err)
		}
		if got := texts(); len(got) != 2 || got[0] != "changed " || !strings.HasSuffix(got[1], "two") {
			t.Errorf("%q", got)
		}
	})
}
