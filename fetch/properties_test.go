package fetch

import (
	"strings"
	"testing"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/page"
)

func TestParseMeta(t *testing.T) {
	long := strings.Repeat("é", 1000)
	p := &page.Parsed{Meta: []page.Property{{Name: "Description", Value: "first"}, {Name: "description", Value: "second"}, {Name: "author", Value: "me"}, {Name: "long", Value: long}}}
	o := Options{Parsing: Parsing{Meta: []string{"description", "keywords", "long"}}}
	if got, want := o.contentReader().properties(p), crawldb.MetaOf("description", "first", "long", long[:1024]); got != want {
		t.Errorf("got %q", got.Encoded())
	}
	o.NutchCompat = true
	if v, _ := o.contentReader().properties(p).Get("long"); v != long {
		t.Errorf("%d bytes", len(v))
	}
	if got := (&Options{}).contentReader().properties(p); got != (crawldb.Meta{}) {
		t.Errorf("got %q", got.Encoded())
	}
}
