package pebblestore_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/bits"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/crawldb/verify"
	"github.com/recrawl/recrawl/internal/testlevel"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/stores/pebblestore"
)

// salvaged salvages a store, and checks that the source stays as it is and that
// the new store is sound.
func salvaged(t *testing.T, dir string) (*pebblestore.DB, []pebblestore.Loss, pebblestore.SalvageReport) {
	t.Helper()
	before := bytesOf(t, dir)
	to := filepath.Join(t.TempDir(), "new")
	var losses []pebblestore.Loss
	r, err := pebblestore.Salvage(t.Context(), dir, to, pebblestore.SalvageOptions{Lost: func(l pebblestore.Loss) { losses = append(losses, l) }})
	if err != nil {
		t.Fatal(err)
	}
	if int(r.Losses) != len(losses) {
		t.Errorf("%d losses are reported and %d were passed to Lost", r.Losses, len(losses))
	}
	if bytesOf(t, dir) != before {
		t.Error("the source has changed")
	}
	if _, err := os.Stat(to + ".salvage"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what was worked in is left: %v", err)
	}
	_, err = pebblestore.Verify(t.Context(), to, verify.Options{Found: func(f verify.Finding) { t.Errorf("the new store is not sound: %v", f) }})
	if err != nil {
		t.Fatal(err)
	}
	db, err := pebblestore.Open(to, pebblestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db, losses, r
}

// crawlOf reads the crawl db into a map.
func crawlOf(t *testing.T, db *pebblestore.DB) map[string]string {
	t.Helper()
	all := map[string]string{}
	for d, err := range db.Crawl().Scan(t.Context(), crawldb.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		all[d.URL] = fmt.Sprintf("%+v", d)
	}
	return all
}

func openSound(t *testing.T, dir string) *pebblestore.DB {
	t.Helper()
	db, err := pebblestore.Open(dir, quick())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func TestSalvageOfASoundStore(t *testing.T) {
	for _, killed := range []bool{false, true} {
		dir := sound(t, 400, killed)
		want, err := readAll(t.Context(), openSound(t, dir))
		if err != nil {
			t.Fatal(err)
		}
		db, losses, _ := salvaged(t, dir)
		for _, l := range losses {
			t.Errorf("lost: %v", l)
		}
		got, err := readAll(t.Context(), db)
		if err != nil {
			t.Fatal(err)
		}
		for name := range want {
			if got[name] != want[name] {
				t.Errorf("killed %v: %s is\n%.300s\nand was\n%.300s", killed, name, got[name], want[name])
			}
		}
	}
}

// covered reports whether a loss includes a URL.
func covered(losses []pebblestore.Loss, url string) bool {
	key := crawldb.Key(url)
	for _, l := range losses {
		if l.What == "log" || l.URL == url || l.What == "crawl db" && l.URL == "" && l.After < key && (l.To == "" || key <= l.To) {
			return true
		}
	}
	return false
}

// leaseCovered reports whether a loss includes the lease of a URL.
func leaseCovered(losses []pebblestore.Loss, url string) bool {
	key := crawldb.Key(url)
	for _, l := range losses {
		if l.What == "leases" && l.After < key && (l.To == "" || key <= l.To) {
			return true
		}
	}
	return false
}

// tableOfRecords returns the largest table that begins with some of n records of the crawl db.
func tableOfRecords(t *testing.T, dir string, n int) (name string, text []byte) {
	t.Helper()
	for _, f := range files(t, dir) {
		if !strings.HasSuffix(f, ".sst") {
			continue
		}
		path := filepath.Join(dir, f)
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if len(whole) <= len(text) {
			continue
		}
		spoiled := bytes.Clone(whole)
		spoiled[20] ^= 1
		if err := os.WriteFile(path, spoiled, 0o644); err != nil {
			t.Fatal(err)
		}
		db, _, _ := salvaged(t, dir)
		if len(crawlOf(t, db)) < n {
			name, text = path, whole
		}
		if err := os.WriteFile(path, whole, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if name == "" {
		t.Fatal("no table begins with records")
	}
	return name, text
}

// seemsBlock changes four bytes so that a table has a block with a good checksum from an
// offset to a little before another, where none is.
func seemsBlock(t *testing.T, b []byte, from, to int) []byte {
	t.Helper()
	for b[to] > 16 { // a kind of compression
		to--
	}
	sum := func() uint32 { return crc32.Checksum(b[from:to+1], crc32.MakeTable(crc32.Castagnoli)) }
	want := bits.RotateLeft32(binary.LittleEndian.Uint32(b[to+1:])-0xa282ead8, 15)
	free := b[from+10:][:4]
	// A checksum is a linear function of the bits: solve for 32 of them.
	clear(free)
	base := sum()
	var rows [32]struct{ effect, bits uint32 } // by the highest bit of the effect
	for i := range 32 {
		binary.LittleEndian.PutUint32(free, 1<<i)
		effect, own := sum()^base, uint32(1)<<i
		for effect != 0 {
			row := &rows[bits.Len32(effect)-1]
			if row.effect == 0 {
				row.effect, row.bits = effect, own
				break
			}
			effect, own = effect^row.effect, own^row.bits
		}
	}
	solution := uint32(0)
	for rest := base ^ want; rest != 0; {
		row := rows[bits.Len32(rest)-1]
		if row.effect == 0 {
			t.Fatal("no four bytes have that checksum")
		}
		rest, solution = rest^row.effect, solution^row.bits
	}
	binary.LittleEndian.PutUint32(free, solution)
	if sum() != want {
		t.Fatal("the checksum is another")
	}
	return b
}

// leaseless reads the crawl db into a map, without the leases.
func leaseless(t *testing.T, db *pebblestore.DB) map[string]string {
	t.Helper()
	all := map[string]string{}
	for d, err := range db.Crawl().Scan(t.Context(), crawldb.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		d.LeasedBy, d.LeasedUntil = "", time.Time{}
		all[d.URL] = fmt.Sprintf("%+v", d)
	}
	return all
}

// TestSalvage damages each file of a store in turn. Everything outside the damaged block is
// kept.
func TestSalvage(t *testing.T) {
	testlevel.SkipInRace(t)
	t.Parallel()
	for _, killed := range []bool{false, true} {
		dir := sound(t, 400, killed)
		src := openSound(t, dir)
		want := crawlOf(t, src)
		wantAll, err := readAll(t.Context(), src)
		if err != nil {
			t.Fatal(err)
		}
		src.Close()
		for i, name := range files(t, dir) {
			if filepath.Base(name) == "LOCK" {
				continue
			}
			hows := []string{"flip", "cut", "gone"}
			if !everyBit() { // one kind for each file; a kill leaves the segments, and most tables, as a Close does
				if hows = hows[i%3 : i%3+1]; strings.HasSuffix(name, ".sst") {
					hows = []string{"flip"}
				}
				if killed && (strings.HasPrefix(name, "segments") || strings.HasSuffix(name, ".sst") && i%3 != 0) {
					continue
				}
			}
			for _, how := range hows {
				t.Run(fmt.Sprintf("%v/%s/%s", killed, name, how), func(t *testing.T) {
					full := filepath.Join(dir, name)
					text, err := os.ReadFile(full)
					if err != nil {
						t.Fatal(err)
					}
					defer func() {
						if err := os.WriteFile(full, text, 0o644); err != nil {
							t.Fatal(err)
						}
					}()
					bad := append([]byte(nil), text...)
					switch {
					case how == "gone":
						err = os.Remove(full)
					case len(text) == 0:
						return
					case how == "flip":
						bad[len(bad)/3] ^= 4
						err = os.WriteFile(full, bad, 0o644)
					default:
						err = os.WriteFile(full, bad[:len(bad)*2/3], 0o644)
					}
					if err != nil {
						t.Fatal(err)
					}
					db, losses, r := salvaged(t, dir)
					got := crawlOf(t, db)
					missing := 0
					for url, text := range want {
						switch g, ok := got[url]; {
						case !ok && !covered(losses, url) && !strings.HasSuffix(name, ".sst") && !(killed && strings.HasSuffix(name, ".log")):
							t.Errorf("%s is lost and not reported", url)
						case !ok && !covered(losses, url) && how == "flip":
							t.Errorf("%s is lost and not reported", url)
						case !ok:
							missing++
						case g != text && !strings.HasPrefix(name, "segments/") && !strings.HasSuffix(name, ".log"):
							t.Errorf("%s is\n%s\nand was\n%s", url, g, text)
						}
					}
					gotAll, err := readAll(t.Context(), db)
					if err != nil {
						t.Fatal(err)
					}
					for part, text := range wantAll {
						if strings.Contains(part, "/") && !strings.HasPrefix(name, "segments/"+strings.Split(part, "/")[0]) && gotAll[part] != text {
							t.Errorf("%s is\n%.300s\nand was\n%.300s", part, gotAll[part], text)
						}
					}
					if testing.Verbose() {
						t.Logf("%+v, missing %d", r, missing)
						for _, l := range losses {
							t.Log(l)
						}
					}
				})
			}
		}
	}
}

// One bit costs one block; a bit of the index costs no record.
func TestSalvageLosesOneBlock(t *testing.T) {
	testlevel.SkipInRace(t)
	t.Parallel()
	const n = 4000
	dir := sound(t, n, false)
	// Otherwise it depends on how far compactions have come which tables there are, and whether
	// another has older versions of what is in a block.
	src := openToChange(t, dir)
	if err := errors.Join(src.Compact(t.Context()), src.Close()); err != nil {
		t.Fatal(err)
	}
	src = openSound(t, dir)
	want, bare := crawlOf(t, src), leaseless(t, src)
	src.Close()
	full, text := tableOfRecords(t, dir, len(want))
	for _, tt := range []struct {
		what     string
		spoil    func([]byte) []byte
		from, to int // how many records may be lost
	}{
		{"a bit of the first block", func(b []byte) []byte { b[20] ^= 1; return b }, 1, n / 5},
		{"a bit of another block of records", func(b []byte) []byte { b[len(b)/4] ^= 1; return b }, 0, n / 5},
		{"the foot", func(b []byte) []byte { b[len(b)-1] ^= 1; return b }, 0, 0},
		{"the foot is cut off", func(b []byte) []byte { return b[:len(b)-100] }, 0, 0},
		{"the foot, and a bit of the first block", func(b []byte) []byte { b[20] ^= 1; return b[:len(b)-100] }, 1, n / 5},
		{"the foot, and a first block with a part that has a checksum by chance", func(b []byte) []byte { return seemsBlock(t, b, 10, len(b)*3/4)[:len(b)-100] }, 1, n / 5},
	} {
		if err := os.WriteFile(full, tt.spoil(append([]byte(nil), text...)), 0o644); err != nil {
			t.Fatal(err)
		}
		db, losses, _ := salvaged(t, dir)
		got := crawlOf(t, db)
		if lost := len(want) - len(got); lost < tt.from || lost > tt.to {
			t.Errorf("%s: %d records are lost: %v", tt.what, lost, losses)
		}
		// If a bit is in a block of leases, these may be lost, but no record is.
		for url, text := range got {
			if want[url] != text && (bare[url] != text || !leaseCovered(losses, url)) {
				t.Errorf("%s: %s is %s", tt.what, url, text)
			}
		}
	}
}

func TestSalvageIsBegunAnew(t *testing.T) {
	dir := sound(t, 100, false)
	to := filepath.Join(t.TempDir(), "new")
	for n := range 5 {
		ctx, cancel := context.WithCancel(t.Context())
		left := n * 40
		_, err := pebblestore.Salvage(untilStep{ctx, &left}, dir, to, pebblestore.SalvageOptions{})
		cancel()
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("cut short after %d steps: %v", n*40, err)
		}
		if _, err := os.Stat(to); err == nil {
			t.Fatal("half a store has its name")
		}
	}
	if _, err := pebblestore.Salvage(t.Context(), dir, to, pebblestore.SalvageOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := pebblestore.Salvage(t.Context(), dir, to, pebblestore.SalvageOptions{}); err == nil {
		t.Error("a store that is there was written over")
	}
	if _, err := pebblestore.Salvage(t.Context(), dir, filepath.Join(dir, "new"), pebblestore.SalvageOptions{}); err == nil {
		t.Error("the source was written into")
	}
}

// A second salvage to the same place fails at once, and disturbs the first no more than it
// removes what that has made.
func TestTwoSalvagesToOnePlace(t *testing.T) {
	dir := sound(t, 100, false)
	if err := os.Remove(filepath.Join(dir, "segments", soundDone, segment.ContentPart)); err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "new")
	reported := 0
	_, err := pebblestore.Salvage(t.Context(), dir, to, pebblestore.SalvageOptions{Lost: func(pebblestore.Loss) {
		reported++
		_, err := pebblestore.Salvage(t.Context(), dir, to, pebblestore.SalvageOptions{})
		if err == nil || !strings.Contains(err.Error(), to+".salvage") || errors.Is(err, pebblestore.ErrLocked) {
			t.Errorf("the second: %v", err)
		}
	}})
	if err != nil || reported == 0 {
		t.Fatalf("the first: %v, %d losses", err, reported)
	}
	sameAs(t, to, nil)
	if left, err := filepath.Glob(to + ".*"); err != nil || len(left) > 0 {
		t.Errorf("beside it is %v, %v", left, err)
	}
}

// Marks of a segment are kept or dropped with it, and count its blocks as it has them.
func TestSalvageOfMarks(t *testing.T) {
	dir := sound(t, 100, false)
	db := openToChange(t, dir)
	const lost = "20260105070000-000"
	marks := map[string]string{"own": "kept"}
	want := map[string]string{"own": "kept"}
	for name, there := range map[string]bool{soundDone: true, lost: false} {
		for mark, text := range map[string]string{
			"rank/" + name: "done", segment.RoundMark(name): "pages 2", segment.RoundMark(name) + "/before": "1", segment.RoundMark(name) + "/before/0": "notes",
		} {
			if marks[mark] = text; there {
				want[mark] = text
			} else {
				want[mark] = ""
			}
		}
	}
	want[segment.RoundMark(soundDone)] = "pages 1"
	want["update/"+soundDone] = "done"
	marks["update/"+soundDone] = "" // as if lost
	if err := errors.Join(db.Crawl().Update(t.Context(), crawldb.Batch{Marks: func() map[string]string { return marks }}), db.Close()); err != nil {
		t.Fatal(err)
	}
	// The first block of the contents, and so of all parts.
	name := filepath.Join(dir, "segments", soundDone, segment.ContentPart)
	text, err := os.ReadFile(name)
	if err == nil {
		text[30] ^= 1
		err = os.WriteFile(name, text, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	to, _, _ := salvaged(t, dir)
	for mark, text := range want {
		if got, err := to.Crawl().Mark(t.Context(), mark); err != nil || got != text {
			t.Errorf("mark %s is %q, %v, not %q", mark, got, err, text)
		}
	}
}

// untilStep is a context that ends when it was asked a number of times.
type untilStep struct {
	context.Context
	left *int
}

func (c untilStep) Err() error {
	if *c.left--; *c.left < 0 {
		return context.Canceled
	}
	return c.Context.Err()
}
