package arch

import (
	"io/fs"
	"os"
	"strings"
	"testing"
)

const nutchDifferences = "docs/nutch-differences.md"

// Each test that the table of differences to Nutch names exists in the package of its row, or in the
// package in parentheses behind it. A subtest exists if its name stands in quotes in a test file.
func TestNutchDifferencesNameTests(t *testing.T) {
	repo := os.DirFS("../..")
	text, err := fs.ReadFile(repo, nutchDifferences)
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(line, "| \n"), " | ")
		if len(cells) != 4 || cells[0] == "package" || cells[0] == "---" {
			continue
		}
		rows++
		for name := range strings.SplitSeq(cells[3], ", ") {
			if name == "–" {
				continue
			}
			dir := cells[0]
			if test, in, ok := strings.Cut(strings.TrimSuffix(name, ")"), " ("); ok {
				name, dir = test, in
			}
			test, sub, _ := strings.Cut(name, "/")
			if !testFileContains(t, repo, dir, "func "+test+"(t ") || sub != "" && !testFileContains(t, repo, dir, `"`+sub+`"`) {
				t.Errorf("%s: package %s has no test %s", nutchDifferences, dir, name)
			}
		}
	}
	if rows < 40 {
		t.Errorf("the table has %d rows", rows)
	}
}

// testFileContains reports whether a test file of a directory contains a text.
func testFileContains(t *testing.T, repo fs.FS, dir, text string) bool {
	files, err := fs.Glob(repo, dir+"/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		b, err := fs.ReadFile(repo, file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(b), text) {
			return true
		}
	}
	return false
}
