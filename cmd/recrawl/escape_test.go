package main_test

import (
	"encoding/csv"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/linkdb"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/stores/pebblestore"
)

// What a page, a server or a list of seeds contains cannot command a terminal, whichever verb
// prints it, and is no formula in a spreadsheet. Formats of Nutch are exact.
func TestOutputIsEscaped(t *testing.T) {
	t.Parallel()
	const bad = "\x1b]0;x\x07\x9b\u009b31m\x7f\r"
	const url, seg = "http://a.example/" + bad, "20260105080000-000"
	dir := filepath.Join(t.TempDir(), "crawl")
	db, err := pebblestore.Open(dir, pebblestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	record := crawldb.Datum{URL: url, Status: crawldb.Fetched, FetchTime: parsed(frozen), LastFetch: parsed(frozen), ETag: bad, LastModified: bad}
	record.Meta.Set(bad, bad)
	record.Meta.Set("=cmd", "1")
	formula := crawldb.Datum{URL: "=HYPERLINK(1)", Status: crawldb.Unfetched, FetchTime: parsed(frozen)}
	for _, d := range []crawldb.Datum{record, formula} {
		if err := db.Crawl().Update(t.Context(), crawldb.Batch{URLs: []string{d.URL}, Next: func(int, *crawldb.Datum) (*crawldb.Datum, error) { return &d, nil }}); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Links().Merge(t.Context(), []linkdb.Entry{{URL: url, Inlinks: []linkdb.Inlink{{From: url, Anchor: bad}}}}, 10); err != nil {
		t.Fatal(err)
	}
	if err := db.Hosts().Update(t.Context(), "a.example", func(*hostdb.Host) (*hostdb.Host, error) {
		return &hostdb.Host{Name: "a.example", Counted: parsed(frozen), Homepage: url}, nil
	}); err != nil {
		t.Fatal(err)
	}
	writePart(t, db.Segments(), seg, record)
	writePart(t, db.Segments(), seg, page.Content{URL: url, Type: bad, Body: []byte(bad)})
	writePart(t, db.Segments(), seg, segment.Visit{URL: url, Time: parsed(frozen), Outcome: protocol.Outcome{Code: protocol.Failed, Reason: bad}})
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"readdb -dump", "readdb -dump -json", "readdb -dump -format csv", "readdb -stats", "readdb -topN 3", "readdb -url " + url,
		"readseg -list", "readseg -dump", "readseg -dump -json", "readseg -dump -recode",
		"readlinks", "readlinks -json", "readlinks -format graph", "explain " + url, "explain -json " + url, "explain http://\x1b/", "hosts -v", "hosts -json", "status", "verify",
		"readdb -url \x1b", "readdb -regex \x1b(", "\x1b", "check normalize http://a\x1b.example/\x1b", "generate -now " + frozen + " -no-filter -noNorm",
	} {
		args := strings.Split(line, " ")
		if !strings.HasPrefix(line, "check") && line != "\x1b" {
			args = append([]string{args[0], "-d", dir}, args[1:]...)
		}
		r := recrawl(t, args...)
		if text := r.out + r.err; !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }) {
			t.Errorf("%q prints %q", line, text)
		}
		if strings.HasSuffix(line, "csv") {
			rows, err := csv.NewReader(strings.NewReader(r.out)).ReadAll()
			if err != nil || len(rows) != 3 {
				t.Fatal(rows, err)
			}
			for _, row := range rows {
				for _, cell := range row {
					if cell != "" && strings.ContainsRune("=+-@\t\r", rune(cell[0])) {
						t.Errorf("the cell %q is a formula", cell)
					}
				}
			}
		}
	}
	for _, line := range []string{"readdb -dump -format nutch", "readlinks -format nutch"} {
		args := strings.Split(line, " ")
		if out := ok(t, append([]string{args[0], "-d", dir}, args[1:]...)...); !strings.Contains(out, url) {
			t.Errorf("%s does not print the URL as it is: %q", line, out)
		}
	}
}
