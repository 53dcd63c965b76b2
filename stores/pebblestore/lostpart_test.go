package pebblestore_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/crawldb/verify"
	"github.com/recrawl/recrawl/internal/testlevel"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/stores/pebblestore"
)

// Verify and Salvage report a part of a segment that was removed as a whole. That costs the
// other parts nothing, except that without the visits there is no segment.
func TestLostPart(t *testing.T) {
	testlevel.SkipInRace(t)
	t.Parallel()
	for _, name := range []string{soundDone, soundBegun} {
		for _, part := range segment.Parts() {
			t.Run(name+"/"+part, func(t *testing.T) {
				t.Parallel()
				dir := sound(t, 240, false)
				path := filepath.Join(dir, "segments", name, part)
				if _, err := os.Stat(path); err != nil {
					path += ".open"
				}
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
				// Of what is not complete, what is written last may not have been begun.
				reported := name == soundDone || part != segment.FetchPart && part != segment.ParsePart
				var found []string
				_, err := pebblestore.Verify(t.Context(), dir, verify.Options{Now: soundTime, Found: func(f verify.Finding) {
					if !f.Harmless && f.Segment == name && f.Part == part {
						found = append(found, f.Error())
					}
				}})
				if err != nil {
					t.Fatal(err)
				}
				if reported && (len(found) != 1 || !strings.Contains(found[0], "it is missing")) || !reported && len(found) > 0 {
					t.Errorf("verify tells %q", found)
				}
				db, losses, _ := salvaged(t, dir)
				lost := false
				for _, l := range losses {
					lost = lost || l.Segment == name && (l.Part == part || part == segment.FetchPart && l.Part == "")
				}
				if lost != reported {
					t.Errorf("salvage tells %v", losses)
				}
				if part == segment.FetchPart {
					return
				}
				for _, other := range segment.Parts() {
					want := 6
					switch other {
					case part:
						want = 0
					case segment.GeneratePart:
						continue
					}
					if n := countRecords(t, db, name, other); n != want {
						t.Errorf("%d records of %s, not %d", n, other, want)
					}
				}
			})
		}
	}
}

// A part without a whole block costs the others no more than a missing one.
func TestForeignPartLosesNoOtherPart(t *testing.T) {
	t.Parallel()
	for _, part := range []string{segment.ContentPart, segment.ParseTextPart, segment.ParseDataPart, segment.ParsePart} {
		dir := sound(t, 240, false)
		at := func(part string) string { return filepath.Join(dir, "segments", soundDone, part) }
		text, err := os.ReadFile(at(segment.GeneratePart))
		if err == nil {
			err = os.WriteFile(at(part), text, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		db, losses, _ := salvaged(t, dir)
		lost := false
		for _, l := range losses {
			lost = lost || l.Segment == soundDone && l.Part == part && l.Block < 0
		}
		if !lost {
			t.Errorf("%s: salvage tells %v", part, losses)
		}
		for _, other := range segment.Parts()[1:] {
			if n := countRecords(t, db, soundDone, other); (n == 6) == (other == part) || n != 0 && n != 6 {
				t.Errorf("%s is another's: %d records of %s", part, n, other)
			}
		}
	}
}

func countRecords(t *testing.T, db *pebblestore.DB, name, part string) int {
	t.Helper()
	switch part {
	case segment.GeneratePart:
		return countPart[crawldb.Datum](t, db, name)
	case segment.FetchPart:
		return countPart[segment.Visit](t, db, name)
	case segment.ContentPart:
		return countPart[page.Content](t, db, name)
	case segment.ParseTextPart:
		return countPart[segment.Text](t, db, name)
	case segment.ParseDataPart:
		return countPart[segment.Data](t, db, name)
	}
	return countPart[segment.Parse](t, db, name)
}

func countPart[T segment.Record](t *testing.T, db *pebblestore.DB, name string) (n int) {
	t.Helper()
	if _, err := db.Segments().Stat(t.Context(), name, segment.PartOf[T]()); err != nil {
		return 0
	}
	for block, err := range segment.Partial[T](t.Context(), db.Segments(), name, 0) {
		if err != nil {
			t.Fatal(err)
		}
		n += len(block)
	}
	return n
}
