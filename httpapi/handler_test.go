package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/crawldb/groups"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/page/diff"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/stores/memstore"
)

// site is a web of a few pages, some with scripts that a page of the handler must not run.
type site struct {
	version int
}

const hostileTitle = `</title><script>document.title='pwned'</script><img src=x onerror="document.title='pwned'">`

func (s *site) Fetch(_ context.Context, req protocol.Request) (protocol.Response, error) {
	r := protocol.Response{Outcome: protocol.Outcome{Code: protocol.Success, Status: 200}}
	html := func(title, body string) {
		r.Content = page.Content{URL: req.URL, Type: "text/html; charset=utf-8", Time: time.Now(), Body: []byte("<html><head><title>" + title + "</title></head><body>" + body + "</body></html>")}
		r.Bytes = int64(len(r.Content.Body))
	}
	u, _ := url.Parse(req.URL)
	switch {
	case u.Path == "/robots.txt":
		r.Outcome = protocol.Outcome{Code: protocol.NotFound, Status: 404}
	case u.Path == "/":
		html("Home of "+u.Host, `<p>Welcome to the harbour office, version `+fmt.Sprint(s.version)+`, of the old town by the sea.</p>
<a href="/hostile?q=%3Cscript%3Ealert(1)%3C/script%3E">&lt;script&gt;alert(1)&lt;/script&gt;</a> <a href="javascript:alert(1)">js</a>
<a href="/broken">broken</a> <a href="/secret">secret</a> <a href="/moved">moved</a>`)
	case u.Path == "/hostile":
		html(strings.NewReplacer("<", "&lt;", ">", "&gt;", `"`, "&quot;").Replace(hostileTitle), "<p>&lt;script&gt;document.title='pwned'&lt;/script&gt; &lt;svg onload=alert(1)&gt; {{.}} \u202e reversed</p>")
	case u.Path == "/secret":
		html("Secret", `<meta name="robots" content="noarchive"><p>Keep this text to yourself.</p>`)
	case u.Path == "/moved":
		r.Outcome = protocol.Outcome{Code: protocol.MovedPerm, Status: 301, Location: "https://" + u.Host + "/"}
	default:
		r.Outcome = protocol.Outcome{Code: protocol.Failed, Status: 500, Reason: "status 500: <script>alert(2)</script>"}
	}
	return r, nil
}

// fixture is a small crawl that was made, and a handler of it.
type fixture struct {
	*Handler
	site    *site
	now     time.Time
	crawler *recrawl.Crawler
	stores  recrawl.Stores
}

func newFixture(t testing.TB, adjust func(*Options)) *fixture {
	t.Helper()
	f := &fixture{site: &site{version: 1}, now: time.Date(2026, 11, 1, 8, 0, 0, 0, time.UTC)}
	db := &memstore.DB{}
	f.stores = recrawl.Stores{Crawl: db.Crawl(), Hosts: db.Hosts(), Links: db.Links(), Segments: db.Segments()}
	var err error
	f.crawler, err = recrawl.New(f.stores, recrawl.Options{
		Agent: "testbot", Protocol: f.site, Schedule: schedule.Learned{Budget: 50},
		Fetch: fetch.Options{Politeness: fetch.Politeness{Delay: -1, FailureDelay: -1}}, Now: func() time.Time { return f.now },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.crawler.Close(); db.Close() })
	if _, err := f.crawler.Inject(t.Context(), "https://harbour.example/", "https://town.example/"); err != nil {
		t.Fatal(err)
	}
	f.round(t)
	f.round(t)
	for range 4 {
		f.site.version++
		f.now = f.now.AddDate(0, 0, 4)
		f.round(t)
	}
	o := Options{Crawler: f.crawler, Stores: f.stores, Now: func() time.Time { return f.now }}
	if adjust != nil {
		adjust(&o)
	}
	if f.Handler, err = New(o); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *fixture) round(t testing.TB) {
	t.Helper()
	if _, err := f.crawler.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// request makes a request and returns the answer.
func (f *fixture) request(t testing.TB, method, target, body string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(method, target, strings.NewReader(body)).WithContext(t.Context())
	r.Host = "localhost:8080"
	if body != "" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	if h := r.Header.Get("Host"); h != "" {
		r.Host = h
	}
	w := httptest.NewRecorder()
	f.ServeHTTP(w, r)
	return w
}

// get decodes what a path has as JSON.
func get[T any](t testing.TB, f *fixture, target string) (v T) {
	t.Helper()
	w := f.request(t, "GET", target, "", "Accept", "application/json")
	if w.Code != 200 {
		t.Fatalf("%s: %d %s", target, w.Code, w.Body)
	}
	d := json.NewDecoder(w.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", target, err)
	}
	return v
}

const hostileURL = "https://harbour.example/hostile?q=%3Cscript%3Ealert(1)%3C/script%3E"

// paths are all pages, with parameters for which they have something to show.
func paths() []string {
	return []string{
		"/", "/?refresh=10", "/hosts", "/hosts/harbour.example", "/urls", "/urls?status=fetched&q=harbour.example", "/urls?only=seeds",
		"/url?u=" + url.QueryEscape("https://harbour.example/"), "/url?u=" + url.QueryEscape(hostileURL), "/url?u=" + url.QueryEscape("https://harbour.example/broken"),
		"/url?u=" + url.QueryEscape("javascript:alert(1)"), "/url?u=" + url.QueryEscape("https://nowhere.example/"),
		"/search?q=harbour+office", "/search?q=" + url.QueryEscape("<script>"), "/changes", "/changes?kind=changed&since=2026-11-02", "/schedule", "/schedule?budget=100",
		"/consumers", "/controls", "/controls?done=seeds&n=2",
	}
}

// No page has anything of a crawled page that is not escaped, and each has what makes browsers run
// nothing.
func TestPagesEscapeWhatWasCrawled(t *testing.T) {
	f := newFixture(t, func(o *Options) { o.Guard.Authorize = Allow(Actions()...) })
	if _, err := f.crawler.AddConsumer(t.Context(), "index", recrawl.ConsumerOptions{Start: recrawl.StartAtBeginning}); err != nil {
		t.Fatal(err)
	}
	for _, path := range paths() {
		w := f.request(t, "GET", path, "")
		text := w.Body.String()
		if w.Code != 200 {
			t.Errorf("%s: %d", path, w.Code)
		}
		checkInert(t, path, text)
		if csp := w.Header().Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "script-src") || strings.Contains(csp, "unsafe") {
			t.Errorf("%s: %q", path, csp)
		}
		for _, want := range []string{`<html lang="en">`, `href="#main"`, "<main id=\"main\"", "<h1", "<nav aria-label"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s has no %s", path, want)
			}
		}
		// Each field of a form has a label.
		for _, field := range regexp.MustCompile(`<(?:input|select|textarea) [^>]*>`).FindAllString(text, -1) {
			id := regexp.MustCompile(`id="([^"]*)"`).FindStringSubmatch(field)
			if !strings.Contains(field, `type="hidden"`) && (id == nil || strings.Count(text, `<label for="`+id[1]+`"`) != 1) {
				t.Errorf("%s: %s has no label", path, field)
			}
		}
		if ids := regexp.MustCompile(` id="([^"]*)"`).FindAllString(text, -1); len(ids) != len(slices.Compact(slices.Sorted(slices.Values(ids)))) {
			t.Errorf("%s has an id twice", path)
		}
		if external := regexp.MustCompile(`(?:src|<link[^>]* href)="(?:https?:)?//`).FindString(text); external != "" {
			t.Errorf("%s loads from elsewhere: %s", path, external)
		}
	}
}

// checkInert checks that a page has nothing that runs or loads anything.
func checkInert(t *testing.T, path, text string) {
	t.Helper()
	elements := map[string]bool{}
	for z := html.NewTokenizer(strings.NewReader(text)); z.Next() != html.ErrorToken; {
		token := z.Token()
		if token.Type != html.StartTagToken && token.Type != html.SelfClosingTagToken {
			continue
		}
		elements[token.Data] = true
		for _, a := range token.Attr {
			u, err := url.Parse(a.Val)
			switch {
			case strings.HasPrefix(a.Key, "on") || a.Key == "style" || a.Key == "src" || strings.Contains(a.Val, "ZgotmplZ"):
				t.Errorf("%s: <%s %s=%q>", path, token.Data, a.Key, a.Val)
			case (a.Key == "href" || a.Key == "action") && (err != nil || u.Scheme != "" && u.Scheme != "https"):
				t.Errorf("%s: <%s %s=%q>, %v", path, token.Data, a.Key, a.Val, err)
			}
		}
	}
	for _, bad := range []string{"script", "img", "iframe", "object", "embed", "base"} {
		if elements[bad] {
			t.Errorf("%s has <%s>", path, bad)
		}
	}
}

// Each page is there as JSON, under three names, with the fields that the OpenAPI document names.
func TestPagesAreJSONToo(t *testing.T) {
	f := newFixture(t, nil)
	for _, path := range paths() {
		asked := f.request(t, "GET", path, "", "Accept", "application/json")
		name, query, _ := strings.Cut(path, "?")
		if name == "/" {
			name = "/index"
		}
		named := f.request(t, "GET", name+".json?"+query, "")
		formatted := f.request(t, "GET", path+map[bool]string{true: "&", false: "?"}[strings.Contains(path, "?")]+"format=json", "")
		if asked.Code != 200 || named.Body.String() != asked.Body.String() || formatted.Body.String() != asked.Body.String() {
			t.Errorf("%s: %d, %d, %d\n%s", path, asked.Code, named.Code, formatted.Code, named.Body)
		}
		if kind := asked.Header().Get("Content-Type"); kind != "application/json" {
			t.Errorf("%s: %s", path, kind)
		}
		if !json.Valid(asked.Body.Bytes()) {
			t.Errorf("%s is not valid JSON", path)
		}
	}
	o := get[overview](t, f, "/")
	if o.Freshness == nil || len(o.Points) < 2 || len(o.Failures) == 0 || o.Failures[0].Outcome != "failed" || len(o.Changes) == 0 {
		t.Errorf("%+v", o)
	}
	if s := get[scheduleReport](t, f, "/schedule?budget=100"); s.Asked != 100 {
		t.Errorf("%+v", s)
	}
	if r := get[searchResult](t, f, "/search?q=harbour+office"); len(r.Hits) == 0 || !strings.Contains(r.Hits[0].Snippet, "harbour office") {
		t.Errorf("%+v", r)
	}
	for path, status := range map[string]int{"/nothing": 404, "/hosts/nowhere.example": 404, "/url": 400, "/urls?status=x": 400, "/changes?after=x": 400, "/changes?since=x": 400, "/schedule?budget=-1": 400} {
		if w := f.request(t, "GET", path, ""); w.Code != status {
			t.Errorf("%s: %d", path, w.Code)
		}
		w := f.request(t, "GET", path, "", "Accept", "application/json")
		var got failure
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != status || got.Status != status || got.Error == "" {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

// The story of a URL has its visits, links and the last change, but no copy of a page that asks for none.
func TestStory(t *testing.T) {
	f := newFixture(t, nil)
	s := get[story](t, f, "/url?u="+url.QueryEscape("https://harbour.example/"))
	if s.Record == nil || s.Title != "Home of harbour.example" || len(s.Visits) < 4 || s.Visits[0].Kind != "changed" || len(s.Outlinks) == 0 || s.Verdict == "" || s.Worth == nil {
		t.Errorf("%+v", s)
	}
	var removed, added string
	for _, p := range s.Diff {
		switch p.Op {
		case diff.Removed:
			removed += p.Text
		case diff.Added:
			added += p.Text
		}
	}
	if strings.TrimSpace(removed) != "4," || strings.TrimSpace(added) != "5," {
		t.Errorf("diff: %+v", s.Diff)
	}
	s = get[story](t, f, "/url?u="+url.QueryEscape("https://harbour.example/secret"))
	if !s.NoArchive || s.Text != "" || s.TextBytes == 0 || len(s.Inlinks) == 0 {
		t.Errorf("%+v", s)
	}
	f = newFixture(t, func(o *Options) {
		o.Markdown = func(_ context.Context, c *page.Content) (string, error) {
			return fmt.Sprintf("# %d bytes", len(c.Body)), nil
		}
	})
	if s = get[story](t, f, "/url?markdown=1&u="+url.QueryEscape("https://harbour.example/")); !strings.HasPrefix(s.Markdown, "# ") || s.Markdown == "# 0 bytes" {
		t.Errorf("%q", s.Markdown)
	}
	if s = get[story](t, f, "/url?markdown=1&u="+url.QueryEscape("https://harbour.example/secret")); s.Markdown != "" {
		t.Errorf("%q", s.Markdown)
	}
	for _, hit := range get[searchResult](t, f, "/search?q=yourself").Hits {
		if hit.Snippet != "" {
			t.Errorf("a copy of a page that asks for none: %q", hit.Snippet)
		}
	}
}

// Lists come in parts that together have everything once.
func TestListsComeInParts(t *testing.T) {
	f := newFixture(t, nil)
	const hosts, pages = 130, 3
	var urls []string
	for i := range hosts {
		for j := range pages {
			urls = append(urls, fmt.Sprintf("https://h%03d.many.example/%d", i, j))
		}
	}
	err := f.stores.Crawl.Update(t.Context(), crawldb.Batch{URLs: urls, Next: func(i int, _ *crawldb.Datum) (*crawldb.Datum, error) {
		return &crawldb.Datum{URL: urls[i], Status: crawldb.Unfetched, FetchTime: f.now}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for query := "?q=many.example"; query != ""; {
		list := get[urlList](t, f, "/urls"+query)
		for _, u := range list.URLs {
			found = append(found, u.URL)
		}
		query = list.Next
	}
	if slices.Sort(found); !slices.Equal(found, urls) {
		t.Errorf("%d URLs of %d", len(found), len(urls))
	}
	names := map[string]int{}
	for query := "?"; query != ""; {
		list := get[hostList](t, f, "/hosts"+query)
		for _, h := range list.Hosts {
			names[h.Host]++
		}
		query = list.Next
	}
	if len(names) != hosts+2 || names["h000.many.example"] != 1 {
		t.Errorf("%d hosts", len(names))
	}
	all := get[changeList](t, f, "/changes")
	var parts []change
	for from := ""; ; {
		list, err := f.findChanges(t.Context(), changeQuery{limit: 2, budget: time.Minute, from: from})
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, list.Changes...)
		if from = list.next; from == "" {
			break
		}
	}
	if !slices.Equal(parts, all.Changes) || len(parts) < 10 {
		t.Errorf("%d changes in parts, %d in one", len(parts), len(all.Changes))
	}
}

// What is not allowed is refused, and shown without its controls.
func TestReadOnlyByDefault(t *testing.T) {
	f := newFixture(t, nil)
	for _, rt := range f.routes() {
		if rt.method != http.MethodPost {
			continue
		}
		path := strings.NewReplacer("{host}", "harbour.example", "{name}", "x").Replace(rt.path)
		if w := f.request(t, "POST", path, "urls=https://new.example/"); w.Code != 403 {
			t.Errorf("%s: %d", path, w.Code)
		}
		if a := ActionOf(httptest.NewRequest("POST", "/crawl"+path+".json", nil), "/crawl"); a != rt.action {
			t.Errorf("%s: action %q, want %q", path, a, rt.action)
		}
	}
	for _, path := range paths() {
		if text := f.request(t, "GET", path, "").Body.String(); strings.Contains(text, `method="post"`) {
			t.Errorf("%s has a control", path)
		}
	}
	if w := f.request(t, "DELETE", "/hosts", ""); w.Code < 400 {
		t.Errorf("DELETE: %d", w.Code)
	}
}

// Requests under other names, and changes that pages of other sites ask for, are refused.
func TestRequestsOfOtherSitesAreRefused(t *testing.T) {
	f := newFixture(t, func(o *Options) { o.Guard.Authorize = Allow(Actions()...) })
	for _, c := range []struct {
		method, path string
		headers      []string
		want         int
	}{
		{"GET", "/", []string{"Host", "evil.example"}, 403},
		{"GET", "/style.css", []string{"Host", "evil.example:8080"}, 403},
		{"GET", "/", []string{"Host", "[::1]:8080"}, 200},
		{"GET", "/", []string{"Host", "LOCALHOST."}, 200},
		{"POST", "/reload", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"POST", "/reload", []string{"Sec-Fetch-Site", "same-site"}, 403},
		{"POST", "/reload", []string{"Origin", "http://evil.example"}, 403},
		{"POST", "/reload", []string{"Origin", "null"}, 403},
		{"POST", "/reload", []string{"Origin", "http://localhost:8080"}, 303},
		{"POST", "/reload", []string{"Sec-Fetch-Site", "same-origin", "Origin", "http://localhost:8080"}, 303},
		{"POST", "/reload", nil, 303},
	} {
		if w := f.request(t, c.method, c.path, "a=b", c.headers...); w.Code != c.want {
			t.Errorf("%s %s %q: %d, want %d", c.method, c.path, c.headers, w.Code, c.want)
		}
	}
}

func TestToken(t *testing.T) {
	f := newFixture(t, func(o *Options) { o.Guard.Authorize = Token("s3cret", ActionReloadRules) })
	w := f.request(t, "GET", "/", "")
	if w.Code != 401 || !strings.HasPrefix(w.Header().Get("WWW-Authenticate"), "Basic ") {
		t.Errorf("without: %d", w.Code)
	}
	basic := httptest.NewRequest("GET", "/", nil)
	basic.SetBasicAuth("anyone", "s3cret")
	for _, auth := range []string{"Bearer s3cret", basic.Header.Get("Authorization")} {
		if w := f.request(t, "GET", "/", "", "Authorization", auth); w.Code != 200 {
			t.Errorf("%s: %d", auth, w.Code)
		}
		if w := f.request(t, "POST", "/reload", "", "Authorization", auth); w.Code != 303 {
			t.Errorf("%s: reload: %d", auth, w.Code)
		}
		if w := f.request(t, "POST", "/seeds", "urls=https://x.example/", "Authorization", auth); w.Code != 403 {
			t.Errorf("%s: seeds: %d", auth, w.Code)
		}
	}
	if w := f.request(t, "GET", "/", "", "Authorization", "Bearer wrong"); w.Code != 401 {
		t.Errorf("wrong: %d", w.Code)
	}
}

// Whatever error Authorize returns, the request is forbidden.
func TestAnyErrorOfAuthorizeForbids(t *testing.T) {
	for _, err := range []error{ErrForbidden, errors.New("not on Sundays"), hostdb.ErrNotFound, context.DeadlineExceeded} {
		f := newFixture(t, func(o *Options) { o.Guard.Authorize = func(*http.Request, Action) error { return err } })
		for _, method := range []string{"GET", "POST"} {
			if w := f.request(t, method, "/reload", ""); w.Code != 403 || !strings.Contains(w.Body.String(), err.Error()) {
				t.Errorf("%s, %v: %d", method, err, w.Code)
			}
		}
	}
}

func TestControls(t *testing.T) {
	f := newFixture(t, func(o *Options) { o.Guard.Authorize = Allow(Actions()...) })
	post := func(path, body, kind string) (result, int) {
		t.Helper()
		w := f.request(t, "POST", path, body, "Accept", "application/json", "Content-Type", kind)
		var r result
		_ = json.Unmarshal(w.Body.Bytes(), &r)
		return r, w.Code
	}
	const form = "application/x-www-form-urlencoded"
	if r, code := post("/seeds", `{"urls":["https://new.example/","https://new.example/b","ftp://no"]}`, "application/json"); code != 200 || r.Count != 2 || len(r.Rejected) != 1 {
		t.Errorf("seeds: %d %+v", code, r)
	}
	if r, code := post("/fetch", "urls="+url.QueryEscape("https://new.example/\nhttps://new.example/b"), form); code != 200 || r.Count != 2 {
		t.Errorf("fetch: %d %+v", code, r)
	}
	f.round(t)
	if s := get[story](t, f, "/url?u=https://new.example/"); len(s.Visits) != 1 {
		t.Errorf("not fetched: %+v", s)
	}
	if r, code := post("/signal", "urls=https://new.example/", form); code != 200 || r.Count != 1 {
		t.Errorf("signal: %d %+v", code, r)
	}
	if _, code := post("/signal", "urls=https://unknown.example/", form); code != 400 {
		t.Errorf("signal of an unknown page: %d", code)
	}
	if _, code := post("/hosts/new.example/pause", "minutes=90", form); code != 200 {
		t.Errorf("pause: %d", code)
	}
	if h := get[hostStory](t, f, "/hosts/new.example"); !h.Paused {
		t.Errorf("%+v", h)
	}
	if _, code := post("/pause", "host=https://new.example/&minutes=0", form); code != 200 {
		t.Errorf("resume: %d", code)
	}
	if h := get[hostStory](t, f, "/hosts/new.example"); h.Paused {
		t.Errorf("%+v", h)
	}
	if _, err := f.crawler.AddConsumer(t.Context(), "old", recrawl.ConsumerOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, code := post("/consumers/old/drop", "", form); code != 200 || len(get[consumerList](t, f, "/consumers").Consumers) != 0 {
		t.Errorf("drop: %d", code)
	}
	for path, body := range map[string]string{"/seeds": "", "/fetch": "urls=ftp://x", "/pause": "host=a&minutes=-1", "/seeds.json": "urls=not a url"} {
		if _, code := post(path, body, form); code != 400 {
			t.Errorf("%s %s: %d", path, body, code)
		}
	}
	if _, code := post("/consumers/none/drop", "", form); code != 404 {
		t.Errorf("drop of none: %d", code)
	}
	if w := f.request(t, "POST", "/seeds", "urls=https://third.example/"); w.Code != 303 || w.Header().Get("Location") != "/controls?done=seeds&n=1" {
		t.Errorf("form: %d %s", w.Code, w.Header().Get("Location"))
	}
}

// A handler below a path has all its links below it.
func TestPrefix(t *testing.T) {
	f := newFixture(t, func(o *Options) { o.Prefix = "/crawl" })
	if w := f.request(t, "GET", "/crawl", ""); w.Code != 308 || w.Header().Get("Location") != "/crawl/" {
		t.Errorf("%d %s", w.Code, w.Header().Get("Location"))
	}
	link := regexp.MustCompile(`(?:href|action)="(/[^"]*)"`)
	for _, path := range paths() {
		text := f.request(t, "GET", "/crawl"+path, "").Body.String()
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if !strings.HasPrefix(m[1], "/crawl/") {
				t.Errorf("%s: %s", path, m[1])
			}
		}
	}
	if w := f.request(t, "GET", "/other", ""); w.Code != 404 {
		t.Errorf("outside: %d", w.Code)
	}
}

// All links of all pages lead to pages.
func TestLinksLeadSomewhere(t *testing.T) {
	f := newFixture(t, nil)
	link := regexp.MustCompile(`href="([/?][^"]*)"`)
	seen, todo := map[string]bool{}, []string{"/"}
	for len(todo) > 0 && len(seen) < 300 {
		path := todo[0]
		todo = todo[1:]
		if seen[path] {
			continue
		}
		seen[path] = true
		w := f.request(t, "GET", path, "")
		if w.Code != 200 {
			t.Errorf("%s: %d", path, w.Code)
		}
		for _, m := range link.FindAllStringSubmatch(w.Body.String(), -1) {
			to := strings.NewReplacer("&amp;", "&", "&#43;", "+", "&#39;", "'").Replace(m[1])
			if strings.HasPrefix(to, "?") {
				name, _, _ := strings.Cut(path, "?")
				to = name + to
			}
			to, _, _ = strings.Cut(to, "#")
			todo = append(todo, to)
		}
	}
	if len(seen) < 20 {
		t.Errorf("%d pages", len(seen))
	}
}

// The workers of a divided crawl are shown, and the groups that none has.
func TestWorkersAreShown(t *testing.T) {
	f := newFixture(t, func(o *Options) {
		o.Workers = func(context.Context) (groups.State, error) {
			return groups.State{
				Groups:  []groups.GroupState{{Group: 0, Owner: "a"}, {Group: 1}, {Group: 2, Owner: "a"}},
				Workers: []groups.WorkerState{{Owner: "a"}, {Owner: "<b>"}},
			}, nil
		}
	})
	o := get[overview](t, f, "/")
	if got := fmt.Sprint(o.Workers); got != "[{a [0 2]} {<b> []} { [1]}]" {
		t.Errorf("%s", got)
	}
	text := f.request(t, "GET", "/", "").Body.String()
	checkInert(t, "/", text)
	if !strings.Contains(text, "no worker") || !strings.Contains(text, "&lt;b&gt;") {
		t.Error(text)
	}
}

// fakeIndex finds one page, and cannot read queries with a quotation mark.
type fakeIndex struct{}

func (fakeIndex) Search(_ context.Context, query string, limit int) ([]Hit, error) {
	if strings.Contains(query, `"`) {
		return nil, fmt.Errorf("index: %w", ErrQuery)
	}
	return []Hit{{URL: "https://a.example/", Title: fmt.Sprint(query, " ", limit), Snippet: "<script>alert(1)</script>"}}, nil
}

func TestSearchInAnIndex(t *testing.T) {
	f := newFixture(t, func(o *Options) { o.Search = fakeIndex{} })
	if r := get[searchResult](t, f, "/search?q=some+words&limit=7"); len(r.Hits) != 1 || r.Hits[0].Title != "some words 7" || !r.Complete {
		t.Errorf("%+v", r)
	}
	checkInert(t, "/search", f.request(t, "GET", "/search?q=a", "").Body.String())
	if w := f.request(t, "GET", "/search?q=%22", ""); w.Code != 400 {
		t.Errorf("%d", w.Code)
	}
}

// Requests beyond those that are worked on wait, and are refused after a while.
func TestRequestsInALoopAreBounded(t *testing.T) {
	f := newFixture(t, func(o *Options) { o.Concurrent, o.Timeout = 1, 20*time.Millisecond })
	f.slots <- struct{}{}
	if w := f.request(t, "GET", "/", ""); w.Code != 503 || w.Header().Get("Retry-After") == "" {
		t.Errorf("%d", w.Code)
	}
	<-f.slots
	if w := f.request(t, "POST", "/seeds", strings.Repeat("x", 2<<20)); w.Code != 403 { // before its body is read
		t.Errorf("%d", w.Code)
	}
}

// The OpenAPI document names all paths, and its references lead to schemas.
func TestOpenAPI(t *testing.T) {
	f := newFixture(t, nil)
	w := f.request(t, "GET", "/openapi.json", "")
	text, _ := io.ReadAll(w.Body)
	var doc struct {
		OpenAPI    string
		Paths      map[string]map[string]struct{ OperationID string }
		Components struct{ Schemas map[string]any }
	}
	if err := json.Unmarshal(text, &doc); err != nil || doc.OpenAPI != "3.1.0" {
		t.Fatalf("%q, %v", doc.OpenAPI, err)
	}
	n, ids := 0, map[string]bool{}
	for _, methods := range doc.Paths {
		for _, op := range methods {
			n++
			ids[op.OperationID] = true
		}
	}
	if n != len(f.routes()) || len(ids) != n {
		t.Errorf("%d operations, %d names, %d routes", n, len(ids), len(f.routes()))
	}
	for _, m := range regexp.MustCompile(`"#/components/schemas/(\w+)"`).FindAllSubmatch(text, -1) {
		if doc.Components.Schemas[string(m[1])] == nil {
			t.Errorf("no schema %s", m[1])
		}
	}
	if !bytes.Contains(text, []byte(`"fresh_by_importance"`)) {
		t.Error("no field of freshness")
	}
}
