package webtest_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/webtest"
)

var start = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

const day = 24 * time.Hour

// at returns the web with its clock stopped at start plus d.
func at(w *webtest.Web, d time.Duration) *webtest.Web {
	w.Now = func() time.Time { return start.Add(d) }
	return w
}

func get(t *testing.T, w *webtest.Web, url string) protocol.Response {
	t.Helper()
	resp, err := w.Protocol().Fetch(t.Context(), protocol.Request{URL: url})
	if err != nil {
		t.Fatalf("%s: %v", url, err)
	}
	return resp
}

func TestEqualWebsAnswerAlike(t *testing.T) {
	a, b := at(&webtest.Web{Seed: 7}, 9*day), at(&webtest.Web{Seed: 7}, 9*day)
	other := at(&webtest.Web{Seed: 8}, 9*day)
	urls := slices.Collect(a.URLs())
	bodies := make(map[string][]byte)
	for _, u := range urls {
		bodies[u] = get(t, a, u).Content.Body
	}
	differ := 0
	slices.Reverse(urls) // the order of requests does not matter
	for _, u := range urls {
		if got := get(t, b, u).Content.Body; !bytes.Equal(got, bodies[u]) {
			t.Errorf("%s: two equal webs answered differently", u)
		}
		if !bytes.Equal(get(t, other, u).Content.Body, bodies[u]) {
			differ++
		}
	}
	if differ < len(urls)/2 {
		t.Errorf("another seed changed %d of %d pages only", differ, len(urls))
	}
}

var (
	hrefs  = regexp.MustCompile(`<a href="([^"]*)"`)
	titles = regexp.MustCompile(`<title>([^<]*)</title>`)
)

// links reads the links of a page the plain way.
func links(t *testing.T, pageURL string, body []byte) []string {
	t.Helper()
	base, err := url.Parse(pageURL)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, m := range hrefs.FindAllSubmatch(body, -1) {
		u, err := base.Parse(string(m[1]))
		if err != nil {
			t.Fatalf("%s: %v", pageURL, err)
		}
		if u.Scheme == "http" {
			found = append(found, u.String())
		}
	}
	return found
}

func TestTruthIsWhatIsServed(t *testing.T) {
	for _, d := range []time.Duration{0, 3*day + time.Hour, 100 * day, 9000*day + time.Minute} {
		w := at(&webtest.Web{Hosts: 9, HubLinks: 80}, d)
		for u := range w.URLs() {
			truth, ok := w.Page(u)
			if !ok {
				t.Fatalf("Page does not know %s", u)
			}
			resp := get(t, w, u)
			if resp.Outcome.Status != truth.Status || resp.Outcome.Location != truth.Location {
				t.Fatalf("%s: served %+v, truth %+v", u, resp.Outcome, truth)
			}
			if truth.Exists != (resp.Outcome.Code == protocol.Success) {
				t.Fatalf("%s: Exists = %v, served %v", u, truth.Exists, resp.Outcome.Code)
			}
			if resp.ETag != truth.ETag || resp.LastModified != truth.LastModified {
				t.Fatalf("%s: served validators %q and %q, truth %q and %q", u, resp.ETag, resp.LastModified, truth.ETag, truth.LastModified)
			}
			if !truth.Exists {
				continue
			}
			body := resp.Content.Body
			if got := links(t, u, body); !slices.Equal(got, truth.Outlinks) {
				t.Fatalf("%s: links %q\ntruth %q", u, got, truth.Outlinks)
			}
			if m := titles.FindSubmatch(body); m == nil || string(m[1]) != truth.Title {
				t.Fatalf("%s: title %q, truth %q", u, m, truth.Title)
			}
			if got := bytes.Contains(body, []byte(`content="noindex"`)); got != truth.NoIndex {
				t.Fatalf("%s: noindex %v, truth %v", u, got, truth.NoIndex)
			}
			if got := bytes.Contains(body, []byte(`content="nofollow"`)); got != truth.NoFollow {
				t.Fatalf("%s: nofollow %v, truth %v", u, got, truth.NoFollow)
			}
			if said := resp.Content.Type + string(body[:100]); truth.Charset != "" && !strings.Contains(said, truth.Charset) {
				t.Fatalf("%s: says nothing of charset %s: %s", u, truth.Charset, said)
			}
		}
	}
}

func TestAnswersChangeWhenTruthSaysSo(t *testing.T) {
	answer := func(w *webtest.Web, u string, when time.Time) string {
		w.Now = func() time.Time { return when }
		r := get(t, w, u)
		return fmt.Sprint(r.Outcome.Status, r.Outcome.Location, string(r.Content.Body))
	}
	w := &webtest.Web{Hosts: 5, PagesPerHost: 60}
	never := 0
	for u := range w.URLs() {
		when := start.Add(50 * day)
		for range 4 {
			truth, _ := w.PageAt(u, when)
			now := answer(w, u, when)
			if truth.Next.IsZero() {
				never++
				if answer(w, u, when.Add(5000*day)) != now {
					t.Fatalf("%s: changed, though Next is zero", u)
				}
				break
			}
			if !truth.Next.After(when) {
				t.Fatalf("%s: Next %v is not after %v", u, truth.Next, when)
			}
			if truth.Changed.After(when) {
				t.Fatalf("%s: Changed %v is after %v", u, truth.Changed, when)
			}
			if answer(w, u, truth.Next.Add(-time.Nanosecond)) != now {
				t.Fatalf("%s: changed before Next %v", u, truth.Next)
			}
			if answer(w, u, truth.Next) == now {
				t.Fatalf("%s: did not change at Next %v", u, truth.Next)
			}
			when = truth.Next
		}
	}
	if never == 0 {
		t.Error("every page changes")
	}
}

func TestBeforeStartIsAsAtStart(t *testing.T) {
	w := &webtest.Web{}
	for u := range w.URLs() {
		a, b := get(t, at(w, 0), u), get(t, at(w, -1000*day), u)
		if a.Outcome.Status != b.Outcome.Status || !bytes.Equal(a.Content.Body, b.Content.Body) {
			t.Errorf("%s: differs before Start", u)
		}
	}
}

func TestEveryPageCanBeReached(t *testing.T) {
	for _, w := range []*webtest.Web{
		{}, {PagesPerHost: 1}, {PagesPerHost: 2}, {LinksPerPage: 1}, {Hosts: 12, PagesPerHost: 333, LinksPerPage: 3},
		{Hosts: 2, PagesPerHost: 10, HubLinks: 1000}, {Calm: true},
	} {
		at(w, 77*day)
		seen := make(map[string]bool)
		queue := w.Seeds()
		for len(queue) > 0 {
			u := queue[0]
			queue = queue[1:]
			if seen[u] {
				continue
			}
			seen[u] = true
			truth, ok := w.Page(u)
			if !ok {
				t.Fatalf("a link leads to %s, which does not exist", u)
			}
			if truth.Location != "" {
				queue = append(queue, truth.Location)
			}
			queue = append(queue, truth.Outlinks...)
		}
		for u := range w.URLs() {
			if !seen[u] {
				t.Errorf("%+v: %s cannot be reached", w.Seeds(), u)
			}
		}
	}
}

func TestAllKindsOfPagesOccur(t *testing.T) {
	w := at(&webtest.Web{Hosts: 7, PagesPerHost: 200}, 10*day)
	count := make(map[string]int)
	for u := range w.URLs() {
		truth, _ := w.Page(u)
		count[fmt.Sprint("status ", truth.Status)]++
		count[fmt.Sprint("period ", truth.Period)]++
		if truth.Disallowed {
			count["disallowed"]++
		}
		if truth.NoIndex {
			count["noindex"]++
		}
		if truth.NoFollow {
			count["nofollow"]++
		}
		n := 0
		for v := truth; v.Location != "" && n < 10; n++ {
			v, _ = w.Page(v.Location)
			if v.Location == u {
				n = 10 // a loop
			}
		}
		count[fmt.Sprint("redirects ", n)]++
		if strings.Contains(u, "?") {
			count["query"]++
		}
	}
	for _, want := range []string{
		"status 200", "status 301", "status 302", "status 404", "status 410", "status 503",
		"period 0s", "period 24h0m0s", "period 168h0m0s", "period 720h0m0s",
		"redirects 0", "redirects 1", "redirects 4", "disallowed", "noindex", "nofollow", "query",
	} {
		if count[want] == 0 {
			t.Errorf("no page with %s: %v", want, count)
		}
	}
	calm := at(&webtest.Web{Calm: true, Hosts: 7, PagesPerHost: 200}, 10*day)
	for u := range calm.URLs() {
		if truth, _ := calm.Page(u); !truth.Exists || truth.Disallowed || truth.NoIndex {
			t.Fatalf("a calm web has trouble: %+v", truth)
		}
	}
}

func TestValidators(t *testing.T) {
	w := at(&webtest.Web{}, 5*day)
	var with, without int
	for _, u := range w.Seeds() {
		first := get(t, w, u)
		req := protocol.Request{URL: u, ETag: first.ETag, LastModified: first.LastModified}
		again, err := w.Protocol().Fetch(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		if first.ETag == "" && first.LastModified == "" {
			without++
			if again.Outcome.Code != protocol.Success {
				t.Errorf("%s: %v without validators", u, again.Outcome.Code)
			}
			continue
		}
		with++
		if again.Outcome.Code != protocol.NotModified || len(again.Content.Body) > 0 {
			t.Errorf("%s: %v with its own validators", u, again.Outcome.Code)
		}
		truth, _ := w.Page(u)
		w.Now = func() time.Time { return truth.Next }
		if later, _ := w.Protocol().Fetch(t.Context(), req); later.Outcome.Code != protocol.Success {
			t.Errorf("%s: %v with stale validators", u, later.Outcome.Code)
		}
		at(w, 5*day)
	}
	if with == 0 || without == 0 {
		t.Errorf("%d hosts with validators, %d without", with, without)
	}
}

func TestNoise(t *testing.T) {
	w := at(&webtest.Web{Noise: true, Calm: true}, 0)
	for u := range w.URLs() {
		a, b := get(t, w, u), get(t, w, u)
		if bytes.Equal(a.Content.Body, b.Content.Body) || a.ETag+a.LastModified != "" {
			t.Fatalf("%s: twice the same bytes, or a validator", u)
		}
		if !slices.Equal(links(t, u, a.Content.Body), links(t, u, b.Content.Body)) {
			t.Fatalf("%s: noise changed the links", u)
		}
	}
}

func TestCharsets(t *testing.T) {
	w := at(&webtest.Web{}, 0)
	for h, want := range []struct{ has, hasNot string }{
		0: {"café", "caf\xe9"}, 3: {"caf\xe9", "é"}, 4: {"\xcc\xee\xf1\xea\xe2\xe0", "Москва"}, // Moscow
	} {
		if want.has == "" {
			continue
		}
		var all []byte
		for u := range w.URLs() {
			if strings.HasPrefix(u, w.Seeds()[h]) {
				all = append(all, get(t, w, u).Content.Body...)
			}
		}
		if !bytes.Contains(all, []byte(want.has)) || bytes.Contains(all, []byte(want.hasNot)) {
			t.Errorf("%s: not in the charset it claims", w.Host(h))
		}
		if bytes.ContainsRune(all, '?') && h > 0 && bytes.Contains(all, []byte("?????")) {
			t.Errorf("%s: words that its charset cannot say", w.Host(h))
		}
	}
}

func TestRobotsAndSitemap(t *testing.T) {
	w := at(&webtest.Web{Hosts: 7, CrawlDelay: 1500 * time.Millisecond, Sitemaps: true}, 20*day)
	robots := string(get(t, w, w.Seeds()[0]+"robots.txt").Content.Body)
	want := "User-agent: *\nDisallow: /private/\nCrawl-delay: 1.5\n\nSitemap: http://news.example.test/sitemap.xml\n"
	if robots != want {
		t.Errorf("robots.txt is\n%s", robots)
	}
	if got := get(t, w, w.Seeds()[6]+"robots.txt").Outcome.Code; got != protocol.NotFound {
		t.Errorf("robots.txt of the last host: %v", got)
	}
	sitemap := string(get(t, w, w.Seeds()[0]+"sitemap.xml").Content.Body)
	for u := range w.URLs() {
		if !strings.HasPrefix(u, w.Seeds()[0]) {
			continue
		}
		truth, _ := w.Page(u)
		listed := strings.Contains(sitemap, "<loc>"+u+"</loc><lastmod>"+truth.Changed.Format(time.RFC3339)+"<")
		if want := truth.Exists && !truth.Disallowed && !truth.NoIndex; listed != want {
			t.Errorf("%s: in the sitemap %v, want %v", u, listed, want)
		}
	}
}

func TestUnknownURLs(t *testing.T) {
	w := at(&webtest.Web{}, 0)
	for _, u := range []string{
		"http://news.example.test/pages/999.html", "http://news.example.test/pages/01.html", "http://news.example.test/pages/-1.html",
		"http://news.example.test/all.html", "http://news.example.test/hop/1/9", "http://news.example.test/view?id=0",
		"http://news.example.test//", "http://news.example.test/?x",
	} {
		if _, ok := w.Page(u); ok {
			t.Errorf("Page knows %s", u)
		}
		if got := get(t, w, u).Outcome.Code; got != protocol.NotFound {
			t.Errorf("%s: %v", u, got)
		}
	}
	for _, u := range []string{"http://nowhere.example.test/", "http://h0006.example.test/", "http://example.org/", "https://news.example.test/", "http://news.example.test:81/"} {
		if _, ok := w.Page(u); ok {
			t.Errorf("Page knows %s", u)
		}
		if got := get(t, w, u).Outcome; got.Code != protocol.Failed || got.Status != 0 {
			t.Errorf("%s: %+v", u, got)
		}
	}
	if got := w.Count("http://news.example.test/pages/999.html"); got != 1 {
		t.Errorf("an unknown page was counted %d times, want 1", got)
	}
	if got := get(t, w, "http://news.example.test/index.html").Outcome; got.Location != "http://news.example.test/" {
		t.Errorf("/index.html: %+v", got)
	}
}

func TestHostNames(t *testing.T) {
	w := &webtest.Web{Hosts: 12000, PagesPerHost: 1}
	seen := make(map[string]bool)
	for _, u := range w.Seeds() {
		if _, ok := w.Page(u); !ok || seen[u] {
			t.Fatalf("%s: unknown or twice", u)
		}
		seen[u] = true
	}
	if len(seen) != 12000 || !seen["http://h0008.example.test/"] || !seen["http://h12000.example.test/"] {
		t.Errorf("%d hosts", len(seen))
	}
}

func TestProtocolTakesTimeAndEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &webtest.Web{Latency: time.Minute}
		resp := get(t, w, w.Seeds()[0])
		if resp.Elapsed != time.Minute || !resp.Content.Time.Equal(start) {
			t.Errorf("took %v from %v", resp.Elapsed, resp.Content.Time)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := w.Protocol().Fetch(ctx, protocol.Request{URL: w.Seeds()[0]}); err != context.DeadlineExceeded {
			t.Errorf("err = %v", err)
		}
		if got := time.Since(start); got != 61*time.Second {
			t.Errorf("it is %v after the start", got)
		}
	})
}

func TestProtocolCutsTheBody(t *testing.T) {
	w := &webtest.Web{WordsPerPage: 400_000}
	for max, want := range map[int64]int{100: 100, 0: 1 << 20, -1: 0} {
		resp, err := w.Protocol().Fetch(t.Context(), protocol.Request{URL: w.Seeds()[0], MaxBytes: max})
		if err != nil {
			t.Fatal(err)
		}
		if n := len(resp.Content.Body); resp.Content.Truncated != (max >= 0) || want > 0 && n != want {
			t.Errorf("MaxBytes %d: %d bytes, truncated %v", max, n, resp.Content.Truncated)
		}
	}
}

func TestHostLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &webtest.Web{Latency: time.Second}
		host, seed := w.Host(0), w.Seeds()[0]
		get(t, w, seed)
		get(t, w, seed+"robots.txt")
		time.Sleep(9 * time.Second)
		get(t, w, seed)
		log := w.HostLog(host)
		log.First, log.Last = log.First.UTC(), log.Last.UTC()
		want := webtest.HostLog{Requests: 3, Robots: 1, First: start, Last: start.Add(11 * time.Second), MinGap: 10 * time.Second, MaxInFlight: 1}
		if log != want {
			t.Errorf("log %+v, want %+v", log, want)
		}
		if w.Count(seed) != 2 || w.Requests() != 3 || w.HostLog(w.Host(1)) != (webtest.HostLog{}) {
			t.Errorf("counted %d and %d", w.Count(seed), w.Requests())
		}
		go func() {
			if _, err := w.Protocol().Fetch(t.Context(), protocol.Request{URL: seed}); err != nil {
				t.Error(err)
			}
		}()
		get(t, w, seed)
		synctest.Wait()
		if log := w.HostLog(host); log.MinGap >= 0 || log.MaxInFlight != 2 {
			t.Errorf("two at once: %+v", log)
		}
	})
}

// atTheEnd is a ResponseWriter that buffers like that of net/http, and calls end when the
// last byte goes to the client.
type atTheEnd struct {
	http.ResponseWriter
	left int
	end  func()
}

func (w *atTheEnd) Write(p []byte) (int, error) {
	if w.left -= len(p); w.left == 0 {
		w.end()
	}
	return len(p), nil
}

type bufferedAnswer struct {
	http.ResponseWriter
	*bufio.Writer
}

func (b bufferedAnswer) Write(p []byte) (int, error) { return b.Writer.Write(p) }

// A client that asks again after it has the whole answer does not count as two at once, even
// if the handler of the first request has not returned.
func TestHostLogShowsConcurrentRequests(t *testing.T) {
	for _, words := range []int{10, 20_000} { // less than the buffer, and more
		w := &webtest.Web{WordsPerPage: words}
		seed := w.Seeds()[0]
		request := func() *http.Request { return httptest.NewRequest(http.MethodGet, seed, nil) }
		whole := httptest.NewRecorder()
		w.ServeHTTP(whole, request())
		sink := &atTheEnd{ResponseWriter: httptest.NewRecorder(), left: whole.Body.Len(), end: func() {
			w.ServeHTTP(httptest.NewRecorder(), request())
		}}
		out := bufferedAnswer{sink.ResponseWriter, bufio.NewWriterSize(sink, 2048)}
		w.ServeHTTP(out, request())
		if err := out.Flush(); err != nil {
			t.Fatal(err)
		}
		if log := w.HostLog(w.Host(0)); log.Requests != 3 || log.MaxInFlight != 1 || log.MinGap < 0 {
			t.Errorf("%d bytes: %+v", whole.Body.Len(), log)
		}
	}
}

// client connects to addr whatever host it is asked for.
func client(addr string) *http.Client {
	var d net.Dialer
	return &http.Client{
		Transport: &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return d.DialContext(ctx, network, addr)
		}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func TestServeAnswersLikeProtocol(t *testing.T) {
	w := at(&webtest.Web{}, 33*day)
	s, err := webtest.Serve(w)
	if err != nil {
		t.Fatal(err)
	}
	if got := s.ConnectTo(); got != "::"+s.Addr {
		t.Errorf("ConnectTo is %q", got)
	}
	c := client(s.Addr)
	for u := range w.URLs() {
		want := get(t, w, u)
		resp, err := c.Get(u)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		if err := resp.Body.Close(); err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != want.Outcome.Status || resp.Header.Get("Location") != want.Outcome.Location {
			t.Fatalf("%s: served %s, want %+v", u, resp.Status, want.Outcome)
		}
		if want.Outcome.Code == protocol.Success && !bytes.Equal(body, want.Content.Body) {
			t.Fatalf("%s: served another body", u)
		}
		if w.Count(u) != 2 {
			t.Fatalf("%s: counted %d times", u, w.Count(u))
		}
	}
	for _, r := range []struct {
		method, url string
		status      int
	}{
		{"HEAD", w.Seeds()[0], 200}, {"POST", w.Seeds()[0], 405}, {"GET", "http://example.org/", 421}, {"GET", "http://news.example.test:8080/", 200},
	} {
		req, err := http.NewRequestWithContext(t.Context(), r.method, r.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			t.Fatal(err)
		}
		if err := resp.Body.Close(); err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != r.status {
			t.Errorf("%s %s: %s", r.method, r.url, resp.Status)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	c.CloseIdleConnections()
	if _, err := c.Get(w.Seeds()[0]); err == nil {
		t.Error("a closed server answers")
	}
}

func BenchmarkFetchPage(b *testing.B) {
	w := at(&webtest.Web{Calm: true}, 10*day)
	p, urls := w.Protocol(), slices.Collect(w.URLs())
	i, n := 0, int64(0)
	for b.Loop() {
		resp, err := p.Fetch(b.Context(), protocol.Request{URL: urls[i%len(urls)]})
		if err != nil {
			b.Fatal(err)
		}
		n += resp.Bytes
		i++
	}
	b.SetBytes(n / int64(i))
}
