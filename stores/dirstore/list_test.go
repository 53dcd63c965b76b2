package dirstore

import (
	"fmt"
	"io/fs"
	"slices"
	"testing"
)

// countingFS counts how often directories are read.
type countingFS struct {
	FS
	reads int
}

func (c *countingFS) ReadDir(name string) ([]fs.DirEntry, error) {
	c.reads++
	return c.FS.ReadDir(name)
}

func (c *countingFS) names(t *testing.T, s *Store) (names []string) {
	t.Helper()
	c.reads = 0
	for name, err := range s.List(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	return names
}

// A crawl lists its segments several times a round, and may keep thousands.
func TestListReadsTheDirectoryOfASegmentOnce(t *testing.T) {
	dir := t.TempDir()
	files, err := openDir(dir, false)
	if err != nil {
		t.Fatal(err)
	}
	count := &countingFS{FS: files}
	s, err := Open(dir, Options{FS: count})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var want []string
	for i := range 10 {
		want = append(want, fmt.Sprintf("seg%d", i))
		put(t, s, want[i], "part", i%2 == 0, small()...)
	}
	for range 2 {
		if got := count.names(t, s); !slices.Equal(got, want) {
			t.Fatalf("List yielded %q", got)
		}
	}
	if count.reads != 1 {
		t.Errorf("the second List read %d directories", count.reads)
	}
	if err := s.Remove(t.Context(), "seg3"); err != nil {
		t.Fatal(err)
	}
	if err := files.Mkdir("seg3"); err != nil { // as an Append that fails leaves it
		t.Fatal(err)
	}
	want = slices.Delete(want, 3, 4)
	if got := count.names(t, s); !slices.Equal(got, want) {
		t.Errorf("after Remove, List yielded %q", got)
	}
}
