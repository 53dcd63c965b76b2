package nutchconf_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestNotes(t *testing.T) {
	o := options(t,
		"http.agent.name", "testbot",
		"http.proxy.realm", "example.com",
		"http.useHttp11", "true", // which is what happens here
		"fetcher.redirect.dedupcache.seconds", "60",
		"fetcher.thread.fetch", "20",
		"http.robot.rules.whitelist", "example.com",
		"mapreduce.job.maps", "4",
		"mapreduce.map.memory.mb", "1024",
		"my.own.unknown.property", "x",
		"my.var", "2.5", // which is asked for
		"fetcher.server.delay", "${my.var}",
		"plugin.includes", "nutch-extensionpoints|protocol-http|urlfilter-regex|parse-html|scoring-opi[cx]|lib-http|index-.*",
		"urlnormalizer.scope.mine", "x",
		"generate.filter", "false",
		"http.agent.rotate", "",
		"plugin.excludes", "nothing",
		"store.http.headers", " False ", // which is what happens here, too
		"fetcher.timelimit.mins", "-2",
		"speed", "1",
	)
	var got []string
	for _, n := range o.Notes {
		line := n.Property
		if n.Unknown {
			line += " unknown"
		}
		if n.Line < 2 || !strings.HasSuffix(n.File, "nutch-site.xml") || !strings.Contains(n.String(), n.Text) {
			t.Errorf("%+v does not say where it was set", n)
		}
		got = append(got, line)
	}
	want := []string{"http.proxy.realm", "fetcher.redirect.dedupcache.seconds", "fetcher.thread.fetch unknown", "http.robot.rules.whitelist unknown",
		"mapreduce.job.maps", "mapreduce.map.memory.mb", "my.own.unknown.property unknown", "plugin.includes", "plugin.includes", "urlnormalizer.scope.mine unknown", "generate.filter", "speed unknown"}
	if !slices.Equal(got, want) {
		t.Errorf("notes about\n%q, want\n%q", got, want)
	}
	for i, want := range map[int]string{2: "did you mean fetcher.threads.fetch?", 3: "it is now called http.robot.rules.allowlist", 0: "the proxy has one login", 10: "the flag is generate -no-filter", 5: "there is no Hadoop job here"} {
		if i < len(o.Notes) && !strings.Contains(o.Notes[i].Text, want) {
			t.Errorf("%v does not say %q", o.Notes[i], want)
		}
	}
}

// A property that only Nutch's rules honour is noted under the corrected ones, and the
// other way round.
func TestNotesOfRules(t *testing.T) {
	all := []string{"http.agent.name", "testbot", "parser.html.form.use_action", "true", "parser.html.outlinks.ignore_tags", "img", "urlnormalizer.basic.host.idn", "toUnicode",
		"urlnormalizer.basic.host.idna2008", "false", "urlnormalizer.basic.host.trim-trailing-dot", "true", "http.store.responsetime", "false", "anchorIndexingFilter.deduplicate", "true"}
	c := read(t, conf(t, all...))
	for corrected, want := range map[bool][]string{
		false: {"http.store.responsetime", "anchorIndexingFilter.deduplicate"},
		true:  {"parser.html.form.use_action", "parser.html.outlinks.ignore_tags", "urlnormalizer.basic.host.idn", "urlnormalizer.basic.host.idna2008"},
	} {
		c.Corrected = corrected
		o, err := c.Options()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, n := range o.Notes {
			got = append(got, n.Property)
		}
		if !slices.Equal(got, want) {
			t.Errorf("with Corrected %v, notes about %q, want %q", corrected, got, want)
		}
	}
}

// A configuration with parse-tika gets a note that PDFs will have no text.
func TestNoteAboutParseTika(t *testing.T) {
	const includes = "protocol-http|parse-html|urlfilter-regex|scoring-opic|urlnormalizer-basic"
	for value, want := range map[string]int{includes: 0, includes + "|parse-tika": 1} {
		o := options(t, "plugin.includes", value)
		if len(o.Notes) != want || want > 0 && !strings.Contains(o.Notes[0].String(), "PDF") {
			t.Errorf("%s: %v", value, o.Notes)
		}
	}
}

func TestNoteWithoutFilters(t *testing.T) {
	o := options(t, "plugin.includes", "protocol-http|parse-html|scoring-opic|urlnormalizer-basic")
	if len(o.Notes) != 1 || !strings.Contains(o.Notes[0].String(), "nutch-site.xml:2: plugin.includes: no filter is active") {
		t.Errorf("%v", o.Notes)
	}
}

// Nutch reads two files that no property has to name. They have no effect here.
func TestUnreadFilesAreReported(t *testing.T) {
	dir := conf(t, "http.agent.name", "testbot")
	if o, err := read(t, dir).Options(); err != nil || len(o.Unread) != 0 {
		t.Errorf("without the files: %v, %v", o.Unread, err)
	}
	for _, name := range []string{"parse-plugins.xml", "index-writers.xml"} {
		write(t, filepath.Join(dir, name), "<x/>")
	}
	o, err := read(t, dir).Options()
	if err != nil || len(o.Notes) != 0 {
		t.Fatalf("%v, %v", o.Notes, err)
	}
	var got []string
	for _, n := range o.Unread {
		got = append(got, n.String())
	}
	if want := []string{
		filepath.Join(dir, "parse-plugins.xml") + " parse.plugin.file: this file is not read: recrawl.Options.Parser picks the parser",
		filepath.Join(dir, "index-writers.xml") + " indexer.indexwriters.file: this file is not read: documents go to an index.Writer; recrawl index writes JSON lines",
	}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	write(t, filepath.Join(dir, "nutch-site.xml"), site("http.agent.name", "testbot", "parse.plugin.file", "mine.xml"))
	if o, err := read(t, dir).Options(); err != nil || len(o.Notes) != 1 || len(o.Unread) != 1 {
		t.Errorf("with one of them named: %v, %v, %v", o.Notes, o.Unread, err)
	}
}
