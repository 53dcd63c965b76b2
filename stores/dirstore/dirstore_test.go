package dirstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/recrawl/recrawl/internal/testlevel"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/segment/segmenttest"
)

// harness makes stores below a directory of the test.
func harness(t *testing.T) segmenttest.Harness {
	base := t.TempDir()
	n := 0
	fresh := func() string { n++; return filepath.Join(base, fmt.Sprint(n)) }
	edit := func(s segment.Store, seg, part string, f func([]byte) []byte) error {
		name := filepath.Join(s.(*Store).dir, seg, part)
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		return os.WriteFile(name, f(b), 0o666)
	}
	return segmenttest.Harness{
		Open:   func() (segment.Store, error) { return Open(fresh(), Options{}) },
		Close:  func(s segment.Store) error { return s.(*Store).Close() },
		Reopen: func(s segment.Store) (segment.Store, error) { return Open(s.(*Store).dir, Options{}) },
		Crash: func(s segment.Store) (segment.Store, error) {
			dir := fresh()
			if err := os.CopyFS(dir, os.DirFS(s.(*Store).dir)); err != nil {
				return nil, err
			}
			if err := s.(*Store).Close(); err != nil {
				return nil, err
			}
			return Open(dir, Options{})
		},
		Tear: func(s segment.Store, seg, part string, n int) error {
			return edit(s, seg, part+openSuffix, func(b []byte) []byte { return b[:max(len(b)-n, 0)] })
		},
		Damage: func(s segment.Store, seg, part string, at int) error {
			return edit(s, seg, part, func(b []byte) []byte { b[at%len(b)] ^= 1 << (at % 8); return b })
		},
	}
}

func TestStore(t *testing.T) { segmenttest.Run(t, harness(t)) }

func open(t testing.TB, dir string) *Store {
	t.Helper()
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func put(t testing.TB, s *Store, seg, part string, commit bool, blocks ...[]byte) {
	t.Helper()
	w, err := s.Append(t.Context(), seg, part, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range blocks {
		if err := w.Append(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	if commit {
		if err := w.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, s *Store, seg, part string) ([][]byte, error) {
	t.Helper()
	var all [][]byte
	for b, err := range s.Read(t.Context(), seg, part, 0) {
		if err != nil {
			return all, err
		}
		all = append(all, b)
	}
	return all, nil
}

func equal(a, b [][]byte) bool { return slices.EqualFunc(a, b, bytes.Equal) }

func small() [][]byte {
	return [][]byte{[]byte("first"), {}, []byte("the third block"), bytes.Repeat([]byte{7}, 40)}
}

// bitStep is from one flipped bit to the next: 9 takes one of each byte, in turns.
var bitStep = testlevel.Pick(9, 1)

// Every bit of a committed file counts: if it is flipped, the damage is reported, or nothing
// that is read changes. The same holds for every length except the right one.
func TestEveryFlippedBitAndLengthIsDamage(t *testing.T) {
	s := open(t, t.TempDir())
	want := small()
	put(t, s, "seg", "part", true, want...)
	name := filepath.Join(s.dir, "seg", "part")
	sound, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	try := func(what string, b []byte) {
		t.Helper()
		if err := os.WriteFile(name, b, 0o666); err != nil {
			t.Fatal(err)
		}
		got, err := read(t, s, "seg", "part")
		var corrupt *segment.CorruptError
		if !errors.As(err, &corrupt) {
			t.Fatalf("%s: %d blocks and error %v", what, len(got), err)
		}
		if corrupt.File != name || corrupt.Offset < 0 || corrupt.Offset > int64(len(b)) {
			t.Errorf("%s: %v", what, err)
		}
		if !equal(got, want[:len(got)]) {
			t.Errorf("%s: damage was read as data", what)
		}
		if _, err := s.Stat(t.Context(), "seg", "part"); err != nil && !errors.As(err, &corrupt) {
			t.Errorf("%s: Stat: %v", what, err)
		}
	}
	for bit := 0; bit < 8*len(sound); bit += bitStep {
		b := bytes.Clone(sound)
		b[bit/8] ^= 1 << (bit % 8)
		try(fmt.Sprint("bit ", bit), b)
	}
	for n := range len(sound) {
		try(fmt.Sprintf("cut to %d bytes", n), sound[:n])
	}
	for _, n := range []int{1, frameSize, footSize, 1000} {
		try(fmt.Sprintf("%d zeros added", n), append(bytes.Clone(sound), make([]byte, n)...))
	}
	try("a second foot", append(bytes.Clone(sound), sound[len(sound)-footSize:]...))

	// Two blocks of one size that changed places.
	put(t, s, "seg", "pair", true, []byte("one"), []byte("two"))
	pair, err := os.ReadFile(filepath.Join(s.dir, "seg", "pair"))
	if err != nil {
		t.Fatal(err)
	}
	const size = frameSize + 3
	want = nil
	try("blocks swapped", slices.Concat(pair[:headSize], pair[headSize+size:headSize+2*size], pair[headSize:headSize+size], pair[headSize+2*size:]))
}

// In a part that is not committed, what is bad was never written.
func TestOpenPartEndsAtFirstBadBlock(t *testing.T) {
	s := open(t, t.TempDir())
	want := small()
	put(t, s, "seg", "part", false, want...)
	name := filepath.Join(s.dir, "seg", "part.open")
	sound, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	try := func(what string, b []byte, newer bool) {
		t.Helper()
		if err := os.WriteFile(name, b, 0o666); err != nil {
			t.Fatal(err)
		}
		got, err := read(t, s, "seg", "part")
		if newer {
			// What another version wrote is not ours to drop.
			if !errors.Is(err, ErrVersion) && !errors.Is(err, errPlace) {
				t.Errorf("%s: %v", what, err)
			}
			if _, err := s.Append(t.Context(), "seg", "part", 0); !errors.Is(err, ErrVersion) && !errors.Is(err, errPlace) {
				t.Errorf("%s: Append: %v", what, err)
			}
			return
		}
		if err != nil || len(got) > len(want) || !equal(got, want[:len(got)]) {
			t.Fatalf("%s: %q, %v", what, got, err)
		}
		info, err := s.Stat(t.Context(), "seg", "part")
		if err != nil || info.Blocks != len(got) || info.Committed {
			t.Fatalf("%s: Stat %+v, %v", what, info, err)
		}
		w, err := s.Append(t.Context(), "seg", "part", -1)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		defer w.Close()
		if err := w.Append(t.Context(), []byte("more")); err != nil {
			t.Fatal(err)
		}
		again, err := read(t, s, "seg", "part")
		if err != nil || !equal(again, append(got, []byte("more"))) {
			t.Fatalf("%s: after Append %q, %v", what, again, err)
		}
	}
	for bit := 0; bit < 8*len(sound); bit += bitStep {
		b := bytes.Clone(sound)
		b[bit/8] ^= 1 << (bit % 8)
		try(fmt.Sprint("bit ", bit), b, len(magic) <= bit/8 && bit/8 < headSize)
	}
	for n := range len(sound) {
		try(fmt.Sprintf("cut to %d bytes", n), sound[:n], false)
	}
	// A commit that did not come to its end.
	try("with a foot", appendFoot(bytes.Clone(sound), len(want), 99), false)
	try("with zeros", append(bytes.Clone(sound), make([]byte, 5000)...), false)
	try("all zeros", make([]byte, 5000), false)
}

// Dropped blocks do not come back after a shorter block.
func TestDroppedBlocksDoNotReturn(t *testing.T) {
	s := open(t, t.TempDir())
	put(t, s, "seg", "part", false, []byte("aaaa"), []byte("bbbb"), []byte("cccc"))
	w, err := s.Append(t.Context(), "seg", "part", 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Append(t.Context(), []byte("BBBB")); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if got, err := read(t, s, "seg", "part"); err != nil || !equal(got, [][]byte{[]byte("aaaa"), []byte("BBBB")}) {
		t.Errorf("%q, %v", got, err)
	}
}

// openFiles counts the files this process has open below a directory.
func openFiles(t *testing.T, dir string) int {
	t.Helper()
	if runtime.GOOS != "linux" {
		return 0
	}
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, e := range entries {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.HasPrefix(to, dir) {
			n++
		}
	}
	return n
}

func TestNoFileStaysOpen(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	put(t, s, "seg", "done", true, small()...)
	put(t, s, "seg", "open", false, small()...)
	base := openFiles(t, dir)
	for _, part := range []string{"open", "done"} {
		for range s.Read(t.Context(), "seg", part, 0) {
			break
		}
		for range s.Read(t.Context(), "seg", part, 99) {
		}
		s.Stat(t.Context(), "seg", part)
		s.Append(t.Context(), "seg", part, 99)
		ctx, cancel := context.WithCancel(t.Context())
		for range s.Read(ctx, "seg", part, 0) {
			cancel()
		}
		cancel()
	}
	for range s.List(t.Context()) {
		break
	}
	if err := s.Remove(t.Context(), "seg"); err != nil {
		t.Error(err)
	}
	if n := openFiles(t, dir); n != base {
		t.Errorf("%d files are open, %d were", n, base)
	}
	// Close ends the writers that are left.
	w, err := s.Append(t.Context(), "seg", "part", 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if n := openFiles(t, dir); n != 0 {
		t.Errorf("%d files are open after Close", n)
	}
	for what, err := range map[string]error{"append": w.Append(t.Context(), nil), "sync": w.Sync(t.Context()), "commit": w.Commit(t.Context())} {
		if !errors.Is(err, segment.ErrClosed) {
			t.Errorf("%s after Close: %v", what, err)
		}
	}
	if err := errors.Join(w.Close(), s.Close()); err != nil {
		t.Error(err)
	}
	_, statErr := s.Stat(t.Context(), "seg", "part")
	_, appendErr := s.Append(t.Context(), "seg", "part", 0)
	_, readErr := read(t, s, "seg", "part")
	for what, err := range map[string]error{"stat": statErr, "append": appendErr, "read": readErr, "remove": s.Remove(t.Context(), "seg")} {
		if !errors.Is(err, segment.ErrClosed) {
			t.Errorf("%s after Close: %v", what, err)
		}
	}
}

func TestOpenFinishesRemove(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	put(t, s, "seg", "done", true, small()...)
	put(t, s, "seg", "open", false)
	s.Close()
	if err := os.Rename(filepath.Join(dir, "seg"), filepath.Join(dir, removedPrefix+"seg")); err != nil {
		t.Fatal(err)
	}
	// A file of another program is not deleted.
	foreign := filepath.Join(dir, removedPrefix+"other", "README.txt")
	if err := os.Mkdir(filepath.Dir(foreign), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(foreign, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	for name := range s.List(t.Context()) {
		t.Errorf("%s is listed", name)
	}
	if _, err := os.Stat(filepath.Join(dir, removedPrefix+"seg")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the segment is still there: %v", err)
	}
	if _, err := os.Stat(foreign); err != nil {
		t.Error(err)
	}
	// A name that is taken does no harm.
	if err := os.Mkdir(filepath.Join(dir, removedPrefix+"seg"), 0o777); err != nil {
		t.Fatal(err)
	}
	put(t, s, "seg", "part", true)
	if err := s.Remove(t.Context(), "seg"); err != nil {
		t.Error(err)
	}
}

func TestForeignFilesAreLeftAlone(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	put(t, s, "seg", "part", true, small()...)
	files := []string{"README.txt", "notes", "UPPER/file", ".hidden/part", "empty.d/x.y", "seg/notes.txt"}
	for _, f := range files {
		f = filepath.Join(dir, f)
		if err := os.MkdirAll(filepath.Dir(f), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(f, []byte("mine"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "empty"), 0o777); err != nil {
		t.Fatal(err)
	}
	var names []string
	for name, err := range s.List(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	if !slices.Equal(names, []string{"seg"}) {
		t.Errorf("List yielded %q", names)
	}
	if err := s.Remove(t.Context(), "seg"); err == nil || !strings.Contains(err.Error(), "notes.txt") {
		t.Errorf("Remove: %v", err)
	}
	if got, err := read(t, s, "seg", "part"); err != nil || !equal(got, small()) {
		t.Errorf("after a Remove that failed: %q, %v", got, err)
	}
	s.Close()
	open(t, dir)
	for _, f := range files {
		if _, err := os.Stat(filepath.Join(dir, f)); err != nil {
			t.Error(err)
		}
	}
}

// A name is never followed out of the directory, and only plain files are opened: a
// pipe would wait forever.
func TestOnlyPlainFilesAreOpened(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("symbolic links need a privilege here")
	}
	outside := t.TempDir()
	put(t, open(t, outside), "seg", "part", true, []byte("secret"))
	s := open(t, t.TempDir())
	put(t, s, "seg", "real", true, small()...)
	for name, to := range map[string]string{"seg/link": filepath.Join(outside, "seg/part"), "seg/inside": "real", "linked": filepath.Join(outside, "seg")} {
		if err := os.Symlink(to, filepath.Join(s.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(s.dir, "seg/dir"), 0o777); err != nil {
		t.Fatal(err)
	}
	for _, at := range [][2]string{{"seg", "link"}, {"seg", "inside"}, {"linked", "part"}, {"seg", "dir"}} {
		if got, err := read(t, s, at[0], at[1]); err == nil || got != nil {
			t.Errorf("Read %q: %q, %v", at, got, err)
		}
		if _, err := s.Stat(t.Context(), at[0], at[1]); err == nil {
			t.Errorf("Stat %q: no error", at)
		}
		if w, err := s.Append(t.Context(), at[0], at[1], 0); err == nil {
			t.Errorf("Append %q: no error", at)
			w.Close()
		}
	}
}

func TestOpenMakesTheDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b", "c")
	put(t, open(t, dir), "seg", "part", true)
	if _, err := os.Stat(filepath.Join(dir, "seg", "part")); err != nil {
		t.Error(err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{file, filepath.Join(file, "below")} {
		if _, err := Open(bad, Options{}); err == nil || !strings.Contains(err.Error(), bad) {
			t.Errorf("Open %s: %v", bad, err)
		}
	}
}

// How fast does a segment reach the disk?
func BenchmarkAppend1MiBBlocks(b *testing.B) {
	s := open(b, b.TempDir())
	w, err := s.Append(b.Context(), "seg", "part", 0)
	if err != nil {
		b.Fatal(err)
	}
	defer w.Close()
	block := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	b.SetBytes(int64(len(block)))
	n := 0
	for b.Loop() {
		if n++; n%256 == 0 { // keep the file small
			w.Close()
			if w, err = s.Append(b.Context(), "seg", "part", 0); err != nil {
				b.Fatal(err)
			}
		}
		if err := w.Append(b.Context(), block); err != nil {
			b.Fatal(err)
		}
	}
}

// How fast is a committed part read and verified?
func BenchmarkRead1MiBBlocks(b *testing.B) {
	s := open(b, b.TempDir())
	block := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	put(b, s, "seg", "part", true, slices.Repeat([][]byte{block}, 64)...)
	b.SetBytes(int64(64 * len(block)))
	for b.Loop() {
		if got, err := read(b, s, "seg", "part"); err != nil || len(got) != 64 {
			b.Fatal(len(got), err)
		}
	}
}
