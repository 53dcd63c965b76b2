package arch

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
)

// The table in DECISIONS.md of differences to Nutch names tests: each exists, in the package
// of its row.
func TestDecisionsNameTests(t *testing.T) {
	repo := os.DirFS("../..")
	text, err := fs.ReadFile(repo, "DECISIONS.md")
	if err != nil {
		t.Fatal(err)
	}
	name := regexp.MustCompile(`Test\w+(?: \((\w+)\))?`)
	rows := 0
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(line, "| \n"), " | ")
		if len(cells) != 4 || cells[0] == "package" || cells[0] == "---" {
			continue
		}
		rows++
		for _, m := range name.FindAllStringSubmatch(cells[3], -1) {
			test, _, _ := strings.Cut(m[0], " ")
			dir := cells[0]
			if m[1] != "" {
				dir = m[1]
			}
			if moved, ok := map[string]string{
				"htmlparse": "parse/htmlparse", "sitemap": "parse/sitemap", "webtest": "protocol/webtest",
				"expression": "nutch/expression", "nutchconf": "nutch/nutchconf", "nutchtext": "nutch/nutchtext",
				"hoststat": "hostdb/hoststat", "rank": "scoring/rank", "simulate": "schedule/simulate",
				"dedup": "crawldb/dedup", "merge": "crawldb/merge", "verify": "crawldb/verify",
			}[dir]; ok {
				dir = moved
			}
			if !hasTest(t, repo, dir, test) {
				t.Errorf("DECISIONS.md: package %s has no test %s", dir, test)
			}
		}
	}
	if rows < 40 {
		t.Errorf("the table has %d rows", rows)
	}
}

func hasTest(t *testing.T, repo fs.FS, dir, test string) bool {
	files, err := fs.Glob(repo, dir+"/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := fs.ReadFile(repo, file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "func "+test+"(t ") {
			return true
		}
	}
	return false
}
