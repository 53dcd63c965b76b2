package nutchconf_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/crawldb/inject"
	"github.com/recrawl/recrawl/hostdb/hoststat"
	"github.com/recrawl/recrawl/index"
	"github.com/recrawl/recrawl/internal/testlevel"
	"github.com/recrawl/recrawl/nutch/nutchconf"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/parse"
	"github.com/recrawl/recrawl/parse/htmlparse"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/httpproto"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/stores/memstore"
)

// oddWeb has a page for every property. It logs each request with its time.
type oddWeb struct {
	began time.Time
	mu    sync.Mutex
	log   []string
}

const start = `<html><head><title>Start</title><meta name=topic content=odd><meta name=keywords content=k></head><body>
<a href="/a">A</a> <a href="/a">A again, which is a long text for a link, much longer than a hundred characters, so that it has to be cut somewhere</a> <a href="/b">B</a> <a href="/changes">C</a>
<a href="/tail/">T</a> <a href="/moved">moved</a> <a href="/twice-moved">m</a> <a href="/away">away</a> <a href="/missing">missing</a>
<a href="/fails/1">f</a> <a href="/fails/2">f</a> <a href="/fails/3">f</a> <a href="/fails/4">f</a> <a href="/fails/5">f</a> <a href="/fails/6">f</a> <a href="/fails/7">f</a>
<a href="/cut">cut</a> <a href="/none">none</a> <a href="/q/?b=2&a=1">q</a> <a href="/x/?&sid=1">x</a> <a href="/pic.gif">g</a> <a href="/up/../n/./o">n</a>
<a href="http://sub.example.com/">sub</a> <a href="http://b.example/">b</a> <a href="http://slow.example/">slow</a> <a href="http://gone.example/">gone</a>
<a href="/long/LONG">long</a> <img src="/image"> <form action="/form" method=get><input name=q></form> <a href="/deep/1">deep</a> <a href="http://xn--bcher-kva.example./x">idn</a> <a href="http://fa&#223;.example/">idn</a>
<a href="/!state#!s">ajax</a> <a href="/pdf">pdf</a> <a href="/noindex">n</a> <a href="/twice">t</a> <a href="/twice/again">t</a> <a href="/twice">t</a> <a href="http://b.example/twice/x">t</a>
</body></html>`

func (w *oddWeb) Fetch(ctx context.Context, r protocol.Request) (protocol.Response, error) {
	w.mu.Lock()
	w.log = append(w.log, fmt.Sprintf("%v %s %t", time.Since(w.began).Round(time.Millisecond), r.URL, r.ETag+r.LastModified != ""))
	w.mu.Unlock()
	time.Sleep(200 * time.Millisecond)
	path := r.URL[strings.Index(r.URL, "://")+3:]
	host, path, _ := strings.Cut(path, "/")
	resp := protocol.Response{Outcome: protocol.Outcome{Code: protocol.Success, Status: 200}, Elapsed: 200 * time.Millisecond,
		Content: page.Content{URL: r.URL, Type: "text/html", Time: time.Now()}}
	body := "<html><title>" + path + "</title><body>This is " + host + " " + path + " of no interest to anybody."
	switch {
	case path == "robots.txt" && host == "slow.example":
		body = "User-agent: *\nCrawl-delay: 20\n"
		resp.Content.Type = "text/plain"
	case path == "robots.txt" && host == "b.example":
		body = "User-agent: otherbot\nDisallow: /\n"
		resp.Content.Type = "text/plain"
	case path == "robots.txt" && host == "gone.example" && time.Since(w.began) < 30*time.Hour:
		resp.Outcome = protocol.Outcome{Code: protocol.Busy, Status: 503}
	case path == "robots.txt" && host == "sub.example.com":
		resp.Outcome = protocol.Outcome{Code: protocol.Denied, Status: 403}
	case path == "twice-moved":
		resp.Outcome = protocol.Outcome{Code: protocol.MovedPerm, Status: 301, Location: "http://example.com/moved-on"}
	case path == "moved-on":
		resp.Outcome = protocol.Outcome{Code: protocol.MovedPerm, Status: 301, Location: "http://example.com/moved-to"}
	case path == "robots.txt" && host == "c.example":
		resp.Outcome = protocol.Outcome{Code: protocol.MovedPerm, Status: 301, Location: "http://c.example/rules"}
	case path == "rules":
		resp.Outcome = protocol.Outcome{Code: protocol.MovedPerm, Status: 301, Location: "http://b.example/robots.txt"}
	case path == "robots.txt" || path == "missing" || host == "gone.example" && time.Since(w.began) > 24*time.Hour:
		resp.Outcome = protocol.Outcome{Code: protocol.NotFound, Status: 404}
	case path == "s.xml" || path == "hop/0":
		resp.Content.Type = "application/xml"
		body = "<urlset><url><loc>http://example.com/a</loc><priority>0.9</priority></url><url><loc>http://example.com/only/../listed</loc></url>" +
			"<url><loc>http://example.com/listed.gif</loc></url><url><loc>http://b.example/listed</loc></url></urlset>"
		if r.MaxBytes > 0 && int64(len(body)) > r.MaxBytes {
			body, resp.Content.Truncated = body[:r.MaxBytes], true
		}
	case strings.HasPrefix(path, "hop/"):
		resp.Outcome = protocol.Outcome{Code: protocol.MovedPerm, Status: 301, Location: "http://example.com/hop/" + string(path[4]-1)}
	case strings.HasPrefix(path, "fails"):
		resp.Outcome = protocol.Outcome{Code: protocol.Failed, Status: 500}
	case path == "moved":
		resp.Outcome = protocol.Outcome{Code: protocol.MovedPerm, Status: 301, Location: "http://example.com/b"}
	case path == "away":
		resp.Outcome = protocol.Outcome{Code: protocol.MovedPerm, Status: 301, Location: "http://c.example/"}
	case path == "" && host == "example.com":
		body = strings.Replace(start, "LONG", strings.Repeat("x", 60), 1)
		if time.Since(w.began) > 60*24*time.Hour {
			body = "<html><body>There was a start."
		}
	case path == "a" || path == "b":
		body = "<html><body>The same. <a href='http://example.com/'>up</a> <a href='/b'>b</a>"
	case strings.HasPrefix(path, "twice"):
		body = "<html><body>" + strings.Repeat("Three words repeated. ", 50) + "And others that are not."
	case path == "changes":
		body = "<html><body>It is " + time.Now().String() + " <a href='http://b.example/'>b</a>"
	case path == "cut":
		resp.Content.Truncated = true
	case path == "none":
		resp.Content.Type = "application/x-none"
		body = "\x00\x01\x02\xff"
	case path == "pdf":
		resp.Content.Type = "application/pdf"
	case path == "noindex":
		body = "<html><meta name=robots content=noindex><body>Hidden."
	case strings.HasPrefix(path, "deep/"):
		body += "<a href='" + path[len("deep/"):] + "1'>deeper</a>"
	}
	if resp.Outcome.Code == protocol.Success {
		resp.Content.Body = []byte(body)
		resp.Bytes = int64(len(body))
	}
	return resp, nil
}

// documents notes what is written to an index.
type documents struct{ b *strings.Builder }

func (d documents) Write(_ context.Context, doc *index.Document) error {
	fmt.Fprintf(d.b, "add %+v\n", *doc)
	return nil
}

func (d documents) Delete(_ context.Context, url string) error {
	fmt.Fprintf(d.b, "delete %s\n", url)
	return nil
}

func (documents) Commit(context.Context) error { return nil }

// effects crawls the odd web for a year with a configuration, and returns everything that
// can be seen.
func effects(t *testing.T, c *nutchconf.Conf) string {
	t.Helper()
	var b strings.Builder
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		o, err := c.Options()
		if err != nil {
			t.Error(err)
			return
		}
		web := &oddWeb{began: time.Now()}
		db := new(memstore.DB)
		defer db.Close()
		o.Crawl.Protocol, o.Crawl.HTTP, o.Crawl.Now = web, httpproto.Options{}, time.Now
		o.Crawl.Generate.Lists.Count = 3
		o.Crawl.Fetch.Politeness.Lookup = func(_ context.Context, host string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr(fmt.Sprintf("192.0.2.%d", len(host)))}, nil
		}
		cr, err := recrawl.New(recrawl.Stores{Crawl: db.Crawl(), Hosts: db.Hosts(), Links: db.Links(), Segments: db.Segments()}, o.Crawl)
		if err != nil {
			t.Error(err)
			return
		}
		defer cr.Close()
		o.Inject.Now = time.Now
		seeds := "http://example.com/\ttag=one\tother=two\nhttp://example.com/deep/\thttp://example.com/seed\nhttp://example.com/missing\nhttp://b.example/x/\tnutch.score=0.001\n"
		for round, pause := range []time.Duration{1, 25, 38 * 24, 45 * 24, 100 * 24, 60 * 24, 0} {
			if round == 0 || round == 4 {
				r, err := cr.InjectSeeds(ctx, inject.Read(strings.NewReader(seeds)), o.Inject)
				fmt.Fprintf(&b, "%+v, %v\n", r, err)
			}
			r, err := cr.Round(ctx)
			if err != nil {
				t.Error(err)
				return
			}
			fmt.Fprintf(&b, "%+v\n", r)
			for _, name := range r.Segments {
				for d, err := range segment.Records[crawldb.Datum](ctx, db.Segments(), name) {
					turn, e := segment.TakePlacement(&d)
					fmt.Fprintf(&b, "%+v of %+v, %v, %v\n", turn, d, err, e)
				}
				for c, err := range segment.Records[page.Content](ctx, db.Segments(), name) {
					fmt.Fprintf(&b, "content of %s: %d bytes, %v\n", c.URL, len(c.Body), err)
				}
				for d, err := range segment.Records[segment.Data](ctx, db.Segments(), name) {
					fmt.Fprintf(&b, "%+v, %v\n", d, err)
				}
			}
			o.Hosts.Now, o.Hosts.CheckNew, o.Hosts.CheckFailed, o.Hosts.CheckKnown = time.Now, true, true, true
			o.Hosts.Lookup = func(_ context.Context, host string) ([]netip.Addr, error) {
				web.mu.Lock()
				web.log = append(web.log, fmt.Sprintf("%v lookup %s", time.Since(web.began), host))
				web.mu.Unlock()
				time.Sleep(time.Second)
				if host == "gone.example" {
					return nil, errors.New("no such host")
				}
				return []netip.Addr{netip.MustParseAddr("192.0.2.1")}, nil
			}
			h, err := hoststat.Run(ctx, db.Crawl(), db.Hosts(), o.Hosts)
			fmt.Fprintf(&b, "%+v, %v\n", h, err)
			time.Sleep(pause * time.Hour)
		}
		o.Sitemaps.Sources = func(yield func(string, error) bool) {
			_ = yield("http://example.com/s.xml", nil) && yield("http://example.com/hop/3", nil) && yield("c.example", nil)
		}
		sitemaps, err := cr.ReadSitemaps(ctx, o.Sitemaps)
		fmt.Fprintf(&b, "%+v, %v\n", sitemaps, err)
		o.Index.Filter = func(_ context.Context, d *index.Document) (bool, error) { return d.URL != "http://example.com/b", nil }
		i, err := index.Run(ctx, db.Crawl(), db.Links(), db.Segments(), documents{&b}, o.Index)
		fmt.Fprintf(&b, "%+v, %v\n", i, err)
		for d, err := range db.Crawl().Scan(ctx, crawldb.Range{}) {
			fmt.Fprintf(&b, "%+v, %v\n", d, err)
		}
		for e, err := range db.Links().Scan(ctx, crawldb.Range{}) {
			fmt.Fprintf(&b, "%+v, %v\n", e, err)
		}
		for h, err := range db.Hosts().Scan(ctx) {
			fmt.Fprintf(&b, "%+v, %v\n", h, err)
		}
		b.WriteString(strings.Join(web.log, "\n"))
	})
	lines := strings.Split(b.String(), "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// Every property that is honoured makes another crawl of one. In the quick form a fourth of them is
// tried.
func TestEveryPropertyHasAnEffect(t *testing.T) {
	dir := effectsDir(t)
	const (
		classes = "org.apache.nutch."
		nutch   = "protocol-http|urlfilter-regex|parse-(html|tika)|index-(basic|anchor)|indexer-solr|scoring-opic|urlnormalizer-(pass|regex|basic)"
		also    = nutch + "|"
		plugins = "plugin.includes"
		inc     = "db.fetch.schedule.adaptive."
	)
	inSync := []string{"db.fetch.schedule.class", classes + "crawl.AdaptiveFetchSchedule"}
	adaptive := append(inSync[:2:2], inc+"sync_delta", "false")
	mime := []string{"db.fetch.schedule.class", classes + "crawl.MimeAdaptiveFetchSchedule", inc + "sync_delta", "false"}
	profile := []string{"db.signature.class", classes + "crawl.TextProfileSignature"}
	type try struct {
		name, value string
		with        []string
	}
	tried, done := map[string][]try{}, map[string]bool{}
	for _, tt := range []try{
		{"http.agent.name", "otherbot", nil},
		{"http.robots.agents", "somebot, otherbot", nil},
		{"http.robot.rules.allowlist", "slow.example", nil},
		{"http.robots.403.allow", "false", nil},
		{"http.robots.503.defer.visits.delay", "600000", nil},
		{"http.robots.503.defer.visits.retries", "1", nil},
		{"fetcher.server.delay", "2.5", nil},
		{"fetcher.max.crawl.delay", "10", nil},
		{"fetcher.threads.fetch", "1", nil},
		{"fetcher.threads.per.queue", "3", nil},
		{"fetcher.server.min.delay", "1.5", []string{"fetcher.threads.per.queue", "3"}},
		{"fetcher.min.crawl.delay", "25", nil},
		{"fetcher.exceptions.per.queue.delay", "60", nil},
		{"fetcher.exceptions.per.queue.clear.after", "100000000", nil},
		{"fetcher.bandwidth.target", "1", nil},
		{"fetcher.queue.mode", "byDomain", nil},
		{"fetcher.parse", "true", []string{"db.score.count.filtered", "true"}},
		{"fetcher.store.content", "false", nil},
		{"http.redirect.max", "1", nil},
		{"http.redirect.max.exceeded.skip", "true", []string{"http.redirect.max", "1"}},
		{"http.robots.redirect.max", "1", nil},
		{"sitemap.strict.parsing", "false", nil},
		{"sitemap.url.filter", "false", nil},
		{"sitemap.url.normalize", "false", nil},
		{"sitemap.url.default.sitemap.xml", "false", nil},
		{"sitemap.url.overwrite.existing", "true", nil},
		{"sitemap.redir.max", "1", nil},
		{"sitemap.size.max", "100", nil},
		{"fetcher.max.exceptions.per.queue", "2", nil},
		{"fetcher.timelimit.mins", "1", nil},
		{"fetcher.throughput.threshold.pages", "1", []string{"fetcher.throughput.threshold.check.after", "0"}},
		{"fetcher.throughput.threshold.retries", "20", []string{"fetcher.throughput.threshold.check.after", "0", "fetcher.throughput.threshold.pages", "1"}},
		{"fetcher.throughput.threshold.check.after", "0", []string{"fetcher.throughput.threshold.pages", "1"}},
		{"fetcher.follow.outlinks.depth", "2", []string{"fetcher.parse", "true"}},
		{"fetcher.follow.outlinks.num.links", "1", []string{"fetcher.parse", "true", "fetcher.follow.outlinks.depth", "1"}},
		{"fetcher.follow.outlinks.ignore.external", "false", []string{"fetcher.parse", "true", "fetcher.follow.outlinks.depth", "1", "fetcher.follow.outlinks.num.links", "40"}},
		{"fetcher.normalize.urls", "true", []string{"parse.normalize.urls", "false", "urlfilter.regex.rules", "+."}},
		{"fetcher.queue.depth.multiplier", "1", []string{"fetcher.threads.fetch", "2"}},
		{"parser.html.form.use_action", "true", nil},
		{"parser.html.outlinks.ignore_tags", "img", nil},
		{"parse.filter.urls", "false", nil},
		{"parse.normalize.urls", "false", nil},
		{"parser.skip.truncated", "false", nil},
		{"http.enable.if.modified.since.header", "false", nil},
		{"db.fetch.interval.default", "86400", nil},
		{"db.fetch.interval.max", "2000000", nil},
		{"db.fetch.schedule.class", classes + "crawl.AdaptiveFetchSchedule", nil},
		{inc + "inc_rate", "0.5", adaptive},
		{inc + "dec_rate", "0.5", adaptive},
		{inc + "min_interval", "2500000.5", adaptive},
		{inc + "max_interval", "3000000.0", adaptive},
		{inc + "sync_delta", "false", inSync},
		{inc + "sync_delta_rate", "0.1", inSync},
		{"db.fetch.schedule.mime.file", "mime.txt", mime},
		{"db.update.additions.allowed", "false", nil},
		{"db.update.purge.404", "true", nil},
		{"db.update.purge.orphans", "true", []string{plugins, also + "scoring-orphan", "scoring.orphan.mark.orphan.after", "2000000"}},
		{"crawldb.url.normalizers", "true", []string{"urlfilter.regex.rules", "+.", "parse.normalize.urls", "false"}},
		{"crawldb.url.filters", "true", []string{"parse.filter.urls", "false"}},
		{"crawldb.url.normalizers.scope", "inject", []string{"crawldb.url.normalizers", "true", "urlfilter.regex.rules", "+.", "parse.normalize.urls", "false", "urlnormalizer.scope.inject", "PassURLNormalizer"}},
		{"db.update.max.inlinks", "1", nil},
		{"db.ignore.internal.links", "true", nil},
		{"db.ignore.external.links", "true", nil},
		{"db.ignore.also.redirects", "false", []string{"db.ignore.external.links", "true"}},
		{"db.ignore.external.links.mode", "byDomain", []string{"db.ignore.external.links", "true"}},
		{"db.ignore.external.exemptions.file", "exempt.txt", []string{"db.ignore.external.links", "true", plugins, also + "urlfilter-ignoreexempt"}},
		{"db.score.injected", "2.0", nil},
		{"db.score.link.external", "0.5", nil},
		{"db.score.link.internal", "0.5", nil},
		{"db.score.count.filtered", "true", nil},
		{"db.max.outlinks.per.page", "5", nil},
		{"db.max.outlink.length", "50", nil},
		{"db.parsemeta.to.crawldb", "topic", nil},
		{"db.fetch.retry.max", "1", nil},
		{"db.signature.class", classes + "crawl.TextMD5Signature", nil},
		{"db.signature.text_profile.min_token_len", "5", profile},
		{"db.signature.text_profile.quant_rate", "0.9", profile},
		{"db.signature.text_profile.sec_sort_lex", "false", profile},
		{"linkdb.max.inlinks", "1", []string{"linkdb.ignore.internal.links", "false"}},
		{"linkdb.ignore.internal.links", "false", nil},
		{"linkdb.ignore.external.links", "true", []string{"linkdb.ignore.internal.links", "false"}},
		{"linkdb.max.anchor.length", "3", []string{"linkdb.ignore.internal.links", "false"}},
		{"generate.max.count", "3", nil},
		{"generate.count.mode", "domain", []string{"generate.max.count", "3"}},
		{"generate.min.score", "0.01", nil},
		{"generate.min.interval", "2000000", nil},
		{"generate.fetch.delay.expr", "12000.0", []string{"generate.hostdb", "crawl/hostdb"}},
		{"generate.max.count.expr", "2.0", []string{"generate.hostdb", "crawl/hostdb"}},
		{"generate.hostdb", "crawl/hostdb", []string{"generate.max.count.expr", "2.0"}},
		{"generate.restrict.status", "db_unfetched", nil},
		{"generate.expr", "url.contains('deep')", nil},
		{"crawl.gen.delay", "1000", []string{"fetcher.max.exceptions.per.queue", "2"}},
		{"partition.url.mode", "byIP", nil},
		{"partition.url.seed", "7", nil},
		{"hostdb.recheck.interval", "8640000000", nil},
		{"hostdb.purge.failed.hosts.threshold", "1", nil},
		{"hostdb.num.resolvers.threads", "1", nil},
		{"hostdb.force.check", "true", nil},
		{"hostdb.url.filter", "true", []string{"urlfilter.regex.rules", "-^http://b.example/$\n+."}},
		{"hostdb.url.normalize", "true", []string{plugins, also + "urlnormalizer-host", "urlnormalizer.scope.inject", "BasicURLNormalizer", "urlnormalizer.scope.outlink", "BasicURLNormalizer", "urlnormalizer.hosts.rules", "b.example c.example"}},
		{"hostdb.url.limit", "3", nil},
		{"hostdb.numeric.fields", "no", nil},
		{"hostdb.string.fields", "no", nil},
		{"hostdb.percentiles", "1", nil},
		{"crawl.datum.processor.overdue.time.limit", "36000000000", []string{"generate.max.count", "3"}},
		{"deduplication.group.mode", "host", nil},
		{"deduplication.compare.order", "fetchTime,score,urlLength", nil},
		{"scoring.filter.order", classes + "scoring.depth.DepthScoringFilter", []string{plugins, also + "scoring-depth"}},
		{"scoring.depth.max", "3", []string{plugins, also + "scoring-depth"}},
		{"scoring.depth.override.pattern", "deep", []string{plugins, also + "scoring-depth"}},
		{"scoring.depth.max.override", "3", []string{plugins, also + "scoring-depth", "scoring.depth.override.pattern", "deep"}},
		{"scoring.orphan.mark.gone.after", "15000000", []string{plugins, also + "scoring-orphan", "scoring.orphan.mark.orphan.after", "20000000"}},
		{"scoring.orphan.mark.orphan.after", "20000000", []string{plugins, also + "scoring-orphan"}},
		{"scoring.db.md", "tag", []string{plugins, also + "scoring-metadata", "scoring.content.md", "tag", "scoring.parse.md", "tag"}},
		{"scoring.parse.md", "tag", []string{plugins, also + "scoring-metadata", "scoring.db.md", "tag", "scoring.content.md", "tag"}},
		{"urlmeta.tags", "tag", []string{plugins, also + "urlmeta"}},
		{"link.analyze.normalize.score", "3", []string{plugins, strings.Replace(nutch, "opic", "link", 1)}},
		{plugins, nutch + "|scoring-depth", nil},
		{"plugin.excludes", "urlfilter-regex", nil},
		{"urlfilter.order", classes + "urlfilter.validator.UrlValidator", []string{plugins, also + "urlfilter-validator"}},
		{"urlfilter.regex.file", "one.txt", nil},
		{"urlfilter.regex.rules", "+deep", nil},
		{"urlfilter.automaton.file", "one.txt", []string{plugins, also + "urlfilter-automaton"}},
		{"urlfilter.automaton.rules", "+.*deep.*", []string{plugins, also + "urlfilter-automaton"}},
		{"urlfilter.prefix.file", "list.txt", []string{plugins, also + "urlfilter-prefix"}},
		{"urlfilter.prefix.rules", "http://a", []string{plugins, also + "urlfilter-prefix"}},
		{"urlfilter.suffix.file", "list.txt", []string{plugins, also + "urlfilter-suffix"}},
		{"urlfilter.suffix.rules", "-\n/", []string{plugins, also + "urlfilter-suffix"}},
		{"urlfilter.domain.file", "hosts.txt", []string{plugins, also + "urlfilter-domain"}},
		{"urlfilter.domain.rules", "example.com", []string{plugins, also + "urlfilter-domain"}},
		{"urlfilter.domaindenylist.file", "hosts.txt", []string{plugins, also + "urlfilter-domaindenylist"}},
		{"urlfilter.domaindenylist.rules", "b.example", []string{plugins, also + "urlfilter-domaindenylist"}},
		{"urlfilter.fast.file", "fast.txt", []string{plugins, also + "urlfilter-fast"}},
		{"urlfilter.fast.url.max.length", "40", []string{plugins, also + "urlfilter-fast"}},
		{"urlfilter.fast.url.path.max.length", "10", []string{plugins, also + "urlfilter-fast"}},
		{"urlfilter.fast.url.query.max.length", "3", []string{plugins, also + "urlfilter-fast", "urlfilter.regex.rules", "+."}},
		{"urlnormalizer.order", "QuerystringURLNormalizer", []string{plugins, also + "urlnormalizer-querystring", "urlfilter.regex.rules", "+.", "urlnormalizer.regex.file", "order.xml"}},
		{"urlnormalizer.order.<scope>", "QuerystringURLNormalizer", []string{plugins, also + "urlnormalizer-querystring", "urlfilter.regex.rules", "+.", "urlnormalizer.regex.file", "order.xml"}},
		{"urlnormalizer.scope.<scope>", "PassURLNormalizer", nil},
		{"urlnormalizer.loop.count", "3", []string{"urlnormalizer.regex.file", "loop.xml"}},
		{"urlnormalizer.regex.file", "loop.xml", nil},
		{"urlnormalizer.regex.file.<scope>", "loop.xml", nil},
		{"urlnormalizer.regex.rules", "<regex-normalize><regex><pattern>deep</pattern><substitution>d</substitution></regex></regex-normalize>", nil},
		{"urlnormalizer.basic.host.idn", "toUnicode", nil},
		{"urlnormalizer.basic.host.idna2008", "true", []string{"urlnormalizer.basic.host.idn", "toAscii"}},
		{"urlnormalizer.basic.host.trim-trailing-dot", "true", nil},
		{"urlnormalizer.protocols.file", "https.txt", []string{plugins, also + "urlnormalizer-protocol"}},
		{"urlnormalizer.protocols.rules", "b.example https", []string{plugins, also + "urlnormalizer-protocol"}},
		{"urlnormalizer.hosts.file", "renamed.txt", []string{plugins, also + "urlnormalizer-host"}},
		{"urlnormalizer.hosts.rules", "b.example c.example", []string{plugins, also + "urlnormalizer-host"}},
		{"urlnormalizer.slashes.file", "tails.txt", []string{plugins, also + "urlnormalizer-slash"}},
		{"urlnormalizer.slashes.rules", "example.com -", []string{plugins, also + "urlnormalizer-slash"}},
		{"indexer.delete", "true", nil},
		{"indexer.delete.robots.noindex", "true", nil},
		{"indexer.delete.skipped.by.indexingfilter", "true", nil},
		{"indexer.skip.notmodified", "true", nil},
		{"indexer.score.power", "1", nil},
	} {
		done[tt.name] = true
		with := strings.Join(tt.with, "=")
		tried[with] = append(tried[with], try{strings.Replace(tt.name, "<scope>", "outlink", 1), tt.value, tt.with})
	}
	for i, with := range slices.Sorted(maps.Keys(tried)) {
		if i%testlevel.Pick(3, 1) != 0 {
			continue
		}
		tries := tried[with]
		t.Run(tries[0].name, func(t *testing.T) {
			t.Parallel()
			run := func(sets ...string) string {
				c := read(t, dir)
				for i := 0; i+1 < len(sets); i += 2 {
					c.Set(sets[i], sets[i+1])
				}
				return effects(t, c)
			}
			before := run(tries[0].with...)
			if len(tries[0].with) == 0 && run() != before {
				t.Error("two crawls differ")
			}
			for i, tt := range tries {
				if i%testlevel.Pick(4, 1) != 0 {
					continue
				}
				if run(append(slices.Clone(tt.with), tt.name, tt.value)...) == before {
					t.Errorf("%s=%s has no effect", tt.name, tt.value)
				}
			}
		})
	}
	for _, name := range elsewhere() {
		if done[name] {
			t.Errorf("%s is tried twice", name)
		}
		done[name] = true
	}
	for _, p := range nutchconf.Properties() {
		if p.Support != nutchconf.NotHonoured && !done[p.Name] {
			t.Errorf("%s: not tried", p.Name)
		}
	}
}

// elsewhere are the properties that the odd web cannot show: those of the client
// for HTTP, and of what takes more than a web.
func elsewhere() []string {
	names := []string{
		"parser.timeout", "parser.delete.failed.parse", // no page fails
		"scoring.content.md",                                                               // scoring.parse.md finds the same without it
		"http.proxy.host", "http.proxy.port", "http.proxy.username", "http.proxy.password", // package httpproto has one
		"http.auth.file", "http.agent.host.cookie.file", "http.enable.cookie.header", // TestSecretsGoWhereTheyBelong
		"fetcher.signature",   // every round parses
		"fetcher.filter.urls", // generate has asked the same filters
		"http.store.responsetime", "db.stats.score.quantiles", "file.content.limit", "anchorIndexingFilter.deduplicate",
	}
	for _, tt := range clientProperties() {
		names = append(names, tt[0])
	}
	return names
}

func clientProperties() [][2]string {
	return [][2]string{
		{"http.agent.description", "a test"}, {"http.agent.url", "http://bot.example/"}, {"http.agent.email", "bot at bot.example"}, {"http.agent.version", "7"},
		{"http.accept", "text/plain"}, {"http.accept.language", "de"}, {"http.content.limit", "5"}, {"http.timeout", "50"}, {"http.time.limit", "1"},
		{"http.tls.certificates.check", "true"},
		{"http.filter.ipaddress.include", "192.0.2.0/24, 198.51.100.7"}, {"http.filter.ipaddress.exclude", "LocalHost"},
	}
}

// Requests are made as the configuration says.
func TestClientProperties(t *testing.T) {
	t.Parallel()
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/late":
			time.Sleep(200 * time.Millisecond)
		case "/endless":
			fmt.Fprint(w, "begun")
			w.(http.Flusher).Flush()
			select {
			case <-r.Context().Done():
			case <-time.After(1500 * time.Millisecond):
			}
		}
		fmt.Fprintf(w, "%q", []string{r.UserAgent(), r.Header.Get("Accept"), r.Header.Get("Accept-Language")})
	})
	plain, secure := httptest.NewServer(handler), httptest.NewTLSServer(handler)
	defer plain.Close()
	defer secure.Close()
	dir := effectsDir(t)
	run := func(sets ...string) string {
		c := read(t, dir)
		for i := 0; i+1 < len(sets); i += 2 {
			c.Set(sets[i], sets[i+1])
		}
		o, err := c.Options()
		if err != nil {
			t.Error(err)
			return ""
		}
		o.Crawl.HTTP.Guard.AllowPrivate = true
		client, err := httpproto.New(o.Crawl.HTTP)
		if err != nil {
			t.Error(err)
			return ""
		}
		defer client.Close()
		all := ""
		for _, url := range []string{plain.URL, plain.URL + "/late", plain.URL + "/endless", secure.URL} {
			r, err := client.Fetch(t.Context(), protocol.Request{URL: url})
			all += fmt.Sprintf("%v %q %v %v\n", r.Outcome.Code, r.Content.Body, r.Content.Truncated, err)
		}
		return all
	}
	before := run()
	var wg sync.WaitGroup
	for _, tt := range clientProperties() {
		wg.Go(func() {
			if run(tt[0], tt[1]) == before {
				t.Errorf("%s=%s has no effect", tt[0], tt[1])
			}
		})
	}
	wg.Wait()
}

// What no crawl of a small web shows sets what it is to set.
func TestOtherProperties(t *testing.T) {
	c := read(t, conf(t, "http.agent.name", "testbot", "parser.timeout", "7", "parser.delete.failed.parse", "true", "fetcher.parse", "true", "http.store.responsetime", "false", "fetcher.filter.urls", "true", "fetcher.signature", "true",
		"http.proxy.host", "proxy.example", "http.proxy.port", "3128", "http.proxy.username", "me", "http.proxy.password", "p@ss",
		"db.stats.score.quantiles", ".5,.25", "file.content.limit", "9", "plugin.includes", "protocol-http|parse-html|urlfilter-regex|scoring-metadata", "scoring.content.md", "a , b"))
	c.Corrected = true
	o, err := c.Options()
	if err != nil {
		t.Fatal(err)
	}
	if !o.Crawl.Fetch.FilterList || !o.Crawl.Fetch.Parsing.SignUnparsed || o.Crawl.Fetch.NormalizeList {
		t.Errorf("%+v", o.Crawl.Fetch)
	}
	if o.Crawl.HTTP.Proxy != "http://me:p%40ss@proxy.example:3128" {
		t.Errorf("the proxy is %q", o.Crawl.HTTP.Proxy)
	}
	parser := o.Crawl.Parser.(parse.Mux)["text/html"].(*htmlparse.Parser)
	if parser.Timeout != 7*time.Second || o.Crawl.Fetch.Parsing.Timeout != 7*time.Second || !o.Crawl.Update.ParseFailed || o.Index.DeleteFailedParse != index.SwitchOf(true) || o.Crawl.Update.VisitMeta ||
		!slices.Equal(o.Quantiles, []float64{.5, .25}) || o.File.MaxBytes != 9 || !slices.Equal(o.Crawl.Scoring.(*scoring.Metadata).Content, []string{"a", "b"}) {
		t.Errorf("%+v, %+v", parser, o)
	}
}

func effectsDir(t *testing.T) string {
	dir := t.TempDir()
	for _, from := range []string{"testdata/everything", "testdata/stock"} {
		if err := os.CopyFS(dir, os.DirFS(from)); err != nil && !errors.Is(err, os.ErrExist) {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{
		"nutch-site.xml": site("http.agent.name", "testbot"),
		"mime.txt":       "application/pdf\t0.3\t0.3\n",
		"exempt.txt":     "+b\\.example\n",
		"one.txt":        "-.*deep.*\n+.*\n",
		"list.txt":       "http://a\n",
		"hosts.txt":      "example.com\n",
		"fast.txt":       "Domain .\nDenyPath deep\n",
		"order.xml":      "<regex-normalize><regex><pattern>a=1</pattern><substitution>c=1</substitution></regex></regex-normalize>",
		"loop.xml":       "<regex-normalize><regex><pattern>xx</pattern><substitution>x</substitution></regex></regex-normalize>",
		"https.txt":      "b.example\thttps\n",
		"renamed.txt":    "b.example c.example\n",
		"tails.txt":      "example.com -\n",
	} {
		write(t, filepath.Join(dir, name), text)
	}
	return dir
}
