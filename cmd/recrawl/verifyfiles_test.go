package main_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb/verify"
	"github.com/recrawl/recrawl/protocol/webtest"
	"github.com/recrawl/recrawl/stores/pebblestore"
)

// Verify finds a flipped bit and a missing byte in each file of a crawl, except in locks, whose
// contents are not used, and in the settings of the command, which are text of the operator.
func TestVerifyReadsEachFileOfACrawl(t *testing.T) {
	t.Parallel()
	s := serve(t, &webtest.Web{Hosts: 2, PagesPerHost: 20, Calm: true})
	ok(t, s.crawl(append([]string{"-rounds", "2", "-schedule", "learned", "-budget", "1000/day"}, s.web.Seeds()...)...)...)
	ok(t, "freegen", "-d", s.dir, "-now", frozen, write(t, "urls.txt", s.web.Seeds()[0]+"\n"))
	unread := []string{"LOCK", "db/LOCK", "recrawl.yaml"}
	files := 0
	err := filepath.WalkDir(s.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(s.dir, path)
		if err != nil {
			return err
		}
		if len(text) == 0 || slices.Contains(unread, filepath.ToSlash(rel)) {
			return nil
		}
		files++
		flipped := bytes.Clone(text)
		flipped[len(text)/2] ^= 4
		for what, damaged := range map[string][]byte{"a flipped bit": flipped, "a missing byte": text[:len(text)-1]} {
			if err := os.WriteFile(path, damaged, 0o644); err != nil {
				return err
			}
			if r, err := pebblestore.Verify(t.Context(), s.dir, verify.Options{Now: func() time.Time { return parsed(frozen) }}); err == nil && r.Findings == 0 {
				t.Errorf("Verify does not find %s in %s", what, rel)
			}
		}
		return os.WriteFile(path, text, 0o644)
	})
	if err != nil || files < 15 {
		t.Fatalf("%d files, %v", files, err)
	}
	if r, err := pebblestore.Verify(t.Context(), s.dir, verify.Options{Now: func() time.Time { return parsed(frozen) }}); err != nil || r.Findings+r.Harmless > 0 {
		t.Errorf("the sound crawl: %+v, %v", r, err)
	}
}
