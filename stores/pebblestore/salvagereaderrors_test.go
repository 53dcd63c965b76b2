package pebblestore_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/recrawl/recrawl/crawldb/verify"
	"github.com/recrawl/recrawl/internal/testlevel"
	"github.com/recrawl/recrawl/stores/pebblestore"
)

var errSector = errors.New("input/output error")

// sectors is a disk that cannot give back some places of one file.
type sectors struct {
	vfs.FS
	name     string
	from, to int64
}

type sectorFile struct {
	vfs.File
	from, to int64
}

func (d *sectors) Open(name string, o ...vfs.OpenOption) (vfs.File, error) {
	f, err := d.FS.Open(name, o...)
	if err == nil && name == d.name {
		f = &sectorFile{f, d.from, d.to}
	}
	return f, err
}

func (f *sectorFile) ReadAt(b []byte, at int64) (int, error) {
	if at < f.to && at+int64(len(b)) > f.from {
		return 0, errSector
	}
	return f.File.ReadAt(b, at)
}

// A place that the disk does not give back costs what lies there, be it of records, of
// a table's index or of a log.
func TestSalvageAroundReadErrors(t *testing.T) {
	testlevel.SkipInRace(t)
	t.Parallel()
	for _, killed := range []bool{false, true} {
		const n = 4000
		dir := sound(t, n, killed)
		src := openSound(t, dir)
		want := leaseless(t, src)
		src.Close()
		full, size := "", int64(0)
		for _, name := range files(t, dir) {
			info, err := os.Stat(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			if ext := filepath.Ext(name); (ext == ".sst" || killed && ext == ".log") && info.Size() > size {
				full, size = filepath.Join(dir, name), info.Size()
			}
		}
		abs, err := filepath.EvalSymlinks(full)
		if err != nil {
			t.Fatal(err)
		}
		for _, tt := range []struct {
			what     string
			from, to int64
			most     int // how many records may be lost
		}{
			{"a sector in the middle", size / 2, size/2 + 512, n / 3},
			{"the last sector", size - 512, size, n / 3},
			{"all", 0, size, n},
		} {
			t.Run(fmt.Sprintf("%v/%s", filepath.Ext(full), tt.what), func(t *testing.T) {
				to := filepath.Join(t.TempDir(), "new")
				var losses []error
				o := pebblestore.SalvageOptions{Lost: func(l pebblestore.Loss) { losses = append(losses, l.Err) }}
				if _, err := pebblestore.SalvageFrom(t.Context(), &sectors{vfs.Default, abs, tt.from, tt.to}, dir, to, o); err != nil {
					t.Fatal(err)
				}
				if err := errors.Join(losses...); !errors.Is(err, errSector) {
					t.Errorf("losses %v, want the error of the disk", err)
				}
				if len(losses) > 20 {
					t.Errorf("one place is reported %d times", len(losses))
				}
				got := leaseless(t, openSound(t, to))
				for url, text := range got {
					if !killed && want[url] != text {
						t.Errorf("%s is\n%s\nand was\n%s", url, text, want[url])
					}
				}
				if lost := len(want) - len(got); lost > tt.most {
					t.Errorf("%d of %d records are lost: %v", lost, len(want), losses)
				}
			})
		}
	}
}

// A file that can be opened and not read is a finding of Verify and a loss of Salvage,
// and the end of neither: here a directory has its name.
func TestUnreadableFileIsReportedAndSalvaged(t *testing.T) {
	testlevel.SkipInRace(t)
	t.Parallel()
	dir := sound(t, 400, false)
	for i, name := range files(t, dir) {
		base := filepath.Base(name)
		if i%testlevel.Pick(2, 1) != 0 || unread(name) || strings.HasPrefix(base, "OPTIONS") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			full := filepath.Join(dir, name)
			text, err := os.ReadFile(full)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(os.Remove(full), os.Mkdir(full, 0o755)); err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := errors.Join(os.Remove(full), os.WriteFile(full, text, 0o644)); err != nil {
					t.Fatal(err)
				}
			}()
			named := false
			_, err = pebblestore.Verify(t.Context(), dir, verify.Options{Found: func(f verify.Finding) {
				named = named || strings.Contains(fmt.Sprint(f), base)
			}})
			if err != nil || !named {
				t.Errorf("Verify: %v, and the file was named: %v", err, named)
			}
			salvaged(t, dir)
		})
	}
}
