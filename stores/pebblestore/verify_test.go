package pebblestore_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/crawldb/verify"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/stores/pebblestore"
)

// findings verifies a store, and that this changes nothing.
func findings(t *testing.T, dir string) []verify.Finding {
	t.Helper()
	before := bytesOf(t, dir)
	var all []verify.Finding
	r, err := pebblestore.Verify(t.Context(), dir, verify.Options{Found: func(f verify.Finding) { all = append(all, f) }})
	if err != nil {
		t.Fatal(err)
	}
	if r.Findings+r.Harmless != len(all) {
		t.Errorf("%d findings are reported and %d were passed to Found", r.Findings+r.Harmless, len(all))
	}
	if bytesOf(t, dir) != before {
		t.Error("the check has changed the directory")
	}
	return all
}

func bytesOf(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		b.WriteString(path)
		if e.Type().IsRegular() {
			text, err := os.ReadFile(path)
			b.Write(text)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestVerifyOfASoundStore(t *testing.T) {
	for _, killed := range []bool{false, true} {
		for _, f := range findings(t, sound(t, 400, killed)) {
			t.Errorf("killed %v: %v", killed, f)
		}
	}
}

// A part that was cut off within its head is named, like one that was cut off after it.
func TestVerifyOfAPartWithHalfAHead(t *testing.T) {
	dir := sound(t, 90, false)
	name := filepath.Join(dir, "segments", soundBegun, segment.FetchPart+".open")
	if err := os.Truncate(name, 7); err != nil {
		t.Fatal(err)
	}
	for _, f := range findings(t, dir) {
		if f.File == name && f.Harmless && f.Offset == 0 {
			return
		}
	}
	t.Error("it is not named")
}

// A killed process leaves tables that it was writing.
func TestVerifyOfATableThatDoesNotCount(t *testing.T) {
	for _, killed := range []bool{false, true} {
		dir := sound(t, 400, killed)
		for name, text := range map[string]string{"099998.sst": "", "099999.sst": "the begin"} {
			if err := os.WriteFile(filepath.Join(dir, "db", name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		for _, f := range findings(t, dir) {
			t.Errorf("killed %v: %v", killed, f)
		}
	}
}

func TestVerifyNamesThePlace(t *testing.T) {
	dir := sound(t, 400, false)
	tables, err := filepath.Glob(filepath.Join(dir, "db", "*.sst"))
	if err != nil || len(tables) == 0 {
		t.Fatal(tables, err)
	}
	text, err := os.ReadFile(tables[0])
	if err != nil {
		t.Fatal(err)
	}
	text[10] ^= 1
	if err := os.WriteFile(tables[0], text, 0o644); err != nil {
		t.Fatal(err)
	}
	// The block is read for records, for the due index and to look for its entries.
	all := findings(t, dir)
	if len(all) != 1 {
		t.Fatalf("one damaged block has %d findings: %v", len(all), all)
	}
	var damage *crawldb.CorruptError
	if f := all[0]; !errors.As(f, &damage) || f.File != tables[0] || f.Offset != 0 || strings.Contains(f.Error(), "carrier") {
		t.Errorf("found %v in %q at %d", f, f.File, f.Offset)
	}
}

// rows changes the rows of a database.
type rows struct {
	t  *testing.T
	db *pebblestore.DB
}

func (r rows) set(key, value string) {
	r.t.Helper()
	if err := r.db.SetRow(key, value); err != nil {
		r.t.Fatal(err)
	}
}

func (r rows) value(key string) string {
	r.t.Helper()
	value, err := r.db.Row(key)
	if err != nil || value == "" {
		r.t.Fatalf("the row %q is %q, %v", key, value, err)
	}
	return value
}

// entry returns the key of the entry of a record in the due index.
func (r rows) entry(url string) string {
	r.t.Helper()
	all, err := r.db.Rows()
	if err != nil {
		r.t.Fatal(err)
	}
	for line := range strings.Lines(all) {
		quoted, _ := strconv.QuotedPrefix(line)
		if key, err := strconv.Unquote(quoted); err == nil && strings.Contains("dw", key[:1]) && strings.HasSuffix(key, crawldb.Key(url)) {
			return key
		}
	}
	r.t.Fatalf("%s has no entry", url)
	return ""
}

// Verify reports rows that another program has written into the database, each with its name.
func TestVerifyOfRows(t *testing.T) {
	const page = "http://h00.example/"
	for name, tt := range map[string]struct {
		change func(r rows)
		want   []string
	}{
		"a lease of nothing": {func(r rows) {
			r.set("e"+crawldb.Key(page+"0001"), "")
		}, []string{page + "0001"}},
		"leases and records": {func(r rows) {
			r.set("c"+crawldb.Key(page+"0009"), "\xff")
			r.set("e"+crawldb.Key(page+"0001"), "\xff")
			r.set("e"+crawldb.Key(page+"none"), "\x02a")
			r.set("e"+crawldb.Key("http://h03.example/none"), "\x02a")
		}, []string{page + "0001", page + "0009", page + "none", "http://h03.example/none"}},
		"entries of the due index": {func(r rows) {
			r.set("d\x07", "")
			r.set("dgarbage", "")
			r.set(r.entry(page+"0003"), "")
			r.set(r.entry(page+"0004"), r.value(r.entry(page + "0004"))[:4])
			r.set(r.entry(page+"0006")+"0", r.value(r.entry(page+"0006")))
			r.set("wgarbage", "")
		}, []string{"http:/0003", `"d\a"`, "dgarbage", "wgarbage", page + "0004", page + "00060"}},
		"tallies": {func(r rows) {
			r.set("texample,h00)", "\xff")
			r.set("texample,h01)", "\x01\x02")
			r.set("texample,none)", "\x01\x02")
		}, []string{"example,h00)", "example,h01)", "example,none)"}},
		"hosts": {func(r rows) {
			r.set("hh01.example", "\xffgarbage")
			r.set("hh03.example", "\xffgarbage")
		}, []string{"h01.example", "h03.example"}},
		"robots.txt files without a host": {func(r rows) {
			r.set("rnobody.example", r.value("rh01.example"))
		}, []string{"nobody.example"}},
		"layers that there are not": {func(r rows) {
			r.set("i\x00\x00\x00\x01", "1")
			r.set("i\x00\x00\x00\x01\x00\x00\x00\x02a", "1")
		}, []string{"in no layer", `"i\x00\x00\x00\x01\x00\x00\x00\x02a"`}},
		"tables that there are not": {func(r rows) {
			r.set("", "1")
			r.set("\x00a", "1")
			r.set("za", "1")
			r.set("zb", "1")
		}, []string{"in no table", `"\x00a"`, `"za"`, `"zb"`}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := sound(t, 400, false)
			db := openToChange(t, dir)
			tt.change(rows{t, db})
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			all := findings(t, dir)
			if len(all) != len(tt.want) {
				t.Errorf("found %v", all)
			}
			for i := range min(len(all), len(tt.want)) {
				if !strings.Contains(all[i].Error(), tt.want[i]) || all[i].File == "" || all[i].Harmless {
					t.Errorf("found %v, and not %s", all[i], tt.want[i])
				}
			}
		})
	}
}
