package main_test

import (
	"path/filepath"
	"strings"
	"testing"
)

// Later verbs use the flags of earlier ones until they get others; verbs that only look
// change nothing.
func TestSavedFlags(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "crawl")
	const page = "https://example.com/"
	// savedFlagsLine runs a verb and returns the lines that it prints about saved flags.
	savedFlagsLine := func(args ...string) string {
		t.Helper()
		r := recrawl(t, append(append(args[:1:1], "-d", dir), args[1:]...)...)
		if r.code != 0 {
			t.Fatalf("%v: %+v", args, r)
		}
		return strings.TrimSuffix(strings.TrimPrefix(r.err, "recrawl: this crawl keeps "), "\n")
	}
	for _, step := range []struct{ args, output, schedule string }{
		{"inject " + page, "", ""},
		{"explain -schedule learned -budget 5/day " + page, "", ""},
		{"inject -schedule learned -budget 700/week " + page, "-schedule learned -budget 700/week from now on", "learned"},
		{"inject -schedule learned -budget 700/week " + page, "", "learned"},
		{"inject " + page, "", "learned"},
		{"inject -budget polite " + page, "-schedule learned -budget polite from now on; it kept -schedule learned -budget 700/week", "learned"},
		{"explain -schedule default " + page, "", "learned"},
		{"dedup -scoring pagerank,depth=3", "-schedule learned -budget polite -scoring pagerank,depth=3 from now on; it kept -schedule learned -budget polite", "learned"},
		{"inject -budget 0 " + page, "-schedule learned -scoring pagerank,depth=3 from now on; it kept -schedule learned -budget polite -scoring pagerank,depth=3", "learned"},
		{"inject -schedule adaptive -scoring conf " + page, "-schedule adaptive from now on; it kept -schedule learned -scoring pagerank,depth=3", "adaptive"},
		{"inject -schedule conf " + page, "no flags from now on; it kept -schedule adaptive", ""},
		{"inject -schedule default " + page, "-schedule default from now on", "default"},
	} {
		if got := savedFlagsLine(strings.Fields(step.args)...); got != step.output {
			t.Errorf("%s says %q, want %q", step.args, got, step.output)
		}
		want := step.schedule
		if want == "" {
			want = "adaptive"
		}
		if got := ok(t, "check", "schedule", "-d", dir, page); !strings.Contains(got, "schedule   "+want+"\n") {
			t.Errorf("after %s: check schedule says\n%s", step.args, got)
		}
	}
	ok(t, "inject", "-d", dir, "-schedule", "learned", page)
	if got := ok(t, "explain", "-d", dir, page); !strings.Contains(got, "\nchanges ") {
		t.Errorf("explain does not know of it:\n%s", got)
	}
	ok(t, "inject", "-d", dir, "-schedule", "default", page)
	// Without a schedule that learns, any budget is an error.
	for _, d := range []string{dir, dir + "2"} {
		if r := recrawl(t, "inject", "-d", d, "-budget", "5/day", page); r.code != 2 || !strings.Contains(r.err, "-budget works only with -schedule learned") {
			t.Errorf("%s: %+v", d, r)
		}
	}
	if m, err := filepath.Glob(dir + "2"); m != nil || err != nil {
		t.Errorf("a command line that means nothing made %v", m)
	}
}

// A crawl reports that the signature is another one, so that every page seems to have changed.
func TestChangedSignatureIsReported(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "crawl")
	conf := filepath.Dir(write(t, "nutch-site.xml", "<configuration><property><name>db.signature.class</name><value>org.apache.nutch.crawl.TextProfileSignature</value></property><property><name>plugin.includes</name><value>protocol-http|parse-html|scoring-opic</value></property></configuration>"))
	const later = "2026-01-01T00:00:00Z"
	ok(t, "inject", "-d", dir, "-now", "2026-02-01T00:00:00Z", "https://example.com/")
	crawl := func(more ...string) string {
		t.Helper()
		r := recrawl(t, append([]string{"crawl", "-d", dir, "-now", later, "-agent", "testbot"}, more...)...)
		if r.code != 0 {
			t.Fatalf("%+v", r)
		}
		return r.err
	}
	if savedFlagsLine := crawl() + crawl(); strings.Contains(savedFlagsLine, "compared") {
		t.Errorf("with the same: %s", savedFlagsLine)
	}
	if savedFlagsLine := crawl("-conf", conf); !strings.Contains(savedFlagsLine, "pages are now compared by TextProfile") || !strings.Contains(savedFlagsLine, "before by TextMD5") {
		t.Errorf("with another: %s", savedFlagsLine)
	}
	if savedFlagsLine := crawl("-conf", conf); strings.Contains(savedFlagsLine, "compared") {
		t.Errorf("once more: %s", savedFlagsLine)
	}
}

// With another schedule, a message says that pages are due when they were: only visits set times.
func TestScheduleChangeIsReported(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "crawl")
	crawl := func(more ...string) bool {
		t.Helper()
		r := recrawl(t, append([]string{"crawl", "-d", dir, "-now", "2026-01-01T00:00:00Z", "-agent", "testbot"}, more...)...)
		if r.code != 0 {
			t.Fatalf("%+v", r)
		}
		return strings.Contains(r.err, "from its next visit on")
	}
	ok(t, "inject", "-d", dir, "-now", "2026-02-01T00:00:00Z", "https://example.com/")
	for _, step := range []struct {
		args      string
		announced bool
	}{
		{"-schedule adaptive", false}, // the first
		{"-schedule learned", true},
		{"-schedule learned -budget 5/day", true},
		{"-scoring pagerank", false},
		{"-schedule conf", true},
		{"", false},
	} {
		if announced := crawl(strings.Fields(step.args)...); announced != step.announced {
			t.Errorf("crawl %s: the change of schedule is announced: %v", step.args, announced)
		}
	}
}
