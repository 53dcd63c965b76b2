package pebblestore_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/recrawl/recrawl/internal/testlevel"
)

// TestSwappedFilesAreFound puts each file of a store in the place of another, and exchanges the
// two: a file that is whole in a place that is not its own is damage.
func TestSwappedFilesAreFound(t *testing.T) {
	testlevel.SkipInRace(t)
	t.Parallel()
	for _, killed := range []bool{false, true} {
		dir := sound(t, 90, killed)
		base := trial{dir: dir}
		var err error
		if base.want, err = base.read(t.Context()); err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, name := range files(t, dir) {
			if !unread(name) {
				all = append(all, name)
			}
		}
		var o outcomes
		for i, a := range all {
			for j, b := range all {
				// Of the short form are neighbours, and files of one kind.
				near := j == (i+1)%len(all) || filepath.Base(a) == filepath.Base(b) && i < j || filepath.Ext(a) == filepath.Ext(b) && filepath.Ext(a) != "" && j == i+1
				if i == j || !everyBit() && !near {
					continue
				}
				for _, both := range []bool{false, true} {
					if both && j < i {
						continue
					}
					swap(t, base, a, b, both, &o)
				}
			}
		}
		t.Logf("killed %v: %v", killed, &o)
	}
}

func swap(t *testing.T, tr trial, a, b string, both bool, o *outcomes) {
	paths := [2]string{filepath.Join(tr.dir, a), filepath.Join(tr.dir, b)}
	var texts [2][]byte
	for i, p := range paths {
		var err error
		if texts[i], err = os.ReadFile(p); err != nil {
			t.Fatal(err)
		}
	}
	put := func(i int, text []byte) {
		if err := os.WriteFile(paths[i], text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	defer put(0, texts[0])
	defer put(1, texts[1])
	put(1, texts[0])
	tr.swapped, tr.file, tr.what = true, b, fmt.Sprintf("%s in the place of %s", a, b)
	if both {
		put(0, texts[1])
		tr.other, tr.what = a, fmt.Sprintf("%s and %s exchanged", a, b)
	}
	tr.run(t, o)
}
