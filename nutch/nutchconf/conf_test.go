package nutchconf_test

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/nutch/nutchconf"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/signature"
	"github.com/recrawl/recrawl/urlfilter"
)

// conf writes a configuration directory: the rule files of testdata/stock, and
// nutch-site.xml with the given properties, name and value in turn, one a line
// from line 2 on.
func conf(t *testing.T, properties ...string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/stock")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "nutch-site.xml"), site(properties...))
	return dir
}

func site(properties ...string) string {
	var b strings.Builder
	b.WriteString("<configuration>\n")
	for i := 0; i+1 < len(properties); i += 2 {
		value := strings.NewReplacer("&", "&amp;", "<", "&lt;").Replace(properties[i+1])
		b.WriteString("<property><name>" + properties[i] + "</name><value>" + value + "</value></property>\n")
	}
	b.WriteString("</configuration>\n")
	return b.String()
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, dir string) *nutchconf.Conf {
	t.Helper()
	c, err := nutchconf.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func options(t *testing.T, properties ...string) *nutchconf.Options {
	t.Helper()
	o, err := read(t, conf(t, properties...)).Options()
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// Nutch's defaults appear in the options where they differ from those of this module.
func TestDefaultsAreNutchs(t *testing.T) {
	o := options(t, "http.agent.name", "testbot")
	c := &o.Crawl
	if !reflect.DeepEqual(c.Schedule, &schedule.Default{DefaultInterval: 30 * 24 * time.Hour, MaxInterval: 90 * 24 * time.Hour, NutchCompat: true}) {
		t.Errorf("schedule: %+v", c.Schedule)
	}
	if !reflect.DeepEqual(c.Scoring, &scoring.OPIC{InternalFactor: 1, ExternalFactor: 1, ScorePower: 0.5, NutchCompat: true}) {
		t.Errorf("scoring: %+v", c.Scoring)
	}
	if c.Signature != (signature.MD5{}) {
		t.Errorf("signature: %+v", c.Signature)
	}
	for _, v := range []struct {
		name      string
		got, want any
	}{
		{"agent", c.Agent, "testbot"},
		{"user agent", c.HTTP.UserAgent, "testbot/Nutch-1.23-SNAPSHOT"},
		{"threads", c.Fetch.Threads, 10},
		{"delay", c.Fetch.Politeness.Delay, 5 * time.Second},
		{"max crawl delay", c.Fetch.Politeness.MaxCrawlDelay, 30 * time.Second},
		{"max failures", c.Fetch.Politeness.MaxFailures, 5},
		{"outlinks", c.Fetch.Links.MaxPerPage, 100},
		{"outlink length", c.Fetch.Links.MaxLength, 4096},
		{"skip truncated", c.Fetch.Parsing.SkipTruncated, true},
		{"parse later", c.ParseLater, true},
		{"content limit", c.HTTP.Limits.MaxBytes, int64(1 << 20)},
		{"timeout", c.HTTP.Limits.ConnectTimeout, 10 * time.Second},
		{"time limit", c.HTTP.Limits.TimeLimit, time.Duration(-1)},
		{"certificates", c.HTTP.InsecureSkipVerify, true},
		{"lease", c.Generate.Lease, 7 * 24 * time.Hour},
		{"max per host", c.Generate.MaxPerHost, 0},
		{"min score", c.Generate.MinScore, float32(0)},
		{"max interval", c.Generate.MaxInterval, time.Duration(0)},
		{"retries", c.Update.MaxRetries, 3},
		{"inlinks", c.Update.MaxInlinks, 10000},
		{"internal links", c.Invert.IgnoreInternal, true},
		{"anchors", c.Invert.MaxAnchor, 100},
		{"seed score", o.Inject.Score, float32(1)},
		{"percentiles", o.Hosts.Percentiles, []float64{50, 75, 95, 99}},
		{"quantiles", len(o.Quantiles), 15},
		{"loops", c.Rules.Loops, 1},
		{"notes", len(o.Notes), 0},
		// What is off by being on in Nutch.
		{"without validators", c.Fetch.Unconditional, false},
		{"contents not kept", c.Fetch.NoContent, false},
		{"redirects exempt", c.Fetch.Following.ExemptRedirects, false},
		{"links not filtered", c.Fetch.Links.NoFilter, false},
		{"links not normalized", c.Fetch.Links.NoNormalize, false},
		{"sitemaps not strict", c.Fetch.Sitemaps.NoStrict, false},
		{"sitemaps not filtered", c.Fetch.Sitemaps.NoFilter, false},
		{"sitemaps not normalized", c.Fetch.Sitemaps.NoNormalize, false},
		{"no additions", c.Update.NoAdditions, false},
		{"internal links are kept", c.Invert.KeepInternal, false},
	} {
		if !reflect.DeepEqual(v.got, v.want) {
			t.Errorf("%s: %v, want %v", v.name, v.got, v.want)
		}
	}
	for url, want := range map[string]string{
		"http://Example.com:80/a//b/../c?sid=1": "http://example.com/a/c",
		"http://example.com/#top":               "http://example.com/",
		"http://example.com/a.gif":              "",
		"http://example.com/?q=1":               "",
		"http://example.com/a/b/a/c/a/":         "",
		"mailto:a@example.com":                  "",
	} {
		if got, _ := c.Rules.Apply(urlfilter.Outlink, url); got != want {
			t.Errorf("%s is %q, want %q", url, got, want)
		}
	}
}

// Every policy that has both Nutch's rules and corrected ones is set to one of them.
func TestCompatIsComplete(t *testing.T) {
	for _, corrected := range []bool{false, true} {
		for _, class := range []string{"DefaultFetchSchedule", "AdaptiveFetchSchedule", "MimeAdaptiveFetchSchedule"} {
			for _, sig := range []string{"MD5Signature", "TextMD5Signature", "TextProfileSignature"} {
				c := nutchconf.New("testdata/everything")
				c.Corrected = corrected
				c.Set("plugin.includes", ".*")
				c.Set("db.fetch.schedule.class", "org.apache.nutch.crawl."+class)
				c.Set("db.signature.class", "org.apache.nutch.crawl."+sig)
				if sig == "MD5Signature" { // rules of properties, too
					for name, rules := range map[string]string{"regex": "+.", "automaton": "+.*", "prefix": "http://", "suffix": "+", "domain": "com", "domaindenylist": "com"} {
						c.Set("urlfilter."+name+".rules", rules)
					}
				}
				o, err := c.Options()
				if err != nil {
					t.Fatal(err)
				}
				found := 0
				walk(t, "Options", reflect.ValueOf(o), map[uintptr]bool{}, func(path string, set bool) {
					found++
					if set == corrected {
						t.Errorf("with Corrected %v, %s is %v", corrected, path, set)
					}
				})
				if found < 15 {
					t.Errorf("found only %d fields NutchCompat", found)
				}
			}
		}
	}
}

// walk calls do for each field NutchCompat that can be reached.
func walk(t *testing.T, path string, v reflect.Value, seen map[uintptr]bool, do func(path string, set bool)) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() || seen[v.Pointer()] {
			return
		}
		seen[v.Pointer()] = true
		walk(t, path, v.Elem(), seen, do)
	case reflect.Interface:
		if !v.IsNil() {
			walk(t, path, v.Elem(), seen, do)
		}
	case reflect.Slice:
		for i := range v.Len() {
			walk(t, path, v.Index(i), seen, do)
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			walk(t, path+"["+k.String()+"]", v.MapIndex(k), seen, do)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			switch {
			case f.Name == "NutchCompat" && f.Type.Kind() == reflect.Bool:
				do(path, v.Field(i).Bool())
			case f.IsExported():
				walk(t, path+"."+f.Name, v.Field(i), seen, do)
			}
		}
	}
}

func TestUserAgent(t *testing.T) {
	for _, tt := range []struct {
		properties []string
		want       string
	}{
		{[]string{"http.agent.version", "1"}, "testbot/1"},
		{[]string{"http.agent.version", "1", "http.agent.description", "a test", "http.agent.url", "http://example.com/bot", "http.agent.email", "bot at example dot com"},
			"testbot/1 (a test; http://example.com/bot; bot at example dot com)"},
		{[]string{"http.agent.version", "1", "http.agent.email", "bot at example dot com"}, "testbot/1 (bot at example dot com)"},
		{[]string{"http.agent.version", " "}, "testbot"},
		{[]string{"http.agent.version", "1", "http.agent.description", "\n  two\n  lines\n"}, "testbot/1 (two lines)"},
	} {
		o := options(t, append(tt.properties, "http.agent.name", "testbot")...)
		if o.Crawl.HTTP.UserAgent != tt.want {
			t.Errorf("%q: %q, want %q", tt.properties, o.Crawl.HTTP.UserAgent, tt.want)
		}
	}
	for email, from := range map[string]string{"bot@example.com": "bot@example.com", "bot at example dot com": "", "": "", "a @ b": ""} {
		if o := options(t, "http.agent.name", "testbot", "http.agent.email", email); o.Crawl.HTTP.From != from {
			t.Errorf("http.agent.email %q: From %q, want %q", email, o.Crawl.HTTP.From, from)
		}
	}
	o := options(t, "http.agent.name", "My Nutch Spider")
	if o.Crawl.Agent != "MyNutchSpider" || o.Crawl.HTTP.UserAgent != "My Nutch Spider/Nutch-1.23-SNAPSHOT" || len(o.Notes) != 1 {
		t.Errorf("%q, %q, %v", o.Crawl.Agent, o.Crawl.HTTP.UserAgent, o.Notes)
	}
}

// Values that are empty, zero or at the end of their range.
func TestBoundaryValues(t *testing.T) {
	sweeps := func(o *nutchconf.Options) any {
		s := &o.Crawl.Update.Sweep
		return [2]bool{s.Normalize, s.Filter}
	}
	depth := func(o *nutchconf.Options) any { return o.Crawl.Fetch.Limits.QueueDepth }
	timeouts := func(o *nutchconf.Options) any {
		h := &o.Crawl.HTTP
		return [3]time.Duration{h.Limits.ConnectTimeout, h.Limits.TLSTimeout, h.Limits.HeaderTimeout}
	}
	for _, c := range []struct {
		name, value string
		of          func(*nutchconf.Options) any
		want        any
	}{
		{"http.agent.name", "azAZ09-_", func(o *nutchconf.Options) any { return o.Crawl.Agent }, "azAZ09-_"},
		{"http.agent.name", "a@b`c{d[e/f:9", func(o *nutchconf.Options) any { return o.Crawl.Agent }, "abcdef9"},
		{"http.timeout", "0", timeouts, [3]time.Duration{-1, -1, -1}},
		{"http.timeout", "1", timeouts, [3]time.Duration{1e6, 1e6, 1e6}},
		{"http.auth.file", "", func(o *nutchconf.Options) any { return len(o.Crawl.HTTP.Logins) }, 0},
		{"fetcher.queue.depth.multiplier", "7", depth, 7},
		{"fetcher.threads.fetch", "7", depth, 0},
		{"crawldb.url.filters", "true", sweeps, [2]bool{false, true}},
		{"crawldb.url.normalizers", "true", sweeps, [2]bool{true, false}},
		{"crawldb.url.filters", "false", sweeps, [2]bool{}},
		{"hostdb.purge.failed.hosts.threshold", "0", func(o *nutchconf.Options) any { return o.Hosts.PurgeAfter }, int64(-1)},
		{"hostdb.purge.failed.hosts.threshold", "1", func(o *nutchconf.Options) any { return o.Hosts.PurgeAfter }, int64(1)},
		{"hostdb.percentiles", "0,100", func(o *nutchconf.Options) any { return o.Hosts.Percentiles }, []float64{0, 100}},
		{"db.stats.score.quantiles", "0,1", func(o *nutchconf.Options) any { return o.Quantiles }, []float64{0, 1}},
	} {
		o := options(t, "http.agent.name", "testbot", c.name, c.value)
		if got := c.of(o); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s %q: %v, want %v", c.name, c.value, got, c.want)
		}
	}
}

// What the plugins make of a crawl beside their own part of it.
func TestPlugins(t *testing.T) {
	for _, c := range []struct {
		plugins      string
		breadthFirst bool
		noHTTP       bool
	}{
		{"protocol-http|scoring-depth", true, false},
		{"protocol-httpclient|scoring-(depth|link)", false, false},
		{"protocol-okhttp|scoring-(depth|opic)", false, false},
		{"protocol-file|scoring-depth", true, true},
	} {
		o := options(t, "http.agent.name", "testbot", "plugin.includes", c.plugins+"|urlfilter-regex|parse-html")
		depths := 0
		filters, ok := o.Crawl.Scoring.(scoring.Chain)
		if !ok {
			filters = scoring.Chain{o.Crawl.Scoring}
		}
		for _, f := range filters {
			if d, ok := f.(*scoring.Depth); ok {
				if depths++; d.BreadthFirst != c.breadthFirst {
					t.Errorf("%s: breadth first: %t", c.plugins, d.BreadthFirst)
				}
			}
		}
		if depths != 1 {
			t.Errorf("%s: scoring is %+v", c.plugins, o.Crawl.Scoring)
		}
		noHTTP := slices.ContainsFunc(o.Notes, func(n nutchconf.Note) bool { return strings.Contains(n.Text, "no plugin for http") })
		if noHTTP != c.noHTTP {
			t.Errorf("%s: notes %+v", c.plugins, o.Notes)
		}
	}
}

func TestSiteOverDefault(t *testing.T) {
	dir := conf(t, "fetcher.threads.fetch", "30", "db.max.outlinks.per.page", "7", "fetcher.server.delay", "2.5", "db.fetch.retry.max", "")
	write(t, filepath.Join(dir, "nutch-default.xml"), strings.Replace(site(
		"fetcher.threads.fetch", "20", "db.fetch.retry.max", "9", "db.ignore.external.links", "true", "generate.max.count", "5"),
		"<value>20</value>", "<value>20</value><final>true</final>", 1))
	c := read(t, dir)
	for name, want := range map[string]string{
		"fetcher.threads.fetch":    "20",   // final
		"db.fetch.retry.max":       "9",    // empty is not set
		"db.max.outlinks.per.page": "7",    // set
		"db.ignore.external.links": "true", // of the other file
		"http.redirect.max":        "3",    // in neither: of the code
	} {
		if got, ok, err := c.Get(name); got != want || !ok || err != nil {
			t.Errorf("%s is %q, %v, %v, want %q", name, got, ok, err, want)
		}
	}
	for _, name := range []string{"http.agent.url", "no.such.property"} {
		if got, ok, err := c.Get(name); ok || err != nil {
			t.Errorf("%s is %q, %v", name, got, err)
		}
	}
}

// The nutch-default.xml of another Nutch lacks newer properties, and has older ones and some
// of parts without a counterpart: none of these count as set.
func TestDefaultsOfAnotherNutch(t *testing.T) {
	dir := conf(t, "http.agent.name", "testbot")
	o, err := read(t, dir).Options()
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "nutch-default.xml"), site("db.fetch.interval.max", "7776000", "http.robot.rules.whitelist", "", "generate.min.score", "0", "fetcher.parse", "false", "http.redirect.max", "0",
		"fetcher.server.delay", "5.0", "fetcher.exceptions.per.queue.delay", "${fetcher.server.delay}", "fetcher.max.exceptions.per.queue", "5", "parser.html.form.use_action", "false", "hostdb.purge.failed.hosts.threshold", "3", "hostdb.num.resolvers.threads", "25",
		"db.fetch.schedule.adaptive.inc_rate", "0.4", "db.fetch.schedule.adaptive.sync_delta_rate", "0.3", "selenium.driver", "chrome", "parser.html.line.separators", "article,aside", "some.old.property", "1",
		"plugin.includes", "\n protocol-http|urlfilter-regex|parse-(html|tika)|index-(basic|anchor)|indexer-solr|scoring-opic|urlnormalizer-(pass|regex|basic)\n"))
	other, err := read(t, dir).Options()
	if err != nil {
		t.Fatal(err)
	}
	if len(other.Notes) != 1 || other.Notes[0].Property != "parser.html.line.separators" {
		t.Errorf("notes: %v", other.Notes)
	}
	for _, v := range []any{o, other} {
		e := reflect.ValueOf(v).Elem()
		e.FieldByName("Notes").SetZero()
		e.FieldByName("Crawl").FieldByName("Rules").SetZero() // of files that were read twice
	}
	if !reflect.DeepEqual(o, other) {
		t.Errorf("options differ:\n%+v\n%+v", o, other)
	}
}

func TestIncludes(t *testing.T) {
	dir := conf(t)
	if err := os.Mkdir(filepath.Join(dir, "local"), 0o777); err != nil {
		t.Fatal(err)
	}
	const xi = ` xmlns:xi="http://www.w3.org/2001/XInclude"`
	write(t, filepath.Join(dir, "nutch-site.xml"), "<configuration"+xi+`>
<property><name>fetcher.threads.fetch</name><value>1</value></property>
<xi:include href="local/site.xml"/>
<property><name>db.fetch.retry.max</name><value>7</value></property>
</configuration>`)
	write(t, filepath.Join(dir, "local", "site.xml"), "<configuration"+xi+`>
<property><name>fetcher.threads.fetch</name><value>3</value></property>
<property><name>db.fetch.retry.max</name><value>x</value></property>
<property><name>http.proxy.host</name><value>proxy</value></property>
<xi:include href="agent.xml"/>
</configuration>`)
	write(t, filepath.Join(dir, "local", "agent.xml"), site("http.agent.name", "testbot", "fetcher.server.delay", "x"))
	c := read(t, dir)
	for name, want := range map[string]string{"fetcher.threads.fetch": "3", "db.fetch.retry.max": "7", "http.agent.name": "testbot"} {
		if got, _, _ := c.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if _, err := c.Options(); err == nil || !strings.Contains(err.Error(), filepath.Join(dir, "local", "agent.xml")+":3: fetcher.server.delay: ") || strings.Contains(err.Error(), "\n") {
		t.Errorf("a mistake in a file that is included: %v", err)
	}
	for text, want := range map[string]string{
		"<configuration>\n<include href='../nutch-site.xml'/></configuration>": "local/agent.xml:2: xi:include: " + dir + "/nutch-site.xml includes itself",
		"<configuration>\n<include href='nowhere.xml'/></configuration>":       "local/agent.xml:2: xi:include without fallback: open " + dir + "/local/nowhere.xml",
		"<configuration>\n<include/></configuration>":                          "local/agent.xml:2: xi:include: no href",
		"<configuration>\n<include href='http://a.example/'/></configuration>": "local/agent.xml:2: xi:include: http://a.example/ is not a file",
		"<configuration>\n<property>":                                          "nutch-site.xml:3: xi:include: " + dir + "/local/site.xml:5: xi:include: " + dir + "/local/agent.xml:2: ",
	} {
		write(t, filepath.Join(dir, "local", "agent.xml"), text)
		if _, err := nutchconf.Read(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n%v, want %s", text, err, want)
		}
	}
}

func TestVariables(t *testing.T) {
	c := read(t, conf(t, "my.delay", "1.5", "fetcher.server.delay", "${my.delay}", "http.agent.name", "${env.USER}bot"))
	for name, want := range map[string]string{"fetcher.server.delay": "1.5", "fetcher.min.crawl.delay": "1.5", "http.agent.name": "${env.USER}bot"} {
		if got, _, err := c.Get(name); got != want || err != nil {
			t.Errorf("%s is %q, %v, want %q", name, got, err, want)
		}
	}
	c = read(t, conf(t, "fetcher.server.delay", "${fetcher.server.delay}"))
	if _, err := c.Options(); err == nil || !strings.Contains(err.Error(), "nutch-site.xml:2: fetcher.server.delay: more than 20 variables") {
		t.Errorf("a variable that leads to itself: %v", err)
	}
}

func TestOrdersAndScopes(t *testing.T) {
	const classes = "org.apache.nutch.net.urlnormalizer."
	o := options(t, "plugin.includes", "protocol-http|parse-html|urlfilter-(regex|validator)|urlnormalizer-(basic|regex|querystring)|scoring-(opic|depth)",
		"urlfilter.order", "org.apache.nutch.urlfilter.validator.UrlValidator org.apache.nutch.urlfilter.suffix.SuffixURLFilter",
		"urlnormalizer.order", classes+"regex.RegexURLNormalizer",
		"urlnormalizer.scope.inject", classes+"basic.BasicURLNormalizer",
		"scoring.filter.order", "org.apache.nutch.scoring.opic.OPICScoringFilter org.apache.nutch.scoring.depth.DepthScoringFilter")
	if n := len(o.Crawl.Rules.Filters); n != 1 {
		t.Errorf("%d filters, want the one that urlfilter.order names and that is active", n)
	}
	chain, ok := o.Crawl.Scoring.(scoring.Chain)
	if !ok || len(chain) != 2 || reflect.TypeOf(chain[0]) != reflect.TypeFor[*scoring.OPIC]() {
		t.Errorf("scoring: %#v", o.Crawl.Scoring)
	}
	for scope, want := range map[urlfilter.Scope]string{
		urlfilter.Inject:  "http://example.com/?b&a&sid=1",
		urlfilter.Outlink: "http://example.com/?a&b", // by the basic normalizer, the last of all but for the order
	} {
		r := *o.Crawl.Rules
		r.Filters = nil
		if got, err := r.Apply(scope, "HTTP://example.com?b&a&sid=1"); got != want || err != nil {
			t.Errorf("%s: %q, %v, want %q", scope, got, err, want)
		}
	}
	// A scope without properties has all active normalizers, whatever others have; one that is
	// left without any has those of the scope default.
	o2 := options(t, "plugin.includes", "urlnormalizer-(basic|querystring)",
		"urlnormalizer.scope.default", classes+"basic.BasicURLNormalizer", "urlnormalizer.scope.fetcher", classes+"pass.PassURLNormalizer")
	for scope, want := range map[urlfilter.Scope]string{
		urlfilter.AnyScope: "http://example.com/?b&a",
		urlfilter.Inject:   "http://example.com/?a&b",
		urlfilter.Fetcher:  "http://example.com/?b&a",
		urlfilter.Generate: "HTTP://example.com?b&a", // where Nutch normalizes nothing
	} {
		if got, err := o2.Crawl.Rules.Apply(scope, "HTTP://example.com?b&a"); got != want || err != nil {
			t.Errorf("%s: %q, %v, want %q", scope, got, err, want)
		}
	}
	var notes []string
	for _, n := range o.Notes {
		notes = append(notes, n.Property+": "+n.Text)
	}
	if all := strings.Join(notes, "\n"); !strings.Contains(all, "SuffixURLFilter is ignored") || !strings.Contains(all, "RegexURLFilter is not named") {
		t.Errorf("notes:\n%s", all)
	}
}

func TestScopedRegexFile(t *testing.T) {
	dir := conf(t, "plugin.includes", "urlnormalizer-regex|urlfilter-regex", "urlnormalizer.regex.file.fetcher", "other.xml", "urlfilter.regex.rules", "+.")
	write(t, filepath.Join(dir, "other.xml"), "<regex-normalize><regex><pattern>/x</pattern><substitution>/y</substitution></regex></regex-normalize>")
	o, err := read(t, dir).Options()
	if err != nil {
		t.Fatal(err)
	}
	for scope, want := range map[urlfilter.Scope]string{urlfilter.Fetcher: "http://example.com/y?&", urlfilter.Outlink: "http://example.com/x"} {
		if got, err := o.Crawl.Rules.Apply(scope, "http://example.com/x?&"); got != want || err != nil {
			t.Errorf("%s: %q, %v, want %q", scope, got, err, want)
		}
	}
}

func TestInlineRulesGoFirst(t *testing.T) {
	o := options(t, "urlfilter.regex.rules", "-secret\n+.", "urlfilter.regex.file", "missing.txt")
	steps := o.Crawl.Rules.Explain(urlfilter.AnyScope, "http://example.com/secret")
	if last := steps[len(steps)-1]; last.Accepted || last.Rule != "urlfilter.regex.rules:1: -secret" {
		t.Errorf("%+v", last)
	}
	if _, err := o.Crawl.Rules.Apply(urlfilter.AnyScope, "http://example.com/a.gif"); err != nil {
		t.Error(err)
	}
}

func TestAdaptiveFiles(t *testing.T) {
	dir := conf(t, "db.fetch.schedule.class", "org.apache.nutch.crawl.MimeAdaptiveFetchSchedule", "db.fetch.schedule.mime.file", "rates.txt",
		"db.fetch.schedule.adaptive.sync_delta", "false", "db.fetch.schedule.adaptive.min_interval", "3600.5")
	write(t, filepath.Join(dir, "rates.txt"), "application/pdf\t0.1\t0.4\n")
	write(t, filepath.Join(dir, "adaptive-host-specific-intervals.txt"), "www.example.com 4000 default\n")
	o, err := read(t, dir).Options()
	if err != nil {
		t.Fatal(err)
	}
	s := o.Crawl.Schedule.(*schedule.MimeAdaptive)
	if s.IncRate != 0.4 || s.DecRate != 0.2 || s.SyncRate != -1 || s.MinInterval != 3600500*time.Millisecond || s.AdaptiveMax != 365*24*time.Hour {
		t.Errorf("%+v", s.Adaptive)
	}
	if s.Types["application/pdf"] != (schedule.AdaptiveRates{Inc: 0.1, Dec: 0.4}) || s.HostIntervals["www.example.com"].Min != 4000*time.Second {
		t.Errorf("%v, %v", s.Types, s.HostIntervals)
	}
}

// Zeros that mean none: no least interval, no growth, and a sync that moves nothing but still
// takes the age as the interval, as in Nutch.
func TestAdaptiveZeros(t *testing.T) {
	const adaptive = "db.fetch.schedule.adaptive."
	o := options(t, "db.fetch.schedule.class", "org.apache.nutch.crawl.AdaptiveFetchSchedule",
		adaptive+"inc_rate", "0", adaptive+"min_interval", "0.0", adaptive+"sync_delta_rate", "0")
	s := *o.Crawl.Schedule.(*schedule.Adaptive)
	s.NutchCompat = true
	at := time.UnixMilli(1e12)
	d := s.Fetched(crawldb.Datum{Interval: 10 * time.Second}, schedule.Visit{Time: at, Change: schedule.Unchanged, PrevModified: at.Add(-time.Hour)})
	if d.Interval != time.Hour || d.FetchTime.Sub(at) != time.Hour {
		t.Errorf("unchanged: %v, next after %v", d.Interval, d.FetchTime.Sub(at))
	}
	d = s.Fetched(crawldb.Datum{Interval: 10 * time.Second}, schedule.Visit{Time: at, Change: schedule.Changed})
	if d.Interval != 8*time.Second {
		t.Errorf("changed: %v", d.Interval)
	}
}

func TestExpressions(t *testing.T) {
	o := options(t, "generate.max.count.expr", "fetched > 100 ? 10.0 : 2.0", "generate.hostdb", "crawl/hostdb", "generate.restrict.status", "db_unfetched", "fetcher.queue.mode", "byDomain")
	if o.Crawl.Fetch.Politeness.By != hostdb.ByDomain {
		t.Error("fetcher.queue.mode has no effect")
	}
	if n, err := o.Crawl.Generate.HostLimit(&hostdb.Host{}); n != 2 || err != nil {
		t.Errorf("limit %v, %v", n, err)
	}
	o = options(t, "generate.max.count.expr", "10")
	if o.Crawl.Generate.HostLimit != nil || len(o.Notes) != 1 || !strings.Contains(o.Notes[0].Text, "without generate.hostdb") {
		t.Errorf("without a host db: %v", o.Notes)
	}
}

// What is wrong is an error that says where.
func TestMistakes(t *testing.T) {
	for _, tt := range []struct{ name, value, want string }{
		{"fetcher.threads.fetch", "ten", `"ten" is not a whole number`},
		{"fetcher.threads.fetch", "0", "0 is not above zero"},
		{"fetcher.threads.fetch", "99999999999", "does not fit into 32 bits"},
		{"fetcher.server.delay", "5s", `"5s" is not a number`},
		{"fetcher.server.delay", "NaN", `"NaN" is not a number`},
		{"fetcher.queue.mode", "byPort", `"byPort" is not one of byHost, byDomain and byIP`},
		{"db.ignore.external.links", "yes", `"yes" is neither true nor false`},
		{"db.fetch.interval.max", "0", `"0" is not above zero`},
		{"db.fetch.schedule.class", "com.example.Mine", "unknown schedule com.example.Mine"},
		{"db.signature.class", "Mine", "unknown signature Mine"},
		{"plugin.includes", "urlfilter-(regex", "missing closing )"},
		{"plugin.includes", "protocol-http|urlfilter-(regexp|prefix)|parse-html", `unknown plugin "urlfilter-regexp"; did you mean urlfilter-regex?`},
		{"plugin.includes", "protocol-http|\n  urlfilter-regex|parse-html", `unknown plugin "\n  urlfilter-regex"`},
		{"http.proxy.host", "http://proxy", `"http://proxy" is not a host name`},
		{"http.agent.name", "käfer", `"käfer" is not printable ASCII`},
		{"http.agent.name", "(...)", `"(...)" has no character that a name in robots.txt may have`},
		{"http.agent.description", "ein Käfer", `"ein Käfer" is not printable ASCII`},
		{"http.accept", "text/\x7f", "is not printable ASCII"},
		{"urlfilter.order", "org.example.Mine", "unknown class org.example.Mine"},
		{"urlfilter.regex.file", "missing.txt", "missing.txt"},
		{"urlfilter.regex.rules", "+ok\n?wrong", "line 2"},
		{"urlfilter.regex.rules", "-(?=x)", "line 1"},
		{"urlnormalizer.regex.file", "missing.xml", "missing.xml"},
		{"urlnormalizer.loop.count", "0", "0 is not above zero"},
		{"urlnormalizer.basic.host.idn", "both", `"both" is neither toAscii nor toUnicode`},
		{"generate.restrict.status", "db_nothing", "db_nothing"},
		{"generate.count.mode", "ip", `"ip" is neither host nor domain`},
		{"generate.expr", "status ==", "generate.expr"},
		{"partition.url.mode", "byMood", "byMood"},
		{"hostdb.percentiles", "NaN,50", `"NaN" is not a number from 0 to 100`},
		{"hostdb.percentiles", "50,-1", `"-1" is not a number from 0 to 100`},
		{"hostdb.percentiles", "50,101", `"101" is not a number from 0 to 100`},
		{"db.stats.score.quantiles", ".5,x", `"x" is not a number from 0 to 1`},
		{"crawldb.url.normalizers.scope", "mine", `unknown scope "mine"`},
		{"deduplication.group.mode", "page", "page"},
		{"deduplication.compare.order", "score", "fetchTime is missing, which Nutch requires"},
		{"db.fetch.schedule.adaptive.inc_rate", "-1", "-1 is negative"},
		{"db.fetch.schedule.adaptive.max_interval", "0", `"0" is not above zero`},
		{"hostdb.num.resolvers.threads", "-1", "-1 is not above zero"},
		{"hostdb.recheck.interval", "-86400000", "is not above zero"},
		{"crawl.datum.processor.overdue.time.limit", "0", "is not above zero"},
	} {
		_, err := read(t, conf(t, "http.agent.name", "testbot", tt.name, tt.value)).Options()
		if err == nil || !strings.Contains(err.Error(), "nutch-site.xml:3: "+tt.name+": ") || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s %q: %v, want line 3, the name, and %s", tt.name, tt.value, err, tt.want)
		}
	}
	c := read(t, conf(t, "linkdb.ignore.external.links", "true"))
	c.Corrected = true
	if _, err := c.Options(); err == nil || !strings.Contains(err.Error(), "nutch-site.xml:2: linkdb.ignore.external.links: together with linkdb.ignore.internal.links") {
		t.Errorf("a link db without links: %v", err)
	}
	c = read(t, conf(t, "db.fetch.schedule.adaptive.max_interval", "3600", "db.fetch.schedule.adaptive.min_interval", "7200"))
	if _, err := c.Options(); err != nil { // in Nutch the least interval goes before the greatest
		t.Error(err)
	}
	c.Corrected = true
	if _, err := c.Options(); err == nil || !strings.Contains(err.Error(), "nutch-site.xml:3: db.fetch.schedule.adaptive.min_interval: 2h0m0s is longer than") {
		t.Errorf("no interval is left: %v", err)
	}
	// Once, however often it is asked for.
	_, err := read(t, conf(t, "fetcher.queue.mode", "byPort")).Options()
	if err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("one mistake: %v", err)
	}
	// All of them at once.
	_, err = read(t, conf(t, "fetcher.threads.fetch", "x", "db.fetch.retry.max", "y")).Options()
	if err == nil || strings.Count(err.Error(), "\n") != 1 {
		t.Errorf("two mistakes: %v", err)
	}
}

func TestMistakesInFiles(t *testing.T) {
	for file, tt := range map[string]struct{ text, want string }{
		"regex-urlfilter.txt":                  {"+.\nhttp://\n", "regex-urlfilter.txt:2: "},
		"regex-normalize.xml":                  {"<regex-normalize>\n<regex><pattern>(</pattern></regex></regex-normalize>", "regex-normalize.xml:2: "},
		"adaptive-host-specific-intervals.txt": {"# hosts\nwww.example.com\n", "adaptive-host-specific-intervals.txt:2: "},
		"nutch-site.xml":                       {"<configuration>\n<property>\n</configuration>", "nutch-site.xml:3: "},
	} {
		dir := conf(t, "db.fetch.schedule.class", "AdaptiveFetchSchedule")
		write(t, filepath.Join(dir, file), tt.text)
		c, err := nutchconf.Read(dir)
		if err == nil {
			c.Corrected = true // Nutch passes over some of it
			_, err = c.Options()
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", file, err, tt.want)
		}
	}
	if _, err := nutchconf.Read(t.TempDir()); !os.IsNotExist(unwrap(err)) {
		t.Errorf("an empty directory: %v", err)
	}
}

func unwrap(err error) error {
	for {
		u, ok := err.(interface{ Unwrap() error })
		if !ok {
			return err
		}
		err = u.Unwrap()
	}
}

// Every updatedb of Nutch asks scoring-orphan, and exemptions are read again as
// other rules are.
func TestOrphansAndExemptions(t *testing.T) {
	if o := options(t); o.Crawl.Update.Sweep.Orphans || len(o.Crawl.Reload) != 0 {
		t.Errorf("%+v", o.Crawl)
	}
	dir := conf(t, "plugin.includes", "protocol-http|parse-html|urlfilter-(regex|ignoreexempt)|scoring-(opic|orphan)", "urlfilter.order", "RegexURLFilter", "db.ignore.external.links", "true")
	file := filepath.Join(dir, "db-ignore-external-exemptions.txt")
	write(t, file, "# nothing\n")
	o, err := read(t, dir).Options()
	if err != nil || !o.Crawl.Update.Sweep.Orphans || len(o.Crawl.Reload) != 1 || len(o.Notes) != 0 {
		t.Fatalf("%+v, %v", o, err)
	}
	exempt := func() bool { return o.Crawl.Fetch.Links.Exempt("http://a.example/", "http://b.example/") }
	if exempt() {
		t.Error("exempt without a rule")
	}
	write(t, file, "+b\\.example\n")
	if changed, err := o.Crawl.Reload[0].Reload(); !changed || err != nil || !exempt() {
		t.Errorf("read again: %v, %v", changed, err)
	}
}

func TestSet(t *testing.T) {
	c := read(t, conf(t, "fetcher.threads.fetch", "30"))
	c.Set("fetcher.threads.fetch", "40")
	c.Set("fetcher.threads.fetch", "")
	c.Set("no.such.thing.at.all", "1")
	dir := conf(t)
	write(t, filepath.Join(dir, "nutch-site.xml"), "<configuration><property><name>db.fetch.retry.max</name><value>5</value><final>true</final></property>"+
		"<property><name>db.fetch.retry.max</name><value>6</value></property></configuration>")
	final := read(t, dir)
	if n, _, _ := final.Get("db.fetch.retry.max"); n != "5" {
		t.Errorf("a property that is final was set again: %s", n)
	}
	final.Set("db.fetch.retry.max", "7")
	if n, _, _ := final.Get("db.fetch.retry.max"); n != "7" {
		t.Errorf("Set has no effect on a property that is final: %s", n)
	}
	o, err := c.Options()
	if err != nil || o.Crawl.Fetch.Threads != 40 || len(o.Notes) != 1 || o.Notes[0].File != "-D" {
		t.Errorf("%v, %+v", err, o)
	}
}
