package nutchtext_test

import (
	"testing"

	"github.com/recrawl/recrawl/linkdb"
	"github.com/recrawl/recrawl/nutch/nutchtext"
)

func TestAppendInlinks(t *testing.T) {
	e := linkdb.Entry{URL: "http://example.com/", Inlinks: []linkdb.Inlink{{From: "http://a.example/", Anchor: "an example"}, {From: "http://b.example/"}}}
	want := "http://example.com/\tInlinks:\n fromUrl: http://a.example/ anchor: an example metadata: \n fromUrl: http://b.example/ anchor:  metadata: \n\n"
	if got := string(nutchtext.AppendInlinks(nil, &e)); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
