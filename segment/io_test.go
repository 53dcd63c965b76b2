package segment_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/stores/memstore"
)

func texts(block, n int) []segment.Text {
	var out []segment.Text
	for i := range n {
		out = append(out, segment.Text{URL: fmt.Sprintf("http://example.com/%d/%d", block, i), Text: strings.Repeat("text ", i)})
	}
	return out
}

// write appends blocks of the given sizes and leaves the part open.
func write(t testing.TB, s segment.Store, seg string, sizes ...int) *segment.Writer[segment.Text] {
	t.Helper()
	w, err := segment.NewWriter[segment.Text](t.Context(), s, seg, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	for i, n := range sizes {
		if err := w.Append(t.Context(), texts(i, n)); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func TestBlocksStayAligned(t *testing.T) {
	s := new(memstore.Segments)
	sizes := []int{3, 0, 1, 0, 0, 200, 2, 0}
	w := write(t, s, "seg", sizes...)
	if err := w.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	check := func(read func(context.Context, segment.Store, string, int) iter.Seq2[[]segment.Text, error]) {
		t.Helper()
		for from := range len(sizes) + 2 {
			n := from
			for got, err := range read(t.Context(), s, "seg", from) {
				if err != nil {
					t.Fatal(err)
				}
				if want := texts(n, sizes[n]); !slices.Equal(got, want) {
					t.Errorf("from %d: block %d has %d records, not its %d", from, n, len(got), len(want))
				}
				n++
			}
			if n < len(sizes) {
				t.Errorf("from %d: ended before block %d", from, n)
			}
		}
	}
	check(segment.Partial[segment.Text])
	if err := w.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	check(segment.Partial[segment.Text])
	check(segment.Blocks[segment.Text])

	var all, want []segment.Text
	for rec, err := range segment.Records[segment.Text](t.Context(), s, "seg") {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, rec)
	}
	for i, n := range sizes {
		want = append(want, texts(i, n)...)
	}
	if !reflect.DeepEqual(all, want) {
		t.Errorf("Records yielded %d records, not %d", len(all), len(want))
	}
	for range segment.Records[segment.Text](t.Context(), s, "seg") {
		break
	}
}

func TestOnlyCommittedPartsAreRead(t *testing.T) {
	s := new(memstore.Segments)
	write(t, s, "seg", 1)
	for what, seg := range map[string]string{"open": "seg", "missing": "other"} {
		steps := 0
		for got, err := range segment.Blocks[segment.Text](t.Context(), s, seg, 0) {
			if steps++; got != nil || !errors.Is(err, segment.ErrNotFound) || !strings.Contains(err.Error(), seg+"/parse_text") {
				t.Errorf("Blocks of a part that is %s: %v, %v", what, got, err)
			}
		}
		for got, err := range segment.Records[segment.Text](t.Context(), s, seg) {
			if steps++; got != (segment.Text{}) || !errors.Is(err, segment.ErrNotFound) {
				t.Errorf("Records of a part that is %s: %v, %v", what, got, err)
			}
		}
		if steps != 2 {
			t.Errorf("%d steps over a part that is %s", steps, what)
		}
		if ok, err := segment.Has[segment.Text](t.Context(), s, seg); ok || err != nil {
			t.Errorf("Has of a part that is %s: %v, %v", what, ok, err)
		}
	}
	for _, err := range segment.Partial[segment.Text](t.Context(), s, "other", 0) {
		if !errors.Is(err, segment.ErrNotFound) {
			t.Errorf("Partial of a missing part: %v", err)
		}
	}
	if _, err := segment.Has[segment.Text](t.Context(), s, "BAD"); !errors.Is(err, segment.ErrName) {
		t.Errorf("Has of a bad name: %v", err)
	}
}

func TestDamageNamesPartAndBlock(t *testing.T) {
	s := new(memstore.Segments)
	if err := write(t, s, "seg", 1, 1).Close(); err != nil {
		t.Fatal(err)
	}
	w, err := s.Append(t.Context(), "seg", segment.ParseTextPart, -1)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Append(t.Context(), []byte("no block")), w.Commit(t.Context())); err != nil {
		t.Fatal(err)
	}
	for from := range 3 {
		n := from
		var last error
		for _, err := range segment.Blocks[segment.Text](t.Context(), s, "seg", from) {
			if last = err; err == nil {
				n++
			}
		}
		var corrupt *segment.CorruptError
		if n != 2 || !errors.As(last, &corrupt) || corrupt.File != "seg/parse_text" || corrupt.Offset != 2 {
			t.Errorf("from %d: after block %d: %v", from, n, last)
		}
	}
	var last error
	for _, err := range segment.Blocks[segment.Text](t.Context(), s, "seg", -5) {
		last = err
	}
	var corrupt *segment.CorruptError
	if !errors.As(last, &corrupt) || corrupt.Offset != 2 {
		t.Errorf("from the beginning: %v", last)
	}
}

func TestWriterKeepsAndRefuses(t *testing.T) {
	s := new(memstore.Segments)
	if err := write(t, s, "seg", 1, 1, 1).Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := segment.NewWriter[segment.Text](t.Context(), s, "seg", 4); !errors.Is(err, segment.ErrNotFound) || !strings.Contains(err.Error(), "seg/parse_text") {
		t.Errorf("keep 4 of 3: %v", err)
	}
	w, err := segment.NewWriter[segment.Text](t.Context(), s, "seg", 2)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := segment.NewWriter[segment.Text](t.Context(), s, "seg", 0); !errors.Is(err, segment.ErrBusy) {
		t.Errorf("a second writer: %v", err)
	}
	if err := w.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{"Append": w.Append(t.Context(), nil), "Sync": w.Sync(t.Context()), "Commit": w.Commit(t.Context())} {
		if !errors.Is(err, segment.ErrClosed) || !strings.Contains(err.Error(), "seg/parse_text") {
			t.Errorf("%s after Commit: %v", what, err)
		}
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if info, err := s.Stat(t.Context(), "seg", segment.ParseTextPart); err != nil || info.Blocks != 2 || !info.Committed {
		t.Errorf("%+v, %v", info, err)
	}
	// A record that cannot be kept is refused whole and harms nothing.
	d, err := segment.NewWriter[crawldb.Datum](t.Context(), s, "seg", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := d.Append(t.Context(), []crawldb.Datum{{URL: "http://example.com/", Retries: -1}}); err == nil {
		t.Error("negative retries were kept")
	}
	if err := errors.Join(d.Append(t.Context(), []crawldb.Datum{{URL: "http://example.com/"}}), d.Commit(t.Context())); err != nil {
		t.Error(err)
	}
}

func TestPartOf(t *testing.T) {
	got := []string{
		segment.PartOf[crawldb.Datum](), segment.PartOf[segment.Visit](), segment.PartOf[page.Content](),
		segment.PartOf[segment.Text](), segment.PartOf[segment.Data](), segment.PartOf[segment.Parse](),
	}
	if !slices.Equal(got, segment.Parts()) {
		t.Errorf("%q, want %q", got, segment.Parts())
	}
	for _, name := range got {
		if err := segment.ValidName(name); err != nil {
			t.Error(err)
		}
	}
}

func TestNewName(t *testing.T) {
	now := time.Date(2026, 1, 2, 4, 4, 5, 999, time.FixedZone("", 3600))
	for _, tt := range []struct {
		used []string
		want string
	}{
		{nil, "20260102030405-000"},
		{[]string{"20260102030404-007", "20260102030405", "20260102030405x-005", "other"}, "20260102030405-000"},
		// Of a clock that was ahead: by seconds, by a year, and to the end of all years.
		{[]string{"20260102030404-007", "20260102030405-003", "20260102030406-009"}, "20260102030407-000"},
		{[]string{"20270101000000-000", "20271231235959-999000", "20271231235959-mine"}, "20280101000000-000"},
		{[]string{"99991231235959-000", "20279999999999-000", "other-000"}, "20260102030405-000"},
		{[]string{"20260102030405-000"}, "20260102030405-001"},
		{[]string{"20260102030405-000", "20260102030405-041"}, "20260102030405-042"},
		{[]string{"20260102030405-998"}, "20260102030405-999"},
		{[]string{"20260102030405-999"}, "20260102030405-999000"},
		{[]string{"20260102030405-999", "20260102030405-999000"}, "20260102030405-999001"},
		{[]string{"20260102030405-1"}, "20260102030405-1000"},
		{[]string{"20260102030405-mine", "20260102030405-003"}, "20260102030405-mine000"},
		{[]string{"20260102030405-"}, "20260102030405-000"},
	} {
		s := new(memstore.Segments)
		for _, name := range tt.used {
			write(t, s, name)
		}
		got, err := segment.NewName(t.Context(), s, now)
		if err != nil || got != tt.want {
			t.Errorf("with %q: %q, %v; want %q", tt.used, got, err, tt.want)
		}
		for _, name := range tt.used {
			if strings.HasPrefix(name, "20260102030405-") && name >= got {
				t.Errorf("%q is not larger than %q", got, name)
			}
		}
	}
	s := new(memstore.Segments)
	write(t, s, "20260102030405-"+strings.Repeat("z", 49))
	if name, err := segment.NewName(t.Context(), s, now); !errors.Is(err, segment.ErrName) {
		t.Errorf("a name that would be too long: %q, %v", name, err)
	}
	s.Close()
	if name, err := segment.NewName(t.Context(), s, now); !errors.Is(err, segment.ErrClosed) || name != "" {
		t.Errorf("closed: %q, %v", name, err)
	}
}

// With a clock that stands still names go on ascending.
func TestNewNameAscends(t *testing.T) {
	s := new(memstore.Segments)
	last := ""
	for range 1100 {
		name, err := segment.NewName(t.Context(), s, time.Unix(0, 0))
		if err != nil || name <= last {
			t.Fatalf("%q follows %q: %v", name, last, err)
		}
		if last != "" {
			if err := s.Remove(t.Context(), last); err != nil {
				t.Fatal(err)
			}
		}
		write(t, s, name).Close()
		last = name
	}
}

func TestValidName(t *testing.T) {
	for _, name := range []string{"a", "0", "_", "a-", "a_b-c9", strings.Repeat("x", 64)} {
		if err := segment.ValidName(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"", "-", "-a", "A", "a.b", ".", "a/b", "a\\b", "é", "a b", "a\x00", strings.Repeat("x", 65)} {
		if err := segment.ValidName(name); !errors.Is(err, segment.ErrName) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestCorruptError(t *testing.T) {
	cause := errors.New("wrong hash")
	err := error(&segment.CorruptError{File: "dir/seg/part", Offset: 42, Err: cause})
	if want := "dir/seg/part is damaged at 42: wrong hash"; err.Error() != want || !errors.Is(err, cause) {
		t.Errorf("%v", err)
	}
}

// How fast are pages packed and unpacked?
func BenchmarkWriteAndRead1000Pages(b *testing.B) {
	var pages []page.Content
	size := 0
	for i := range 1000 {
		body := []byte(strings.Repeat(fmt.Sprintf("<p>paragraph %d of a page</p>\n", i), 300))
		pages = append(pages, page.Content{URL: fmt.Sprint("http://example.com/", i), Body: body})
		size += len(body)
	}
	b.SetBytes(int64(size))
	for b.Loop() {
		s := new(memstore.Segments)
		w, err := segment.NewWriter[page.Content](b.Context(), s, "seg", 0)
		if err != nil {
			b.Fatal(err)
		}
		for chunk := range slices.Chunk(pages, 100) {
			if err := w.Append(b.Context(), chunk); err != nil {
				b.Fatal(err)
			}
		}
		if err := w.Commit(b.Context()); err != nil {
			b.Fatal(err)
		}
		for _, err := range segment.Records[page.Content](b.Context(), s, "seg") {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}
