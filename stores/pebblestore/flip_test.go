package pebblestore_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"testing"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/crawldb/verify"
	"github.com/recrawl/recrawl/internal/testlevel"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/stores/dirstore"
	"github.com/recrawl/recrawl/stores/pebblestore"
)

// A billion flips every bit and cuts at every length; another number flips about that many
// evenly spaced bits are flipped:
//
//	go test ./stores/pebblestore -run TestEveryBit -damage all -timeout 3h
var damageBits = flag.Int("damage", testlevel.Pick(40, 6000), "about how many bits of a store TestEveryBit flips; a billion is every bit")

// everyBit reports whether every damage of every file is to be tried, which takes hours.
func everyBit() bool { return *damageBits >= 1e9 }

// readAll reads all that a store holds, table by table; what cannot be read is an
// error in its place.
func readAll(ctx context.Context, db *pebblestore.DB) (tables map[string]string, err error) {
	tables = map[string]string{}
	var errs []error
	var b strings.Builder
	end := func(name string) { tables[name] = b.String(); b.Reset() }
	for d, err := range db.Crawl().Scan(ctx, crawldb.Range{}) {
		fmt.Fprintf(&b, "%+v %q\n", d, d.Meta.Encoded())
		errs = append(errs, err)
	}
	for _, job := range []string{"update/", "round/"} {
		mark, err := db.Crawl().Mark(ctx, job+soundDone)
		fmt.Fprintln(&b, mark)
		errs = append(errs, err)
	}
	end("crawl db")
	for h, err := range db.Hosts().Scan(ctx) {
		fmt.Fprintf(&b, "%+v\n", h)
		errs = append(errs, err)
	}
	end("host db")
	for e, err := range db.Links().Scan(ctx, crawldb.Range{}) {
		fmt.Fprintf(&b, "%+v\n", e)
		errs = append(errs, err)
	}
	end("link db")
	for name, err := range db.Segments().List(ctx) {
		if errs = append(errs, err); err != nil {
			continue
		}
		fmt.Fprintln(&b, name)
		for _, p := range segment.Parts() {
			info, err := db.Segments().Stat(ctx, name, p)
			if errors.Is(err, segment.ErrNotFound) {
				continue
			}
			if errs = append(errs, err); err == nil {
				tables[name+"/"+p], err = readPart(ctx, db.Segments(), name, p)
				tables[name+"/"+p] += fmt.Sprintln(info.Committed)
				errs = append(errs, err)
			}
		}
	}
	end("segments")
	return tables, errors.Join(errs...)
}

func readPart(ctx context.Context, s segment.Store, name, part string) (string, error) {
	switch part {
	case segment.GeneratePart:
		return records[crawldb.Datum](ctx, s, name)
	case segment.FetchPart:
		return records[segment.Visit](ctx, s, name)
	case segment.ContentPart:
		return records[page.Content](ctx, s, name)
	case segment.ParseTextPart:
		return records[segment.Text](ctx, s, name)
	case segment.ParseDataPart:
		return records[segment.Data](ctx, s, name)
	default:
		return records[segment.Parse](ctx, s, name)
	}
}

func records[T segment.Record](ctx context.Context, s segment.Store, name string) (string, error) {
	var b strings.Builder
	for block, err := range segment.Partial[T](ctx, s, name, 0) {
		if err != nil {
			return b.String(), err
		}
		for i := range block {
			fmt.Fprintf(&b, "%+v\n", block[i])
		}
	}
	return b.String(), nil
}

func quick() pebblestore.Options {
	return pebblestore.Options{ReadOnly: true, MemTableSize: 64 << 10, CacheSize: 1 << 20}
}

// A trial is one damaged file.
type trial struct {
	dir, file string // file in dir
	other     string // another that is damaged, if there is one
	what      string
	want      map[string]string
	states    []string // of a store that was killed: what its tables held at each step
	bit       bool     // the damage is one bit
	cut       bool     // the damage is that the end is not there
	from, at  int64    // where the damaged part begins, and where the damage ends
	swapped   bool     // the damage is that it is another file
}

// outcomes counts what came of the trials.
type outcomes struct{ trials, detected, harmless, cut, panics, large int }

func (o *outcomes) String() string {
	return fmt.Sprintf("%d trials: %d detected and named, %d harmless, %d cut off as after a crash, %d panics, %d large allocations", o.trials, o.detected, o.harmless, o.cut, o.panics, o.large)
}

// damaged reports whether an error is one that damage may give.
func damagedError(err error) bool {
	var damage *crawldb.CorruptError
	return errors.As(err, &damage) || errors.Is(err, pebblestore.ErrVersion) || errors.Is(err, pebblestore.ErrNotStore) || errors.Is(err, dirstore.ErrVersion)
}

// run opens and reads a store with one damaged file, and verifies it. Either the damage is
// found and the file named, or the data is not affected.
func (tr trial) run(t *testing.T, o *outcomes) {
	o.trials++
	defer func() {
		if p := recover(); p != nil {
			o.panics++
			t.Errorf("%s: panic: %v", tr.what, p)
		}
	}()
	before := allocated()
	got, err := tr.read(t.Context())
	var found []string
	named, placed := false, tr.places(err)
	r, verr := pebblestore.Verify(t.Context(), tr.dir, verify.Options{Found: func(f verify.Finding) {
		found = append(found, f.Error())
		named = named || tr.names(f.Error())
		placed = placed || tr.names(f.File) && tr.within(f.Offset)
	}})
	if n := allocated() - before; n > 64<<20 {
		o.large++
		t.Errorf("%s: %d bytes were allocated", tr.what, n)
	}
	if err != nil && !damagedError(err) {
		t.Errorf("%s: opened and read: %v", tr.what, err)
	}
	if verr != nil && !damagedError(verr) {
		t.Errorf("%s: verify: %v", tr.what, verr)
	}
	named = named || verr != nil && tr.names(verr.Error())
	switch {
	case err == nil && !tr.same(got) && !tr.prefix(got, &r):
		t.Errorf("%s: SILENT: reads otherwise than what was written: %s\nfound: %q", tr.what, tr.differs(got), found)
	case (err != nil || r.Findings > 0 || verr != nil) && !named:
		t.Errorf("%s: the file is not named: %v; %v; found %q", tr.what, err, verr, found)
	case err != nil && r.Findings == 0 && verr == nil:
		t.Errorf("%s: verify found nothing, and reading did: %v", tr.what, err)
	case tr.bit && err != nil && isTable(tr.file) && !tr.places(err):
		t.Errorf("%s: the error of a read does not name the place: %v", tr.what, err)
	case (err != nil || r.Findings > 0 || verr != nil) && !placed && !tr.hasNoPlaces():
		t.Errorf("%s: the place is not named: %v; %v; found %q", tr.what, err, verr, found)
	case err != nil || r.Findings > 0 || verr != nil:
		o.detected++
	case !tr.same(got):
		o.cut++
	default:
		o.harmless++
	}
}

// names reports whether a text names a file that is damaged.
func (tr trial) names(text string) bool {
	for _, file := range []string{tr.file, tr.other} {
		if file != "" && strings.Contains(text, strings.TrimSuffix(filepath.Base(file), ".open")) {
			return true
		}
	}
	return false
}

// within reports whether an offset is where the damage is, or where what has it begins.
func (tr trial) within(at int64) bool { return tr.from <= at && at <= tr.at }

// places reports whether an error says where the damage is.
func (tr trial) places(err error) bool {
	var damage *crawldb.CorruptError
	return errors.As(err, &damage) && tr.names(damage.File) && tr.within(damage.Offset)
}

func isTable(file string) bool { return filepath.Ext(file) == ".sst" }

// hasNoPlaces reports whether the file is another one, or one of a few lines, which is right
// or wrong as a whole.
func (tr trial) hasNoPlaces() bool {
	name := filepath.Base(tr.file)
	return tr.swapped || name == "FORMAT" || strings.HasPrefix(name, "OPTIONS-")
}

func (tr trial) read(ctx context.Context) (map[string]string, error) {
	db, err := pebblestore.Open(tr.dir, quick())
	if err != nil {
		return nil, err
	}
	got, err := readAll(ctx, db)
	return got, errors.Join(err, db.Close())
}

func (tr trial) same(got map[string]string) bool { return tr.differs(got) == "" }

func (tr trial) differs(got map[string]string) string {
	for name, text := range tr.want {
		if got[name] != text {
			return name
		}
	}
	return ""
}

// prefix reports whether the difference is what a crash may have cut off, and was reported as
// that: a part that is not complete or, if the store was killed, the last steps of the log. A
// single flipped bit of a log never is. If an incomplete part ends with a block, or a log with
// a record, it cannot be seen that there was another.
func (tr trial) prefix(got map[string]string, r *verify.Report) bool {
	whole := strings.HasSuffix(tr.file, ".open") || strings.HasSuffix(tr.file, ".log") && pebblestore.EndsWithRecord(filepath.Join(tr.dir, tr.file))
	if r.Torn == 0 && r.Harmless == 0 && r.Findings == 0 && !(tr.cut && whole) {
		return false
	}
	if tables := tablesOf(got); tables != tablesOf(tr.want) && (tr.bit || !strings.HasSuffix(tr.file, ".log") || !slices.Contains(tr.states, tables)) {
		return false
	}
	for name, want := range tr.want {
		text := got[name]
		switch {
		case text == want:
		case strings.HasPrefix(name, soundBegun) && strings.HasPrefix(want, strings.TrimSuffix(text, "false\n")):
		case slices.Contains([]string{"crawl db", "host db", "link db"}, name):
		default:
			return false
		}
	}
	return true
}

func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// files lists the files of a store, relative to it.
func files(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// TestEveryBit changes one bit of a store at a time, cuts each file, and fills a
// sector of it with zeros.
func TestEveryBit(t *testing.T) {
	testlevel.SkipInRace(t)
	for _, killed := range []bool{false, true} {
		t.Run(fmt.Sprintf("killed %v", killed), func(t *testing.T) {
			dir, states := "", []string(nil)
			if killed {
				dir, states = soundKilled(t, 90)
			} else {
				dir = sound(t, 90, false)
			}
			base := trial{dir: dir, states: states}
			var err error
			if base.want, err = base.read(t.Context()); err != nil {
				t.Fatal(err)
			}
			total := 0
			for _, name := range files(t, dir) {
				info, err := os.Stat(filepath.Join(dir, name))
				if err != nil {
					t.Fatal(err)
				}
				total += int(info.Size())
			}
			stride, cuts := max(total*8 / *damageBits, 1), max(total*4 / *damageBits, 1)
			var sum outcomes
			for _, name := range files(t, dir) {
				var o outcomes
				flipFile(t, base, name, stride, cuts, &o)
				if testing.Verbose() {
					t.Logf("%s: %v", name, &o)
				}
				sum.trials, sum.detected, sum.harmless, sum.cut = sum.trials+o.trials, sum.detected+o.detected, sum.harmless+o.harmless, sum.cut+o.cut
				if t.Failed() && !everyBit() {
					break
				}
				runtime.GC()
			}
			t.Logf("%d bytes in all: %v", total, &sum)
		})
	}
}

// flipFile tries every damage of one file, and puts it back.
func flipFile(t *testing.T, tr trial, name string, stride, cuts int, o *outcomes) {
	full := filepath.Join(tr.dir, name)
	text, err := os.ReadFile(full)
	if err != nil {
		t.Fatal(err)
	}
	put := func(b []byte) {
		if err := os.WriteFile(full, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	defer put(text)
	if filepath.Base(name) == "LOCK" {
		return // names the process that has it, for people
	}
	tr.file = name
	flip := func(bit int) {
		tr.from, tr.at = 0, int64(bit/8)
		if isTable(name) && !strings.HasPrefix(filepath.Base(name), "9") { // one that was being written has no parts
			put(text)
			if tr.from, err = pebblestore.BeginsAt(full, tr.at); err != nil {
				t.Fatal(err)
			}
		}
		bad := slices.Clone(text)
		bad[bit/8] ^= 1 << (bit % 8)
		put(bad)
		tr.what, tr.bit = fmt.Sprintf("%s with bit %d of byte %d of %d changed", name, bit%8, bit/8, len(text)), true
		tr.run(t, o)
	}
	for bit := min(stride/2, len(text)*4); bit < len(text)*8; bit += stride {
		flip(bit)
	}
	if isTable(name) { // what leads to all of it
		flip(len(text)*8 - 100)
	}
	tr.bit, tr.from = false, 0
	for n := min(cuts/2, len(text)/2); n < len(text); n += cuts {
		put(text[:n])
		tr.cut, tr.at = true, int64(n)
		tr.what = fmt.Sprintf("%s cut to %d bytes of %d", name, n, len(text))
		tr.run(t, o)
	}
	tr.cut = false
	for at := 0; at < len(text); at += max(cuts, 512) {
		bad := slices.Clone(text)
		clear(bad[at:min(at+512, len(bad))])
		put(bad)
		tr.at = int64(min(at+512, len(bad)))
		tr.what = fmt.Sprintf("%s with zeros at %d of %d bytes", name, at, len(text))
		tr.run(t, o)
	}
}
