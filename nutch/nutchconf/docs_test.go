package nutchconf

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var rewrite = flag.Bool("update", false, "write docs/nutch-properties.md")

const docs = "../../docs/nutch-properties.md"

// The table for readers is made of the table in the code:
//
//	go test ./nutch/nutchconf -run TestDocs -update
func TestDocs(t *testing.T) {
	want := []byte(documentation())
	if *rewrite {
		if err := os.MkdirAll("../../docs", 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(docs, want, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(docs)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is stale: go test ./nutch/nutchconf -run TestDocs -update", docs)
	}
}

func documentation() string {
	var b strings.Builder
	count := map[Support]int{}
	total := 0
	for _, p := range Properties() {
		count[p.Support]++
		total++
	}
	fmt.Fprintf(&b, `# Nutch's properties, and where they are here

Package nutchconf reads a Nutch configuration directory, and `+"`recrawl -conf DIR`"+` uses it: %d of the %d properties that
Nutch 1.23 knows are honoured, %d of them in part. This page is generated from the table in the code; do not edit it.

*Default* is the value in Nutch's nutch-default.xml, or in brackets the fallback in Nutch's code; where there are both, the
fallback applies only if nutch-default.xml lacks the property. *Here* is the Go field and the command-line flag. A property that
is set but not honoured is reported, unless its value describes what happens here anyway.
`, count[Honoured]+count[Partly], total, count[Partly])
	title := ""
	for t, p := range Properties() {
		if t != title {
			fmt.Fprintf(&b, "\n## %s\n\n| property | default | honoured | here | notes |\n| --- | --- | --- | --- | --- |\n", t)
			title = t
		}
		def := code(p.Default)
		if p.Code != "" {
			def = strings.TrimSpace(def + " [" + code(strings.Trim(p.Code, "()")) + "]")
		}
		var here []string
		for f := range strings.SplitSeq(p.Field, ", ") {
			if f != "" {
				here = append(here, code(f))
			}
		}
		for f := range strings.SplitSeq(p.Flag, ", ") {
			if f != "" {
				here = append(here, code(f))
			}
		}
		note := p.Note
		if p.Support == NotHonoured && p.Only != "" {
			note += "; as if " + code(p.Only)
		}
		fmt.Fprintf(&b, "| %s | %s | %v | %s | %s |\n", code(p.Name), def, p.Support, strings.Join(here, ", "), strings.ReplaceAll(strings.TrimPrefix(note, "; "), "<", "&lt;"))
	}
	return b.String()
}

// code marks text as code, also within a table.
func code(s string) string {
	if s == "" {
		return ""
	}
	return "`" + strings.ReplaceAll(s, "|", `\|`) + "`"
}
