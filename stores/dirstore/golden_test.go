package dirstore

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/segment"
)

var update = flag.Bool("update", false, "make the golden directory of this version, if there is none")

const goldenSegment = "20260105080000-000"

// writeGolden makes a segment with a record of every kind.
func writeGolden(t *testing.T, dir string) {
	t.Helper()
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)
	const url = "http://a.example/"
	golden(t, s, true, crawldb.Datum{URL: url, Status: crawldb.Unfetched, FetchTime: at, Interval: time.Hour, Score: 1, Priority: 2, Meta: crawldb.MetaOf("Content-Type", "text/html", "k", "v")})
	golden(t, s, true, segment.Visit{URL: url, Time: at, Outcome: protocol.Outcome{Code: protocol.Success, Status: 200}, ContentType: "text/html", ETag: `"e"`, Bytes: 5, Elapsed: time.Second, Signature: []byte{1}})
	golden(t, s, true, page.Content{URL: url, Type: "text/html", Body: bytes.Repeat([]byte("body "), 40), Time: at})
	golden(t, s, true, segment.Text{URL: url, Text: "body"})
	golden(t, s, true, segment.Data{URL: url, Parsed: page.Parsed{Title: "t", Outlinks: []page.Outlink{{URL: "http://b.example/", Anchor: "b", NoFollow: true}}, Meta: []page.Property{{Name: "n", Value: "v"}}}})
	golden(t, s, false, segment.Parse{URL: url, Signature: []byte{1, 2}, Links: []segment.Link{{URL: "http://b.example/", Score: 0.5}}, Gave: 1})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func golden[T segment.Record](t *testing.T, s *Store, commit bool, rec T) {
	t.Helper()
	ctx := t.Context()
	w, err := segment.NewWriter[T](ctx, s, goldenSegment, 0)
	if err == nil {
		err = errors.Join(w.Append(ctx, []T{rec}), w.Append(ctx, nil))
	}
	if err == nil && commit {
		err = w.Commit(ctx)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// dump is all that a store holds.
func dump(t *testing.T, dir string) string {
	t.Helper()
	s, err := Open(dir, Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var b bytes.Buffer
	for name, err := range s.List(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range segment.Parts() {
			info, err := s.Stat(t.Context(), name, part)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "%s/%s: %d blocks, committed %v\n", name, part, info.Blocks, info.Committed)
			dumpPart(t, &b, s, name, part)
		}
	}
	return b.String()
}

func dumpPart(t *testing.T, b *bytes.Buffer, s *Store, name, part string) {
	switch part {
	case segment.GeneratePart:
		dumpRecords[crawldb.Datum](t, b, s, name)
	case segment.FetchPart:
		dumpRecords[segment.Visit](t, b, s, name)
	case segment.ContentPart:
		dumpRecords[page.Content](t, b, s, name)
	case segment.ParseTextPart:
		dumpRecords[segment.Text](t, b, s, name)
	case segment.ParseDataPart:
		dumpRecords[segment.Data](t, b, s, name)
	case segment.ParsePart:
		dumpRecords[segment.Parse](t, b, s, name)
	}
}

func dumpRecords[T segment.Record](t *testing.T, b *bytes.Buffer, s *Store, name string) {
	t.Helper()
	for block, err := range segment.Partial[T](context.Background(), s, name, 0) {
		if err != nil {
			t.Fatal(err)
		}
		for i := range block {
			fmt.Fprintf(b, "%+v\n", block[i])
		}
	}
}

// Every version can be read, and what is written now equals the golden directory of this
// version, byte by byte: a change to the format of a file, a block or a record needs a new
// version, and a directory for it made with -update.
func TestGolden(t *testing.T) {
	current := filepath.Join("testdata", fmt.Sprintf("v%d", version))
	if _, err := os.Stat(current); errors.Is(err, fs.ErrNotExist) && *update {
		writeGolden(t, current)
		if err := os.WriteFile(current+".txt", []byte(dump(t, current)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for v := 1; v <= version; v++ {
		dir := filepath.Join("testdata", fmt.Sprintf("v%d", v))
		want, err := os.ReadFile(dir + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		if got := dump(t, dir); got != string(want) {
			t.Errorf("version %d reads as\n%s\nand not as\n%s", v, got, want)
		}
	}
	made := t.TempDir()
	writeGolden(t, made)
	var names []string
	for _, dir := range []string{made, current} {
		err := fs.WalkDir(os.DirFS(dir), ".", func(path string, e fs.DirEntry, err error) error {
			if err == nil && !e.IsDir() && !slices.Contains(names, path) {
				names = append(names, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range names {
		got, err1 := os.ReadFile(filepath.Join(made, name))
		want, err2 := os.ReadFile(filepath.Join(current, name))
		if err1 != nil || err2 != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not written as version %d has it in %s: %v, %v", name, version, current, err1, err2)
		}
	}
}

// A part that an older version began is one of this version once it is written on,
// and holds what it held.
func TestPartOfOlderVersionIsRead(t *testing.T) {
	for v := 1; v < version; v++ {
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", fmt.Sprintf("v%d", v)))); err != nil {
			t.Fatal(err)
		}
		s, err := Open(dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		before, err := read(t, s, goldenSegment, segment.ParsePart)
		if err != nil || len(before) == 0 {
			t.Fatalf("version %d: %d blocks, %v", v, len(before), err)
		}
		w, err := s.Append(t.Context(), goldenSegment, segment.ParsePart, -1)
		if err == nil {
			err = errors.Join(w.Append(t.Context(), []byte("more")), w.Commit(t.Context()))
		}
		if err != nil {
			t.Fatal(err)
		}
		after, err := read(t, s, goldenSegment, segment.ParsePart)
		if err != nil || !equal(after, append(before, []byte("more"))) {
			t.Errorf("version %d: %q, %v", v, after, err)
		}
		file, err := os.ReadFile(filepath.Join(dir, goldenSegment, segment.ParsePart))
		if err != nil || !bytes.Equal(file[:headSize], appendHead(nil, goldenSegment+"/"+segment.ParsePart)) {
			t.Errorf("version %d: the head is %q, %v", v, file[:min(len(file), headSize)], err)
		}
	}
}
