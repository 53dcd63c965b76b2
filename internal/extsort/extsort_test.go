package extsort

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
)

func clone(p Pair) Pair { return Pair{bytes.Clone(p.Key), bytes.Clone(p.Value)} }

// records are random, with many equal keys, some equal pairs, and empty parts.
func records(seed uint64, n int) []Pair {
	r := rand.New(rand.NewPCG(seed, 1))
	out := make([]Pair, n)
	for i := range out {
		out[i].Key = fmt.Appendf(nil, "com,example,%d)http:/", r.IntN(1+n/4))
		out[i].Value = make([]byte, r.IntN(40))
		for j := range out[i].Value {
			out[i].Value[j] = byte(r.IntN(3) * 127)
		}
		switch r.IntN(50) {
		case 0:
			out[i].Key = nil
		case 1:
			out[i] = out[r.IntN(i+1)]
		case 2:
			out[i].Value = bytes.Repeat([]byte("long "), r.IntN(400))
		}
	}
	return out
}

func collect(t *testing.T, s *Sorter) []Pair {
	t.Helper()
	var got []Pair
	for p, err := range s.Sorted(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, clone(p))
	}
	return got
}

func fill(t *testing.T, s *Sorter, in []Pair) {
	t.Helper()
	for _, p := range in {
		if err := s.Add(p.Key, p.Value); err != nil {
			t.Fatal(err)
		}
	}
}

func compare(a, b Pair) int {
	if c := bytes.Compare(a.Key, b.Key); c != 0 {
		return c
	}
	return bytes.Compare(a.Value, b.Value)
}

func equal(a, b Pair) bool { return compare(a, b) == 0 }

func empty(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestSortsAsInMemory(t *testing.T) {
	for _, n := range []int{0, 1, 2, 31, 1000, 20000} {
		for _, memory := range []int{1, 300, 4 << 10, 100 << 10, 0} {
			t.Run(fmt.Sprintf("%d records in %d bytes", n, memory), func(t *testing.T) {
				if n == 20000 && memory < 4<<10 {
					n = 3000 // many files
				}
				sorts(t, memory, records(uint64(n), n))
			})
		}
	}
}

// sorts checks what a sorter gives back, and returns how many of its files were open at
// a time, and how much was written for each byte of the records.
func sorts(t *testing.T, memory int, in []Pair) (open int, written float64) {
	t.Helper()
	dir := t.TempDir()
	s := New(Options{MemoryBytes: memory, Dir: dir})
	fill(t, s, in)
	want := slices.Clone(in)
	slices.SortStableFunc(want, compare)
	size, wrote, n := 1, map[*buckets]int64{}, 0
	for p, err := range s.Sorted(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if n == len(want) || !equal(p, want[n]) {
			t.Fatalf("record %d is %.50q, want %.50q", n, p, want[min(n, len(want)-1)])
		}
		n++
		size += len(p.Key) + len(p.Value)
		open = max(open, len(s.spilt))
		for _, b := range s.spilt {
			wrote[b] = b.size
		}
	}
	if n != len(want) {
		t.Fatalf("%d records came back of %d", n, len(want))
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	empty(t, dir)
	sum := int64(0)
	for _, n := range wrote {
		sum += n
	}
	return open, float64(sum) / float64(size)
}

// In any order of the records, and however many are equal,
// all are sorted with few files open at a time, and are written three times at most.
func TestSortsRecordsInAnyOrder(t *testing.T) {
	const n = 40_000
	number := func(i int) []byte { return fmt.Appendf(nil, "com,example,www)https:/articles/%07d", i) }
	for name, record := range map[string]func(i int) Pair{
		"ascending":                  func(i int) Pair { return Pair{number(i), []byte("value")} },
		"descending":                 func(i int) Pair { return Pair{number(n - i), []byte("value")} },
		"one after many that are":    func(i int) Pair { return Pair{number(max(0, i-n/2)), []byte("value")} },
		"all equal":                  func(i int) Pair { return Pair{[]byte("key"), []byte("value")} },
		"two kinds":                  func(i int) Pair { return Pair{[]byte("key"), []byte{byte(i / 7 % 2)}} },
		"one key, ascending values":  func(i int) Pair { return Pair{[]byte("key"), number(i)} },
		"one key, descending values": func(i int) Pair { return Pair{[]byte("key"), number(n - i)} },
		"each the next's beginning":  func(i int) Pair { return Pair{bytes.Repeat([]byte{0}, i%300), nil} },
	} {
		t.Run(name, func(t *testing.T) {
			in := make([]Pair, n)
			for i := range in {
				in[i] = record(i)
			}
			open, written := sorts(t, 100<<10, in)
			if open > 4 || written > 3 {
				t.Errorf("%d files at a time, %.1f bytes written for a byte", open, written)
			}
		})
	}
}

// Records that are large compared with the memory do not fill it many times over.
func TestLargeRecords(t *testing.T) {
	const memory = 1 << 20
	in := make([]Pair, 400)
	r := rand.New(rand.NewPCG(3, 3))
	for i := range in {
		in[i] = Pair{fmt.Appendf(nil, "%03d", i), bytes.Repeat([]byte{byte(i)}, r.IntN(memory/8))}
	}
	if open, written := sorts(t, memory, in); open > 8 || written > 4 {
		t.Errorf("%d files at a time, %.1f bytes written for a byte", open, written)
	}
	s := New(Options{MemoryBytes: memory, Dir: t.TempDir()})
	defer s.Close()
	for _, p := range in {
		fill(t, s, []Pair{p})
		if len(s.spilt) == 0 {
			continue
		}
		sum := 0
		for _, k := range s.spilt[0].list {
			sum += cap(k.plain) + cap(k.key)
		}
		for _, x := range s.spilt[0].splitters {
			sum += len(x.Key) + len(x.Value)
		}
		if sum > memory/2 {
			t.Fatalf("%d bytes beside the records in memory", sum)
		}
	}
}

func TestAddCopiesRecords(t *testing.T) {
	s := New(Options{})
	defer s.Close()
	k, v := []byte("key"), []byte("value")
	fill(t, s, []Pair{{k, v}})
	k[0], v[0] = 'x', 'x'
	if got := collect(t, s); string(got[0].Key) != "key" || string(got[0].Value) != "value" {
		t.Errorf("got %q", got)
	}
}

func TestMakesNoFileWhileItFits(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "later")
	s := New(Options{MemoryBytes: 1000, Dir: dir})
	defer s.Close()
	fill(t, s, records(1, 10)[:3])
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Error("the directory is there before it is needed")
	}
	fill(t, s, records(2, 200))
	if _, err := os.Stat(dir); err != nil {
		t.Error(err)
	}
}

func TestLeavesNothingBehind(t *testing.T) {
	dir := t.TempDir()
	t.Run("when the loop breaks", func(t *testing.T) {
		s := New(Options{MemoryBytes: 1000, Dir: dir})
		fill(t, s, records(3, 2000))
		for range s.Sorted(t.Context()) {
			break
		}
		s.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		empty(t, dir)
	})
	t.Run("when nothing is read", func(t *testing.T) {
		s := New(Options{MemoryBytes: 1000, Dir: dir})
		fill(t, s, records(3, 2000))
		s.Close()
		empty(t, dir)
	})
	t.Run("when the context ends", func(t *testing.T) {
		s := New(Options{MemoryBytes: 1000, Dir: dir})
		fill(t, s, records(3, 2000))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		n := 0
		var last error
		for _, err := range s.Sorted(ctx) {
			if n++; n == 10 {
				cancel()
			}
			last = err
		}
		if !errors.Is(last, context.Canceled) || n > 500 {
			t.Errorf("after %d records: %v", n, last)
		}
		s.Close()
		empty(t, dir)
	})
	t.Run("when it is closed in the loop", func(t *testing.T) {
		for _, memory := range []int{1000, 1 << 20} {
			s := New(Options{MemoryBytes: memory, Dir: dir})
			fill(t, s, records(3, 2000))
			var last error
			for _, err := range s.Sorted(t.Context()) {
				last = err
				s.Close()
			}
			if !errors.Is(last, ErrClosed) {
				t.Errorf("memory %d: %v", memory, last)
			}
			empty(t, dir)
		}
	})
}

func TestSortedCanBeReadOnce(t *testing.T) {
	s := New(Options{})
	fill(t, s, records(1, 3))
	collect(t, s)
	for _, err := range s.Sorted(t.Context()) {
		if !errors.Is(err, ErrUsed) {
			t.Errorf("second loop: %v", err)
		}
	}
	if err := s.Add(nil, nil); !errors.Is(err, ErrUsed) {
		t.Errorf("add behind the loop: %v", err)
	}
	s.Close()
	if err := s.Add(nil, nil); !errors.Is(err, ErrClosed) {
		t.Errorf("add behind close: %v", err)
	}
	for _, err := range s.Sorted(t.Context()) {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("loop behind close: %v", err)
		}
	}
}

// If a temporary file is damaged, the records that went in come back, or an
// error.
func TestDamageIsAnError(t *testing.T) {
	in := records(5, 300)
	want := slices.Clone(in)
	slices.SortFunc(want, compare)
	damage := func(t *testing.T, change func([]byte) []byte) {
		t.Helper()
		s := New(Options{MemoryBytes: 6000, Dir: t.TempDir()})
		defer s.Close()
		fill(t, s, in)
		f := s.spilt[0].file
		info, err := f.Stat()
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, info.Size())
		if _, err := f.ReadAt(b, 0); err != nil {
			t.Fatal(err)
		}
		b = change(b)
		if _, err := f.WriteAt(b, 0); err != nil {
			t.Fatal(err)
		}
		if err := f.Truncate(int64(len(b))); err != nil {
			t.Fatal(err)
		}
		var got []Pair
		for p, err := range s.Sorted(t.Context()) {
			if err != nil {
				if !errors.Is(err, ErrCorrupt) {
					t.Errorf("the error is not ErrCorrupt: %v", err)
				}
				return
			}
			got = append(got, clone(p))
		}
		if !slices.EqualFunc(got, want, equal) {
			t.Error("damage was read as data")
		}
		t.Error("damage was not seen")
	}
	size := 0
	func() {
		s := New(Options{MemoryBytes: 6000, Dir: t.TempDir()})
		defer s.Close()
		fill(t, s, in)
		info, err := s.spilt[0].file.Stat()
		if err != nil {
			t.Fatal(err)
		}
		size = int(info.Size())
	}()
	for i := 0; i < size; i += 1 + size/100 {
		damage(t, func(b []byte) []byte { return b[:i] })
		damage(t, func(b []byte) []byte { b[i] ^= 1 << (i % 8); return b })
	}
}

func TestFailureToWriteIsFinal(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := New(Options{MemoryBytes: 100, Dir: filepath.Join(file, "dir")})
	defer s.Close()
	var first error
	for _, p := range records(1, 100) {
		if first = s.Add(p.Key, p.Value); first != nil {
			break
		}
	}
	if first == nil || s.Add(nil, nil) != first {
		t.Errorf("first %v, then %v", first, s.Add(nil, nil))
	}
	for _, err := range s.Sorted(t.Context()) {
		if err != first {
			t.Errorf("sorted: %v", err)
		}
	}
}

func TestOpenFilesGrowWithTheLogarithm(t *testing.T) {
	s := New(Options{MemoryBytes: 2000, Dir: t.TempDir()})
	defer s.Close()
	in := records(9, 20_000)
	slices.SortFunc(in, compare) // the worst order
	fill(t, s, in)
	open, most := 0, 0
	before, countable := openFiles()
	for _, err := range s.Sorted(t.Context()) { // a file for each few records
		if err != nil {
			t.Fatal(err)
		}
		now, _ := openFiles()
		open, most = max(open, len(s.spilt)), max(most, now-before+1)
	}
	if open > 40 || countable && most > open {
		t.Errorf("%d files, %d open", open, most)
	}
	if after, _ := openFiles(); countable && after != before-1 {
		t.Errorf("%d files are left open", after-before+1)
	}
}

// openFiles counts what the process has open, where the system tells.
func openFiles() (int, bool) {
	all, err := os.ReadDir("/proc/self/fd")
	return len(all), err == nil
}

// While records are sorted nothing can be seen of it: what a process that is killed
// leaves is nothing. Elsewhere Close removes the files.
func TestNamesOfTemporaryFiles(t *testing.T) {
	in := records(6, 2000)
	want := slices.Clone(in)
	slices.SortStableFunc(want, compare)
	for name, row := range map[string]struct {
		temp func(string) (temp, error)
		seen bool
	}{
		"as the system has it":        {newTemp, runtime.GOOS == "windows"},
		"with a name that goes":       {func(dir string) (temp, error) { return named(dir, os.Remove) }, runtime.GOOS == "windows"},
		"with a name as long as open": {func(dir string) (temp, error) { return named(dir, func(string) error { return os.ErrPermission }) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := New(Options{MemoryBytes: 1000, Dir: dir})
			s.temp = row.temp
			fill(t, s, in)
			if left, err := os.ReadDir(dir); err != nil || row.seen != (len(left) > 0) || len(left) > len(s.spilt) {
				t.Errorf("%d files of %d can be seen, %v", len(left), len(s.spilt), err)
			}
			if got := collect(t, s); !slices.EqualFunc(got, want, equal) {
				t.Errorf("%d records came back, not as sorted in memory", len(got))
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			empty(t, dir)
		})
	}
}

// How long does a million links take to sort in a tenth of their size?
func BenchmarkSortMillionLinksInTenthOfMemory(b *testing.B) {
	const n = 1 << 20
	r := rand.New(rand.NewPCG(1, 1))
	keys := make([][]byte, n)
	size := 0
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "com,example%d,www)https:/articles/%d/index.html", r.IntN(5000), r.IntN(n))
		size += len(keys[i]) + 20
	}
	value := []byte("twenty bytes of text")
	b.SetBytes(int64(size))
	for b.Loop() {
		s := New(Options{MemoryBytes: size / 10, Dir: b.TempDir()})
		for _, k := range keys {
			if err := s.Add(k, value); err != nil {
				b.Fatal(err)
			}
		}
		got := 0
		for _, err := range s.Sorted(b.Context()) {
			if err != nil {
				b.Fatal(err)
			}
			got++
		}
		if got != n {
			b.Fatal(got)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
