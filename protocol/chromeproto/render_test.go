//go:build servers

package chromeproto_test

import (
	"bytes"
	"context"
	"fmt"
	"image/png"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/chromeproto"
	"github.com/recrawl/recrawl/protocol/httpproto"
)

// newProtocol returns a protocol that renders all pages, and may connect to loopback.
func newProtocol(t testing.TB, o chromeproto.Options) *chromeproto.Protocol {
	t.Helper()
	if o.Client == nil {
		c, err := httpproto.New(httpproto.Options{Agent: "testbot", Guard: httpproto.Guard{AllowPrivate: true}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		o.Client = c
	}
	o.NoSandbox = os.Geteuid() == 0
	p, err := chromeproto.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func get(t testing.TB, p protocol.Protocol, url string) protocol.Response {
	t.Helper()
	r, err := p.Fetch(context.Background(), protocol.Request{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestProtocolWithBrowser(t *testing.T) {
	runKit(t, chromeproto.Options{Mode: chromeproto.Always, NoSandbox: os.Geteuid() == 0})
}

// html serves pages by their path.
func html(pages map[string]string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, ok := pages[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, body)
	})
}

func TestScriptsMakeTheContent(t *testing.T) {
	mux := http.NewServeMux()
	visits := map[string]int{}
	var mu sync.Mutex
	serve := func(path, kind, body string) {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			visits[path]++
			mu.Unlock()
			w.Header().Set("Content-Type", kind)
			w.Header().Set("Etag", `"1"`)
			http.SetCookie(w, &http.Cookie{Name: "seen", Value: "yes"})
			fmt.Fprint(w, strings.ReplaceAll(body, "AGENT", r.UserAgent()))
		})
	}
	serve("/app", "text/html; charset=iso-8859-1", "<!DOCTYPE html><title>caf\xe9</title><div id=app></div><script src=/app.js></script>")
	serve("/app.js", "text/javascript", `const cookie = document.cookie; document.cookie = "own=1"; localStorage.x = (localStorage.x || 0) + 1
		setTimeout(async () => { const r = await (await fetch('/data')).json(); app.innerHTML = '<a href="/next">' + r.text + '</a> ' + cookie + localStorage.x + navigator.userAgent }, 2000)`)
	serve("/data", "application/json", `{"text": "hello AGENT"}`)
	for name, s := range map[string]*httptest.Server{"http": httptest.NewServer(mux), "https": httptest.NewTLSServer(mux)} {
		defer s.Close()
		t.Run(name, func(t *testing.T) {
			c, err := httpproto.New(httpproto.Options{Agent: "testbot", Guard: httpproto.Guard{AllowPrivate: true}, InsecureSkipVerify: true})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			clear(visits)
			p := newProtocol(t, chromeproto.Options{Client: c, Mode: chromeproto.Always, OnPage: func(r chromeproto.Report) { t.Logf("%+v", r) }})
			want := "<!DOCTYPE html>\n<html><head><title>café</title></head><body><div id=\"app\"><a href=\"/next\">hello testbot</a> seen=yes1testbot</div>"
			var first string
			for i := range 3 {
				r := get(t, p, s.URL+"/app")
				if !strings.HasPrefix(string(r.Content.Body), want) || r.ETag != `"1"` || r.Content.Truncated || r.Content.Type != "text/html; charset=utf-8" {
					t.Errorf("%v %q %s %s", r.Outcome, r.ETag, r.Content.Type, r.Content.Body)
				}
				if i == 0 {
					first = string(r.Content.Body)
				} else if string(r.Content.Body) != first {
					t.Errorf("another DOM:\n%s\n%s", first, r.Content.Body)
				}
			}
			if visits["/app"] != 3 {
				t.Errorf("%d requests for the page, for three visits", visits["/app"])
			}
			r, err := p.Fetch(t.Context(), protocol.Request{URL: s.URL + "/app", MaxBytes: 100})
			if err != nil || !r.Content.Truncated || len(r.Content.Body) != 100 {
				t.Errorf("a limit of 100 bytes: %d, truncated %v, %v", len(r.Content.Body), r.Content.Truncated, err)
			}
		})
	}
}

// What a page does to navigate is a Refresh, not a visit; statuses and redirects are those of
// the server.
func TestNavigationIsReported(t *testing.T) {
	pages := map[string]string{
		"/script": `<p>here</p><script>location = "/there#a"</script>`,
		"/late":   `<p>here</p><script>setTimeout(() => location.replace("/there?b"), 3000)</script>`,
		"/form":   `<p>here</p><form action=/there></form><script>document.forms[0].submit()</script>`,
		"/meta":   `<p>here</p><meta http-equiv=refresh content="1; url=/there">`,
		"/stays":  `<p>here</p><script>history.pushState(0, "", "/there"); location.hash = "x"</script>`,
		"/reload": `<p>here</p><script>location.reload()</script>`,
	}
	var there atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/there":
			there.Add(1)
		case "/moved":
			http.Redirect(w, r, "/script", http.StatusMovedPermanently)
		case "/missing":
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, "<div id=root></div><script>document.write('all is well')</script>")
		default:
			html(pages).ServeHTTP(w, r)
		}
	}))
	defer s.Close()
	p := newProtocol(t, chromeproto.Options{Mode: chromeproto.Always, IgnoreRobots: true})
	for path, want := range map[string]string{"/script": "/there", "/late": "/there?b", "/form": "/there?", "/meta": "/there", "/stays": "", "/reload": ""} {
		r := get(t, p, s.URL+path)
		if want != "" {
			want = "0; url=" + s.URL + want
		}
		if r.Outcome.Code != protocol.Success || r.Content.Refresh != want || !strings.Contains(string(r.Content.Body), "here") || r.Content.Truncated {
			t.Errorf("%s: %v, refresh %q, want %q\n%s", path, r.Outcome, r.Content.Refresh, want, r.Content.Body)
		}
	}
	if r := get(t, p, s.URL+"/moved"); r.Outcome.Code != protocol.MovedPerm || r.Outcome.Location != s.URL+"/script" {
		t.Errorf("moved: %+v", r.Outcome)
	}
	if r := get(t, p, s.URL+"/missing"); r.Outcome.Code != protocol.NotFound || r.Outcome.Status != 404 || len(r.Content.Body) > 0 {
		t.Errorf("missing: %+v", r.Outcome)
	}
	if n := there.Load(); n > 0 {
		t.Errorf("the target was requested %d times", n)
	}
}

// Rules come before the mode, and the detector decides the rest.
func TestRulesSayWhatIsRendered(t *testing.T) {
	const app = `<div id=root></div><script src=/app.js></script>`
	const text = `<h1>Opening hours of the library in the old town, and of its branches</h1><p id=p>Monday</p><script>p.innerText = "Tuesday"</script>`
	s := httptest.NewServer(html(map[string]string{"/app": app, "/text": text, "/forced/text": text, "/plain/app": app, "/app.js": `root.innerHTML = "rendered"`}))
	defer s.Close()
	var rendered []string
	p := newProtocol(t, chromeproto.Options{IgnoreRobots: true,
		Rules: []chromeproto.Rule{
			{Pattern: regexp.MustCompile(`/forced/`), Mode: chromeproto.Always},
			{Pattern: regexp.MustCompile(`/plain/`), Mode: chromeproto.Never},
		},
		OnPage: func(r chromeproto.Report) { rendered = append(rendered, strings.TrimPrefix(r.URL, s.URL)) },
	})
	for _, path := range []string{"/app", "/text", "/forced/text", "/plain/app"} {
		get(t, p, s.URL+path)
	}
	if fmt.Sprint(rendered) != "[/app /forced/text]" {
		t.Errorf("rendered %q", rendered)
	}
}

// Text and links of web components are in the content, in the order in which they are shown.
func TestShadowTreesAreContent(t *testing.T) {
	s := httptest.NewServer(html(map[string]string{"/": `<!DOCTYPE html><p>light &lt;b&gt;</p><my-card title='"a" &amp; b'>slotted<b slot=s>named</b></my-card><script>
		customElements.define("my-card", class extends HTMLElement { connectedCallback() {
			this.attachShadow({mode: "open"}).innerHTML = "<style>b { color: red }</style><a href=/in>inside</a> <slot></slot>, <slot name=s>none</slot><my-note></my-note><br>" } })
		customElements.define("my-note", class extends HTMLElement { connectedCallback() { this.attachShadow({mode: "open"}).innerHTML = "<i>note</i>" } })</script>`}))
	defer s.Close()
	p := newProtocol(t, chromeproto.Options{Mode: chromeproto.Always, IgnoreRobots: true})
	want := `<p>light &lt;b&gt;</p><my-card title="&quot;a&quot; &amp; b"><style>b { color: red }</style><a href="/in">inside</a> <slot>slotted</slot>, <slot name="s"><b slot="s">named</b></slot><my-note><i>note</i></my-note><br></my-card>`
	if r := get(t, p, s.URL+"/"); !strings.Contains(string(r.Content.Body), want) {
		t.Errorf("%s", r.Content.Body)
	}
}

// What a page adds when it is scrolled to is content.
func TestLazyPartsAreContent(t *testing.T) {
	s := httptest.NewServer(html(map[string]string{"/": `<!DOCTYPE html><div id=root></div><div style="height: 5000px"></div><div id=more></div><script>
		new IntersectionObserver(all => { if (all[0].isIntersecting) more.innerHTML = "<b>lazy part</b>" }).observe(more)
		requestIdleCallback(() => { root.innerHTML += "<b>idle part</b>" }); requestAnimationFrame(() => { root.innerHTML += "<b>drawn part</b>" })</script>`}))
	defer s.Close()
	p := newProtocol(t, chromeproto.Options{IgnoreRobots: true})
	body := string(get(t, p, s.URL+"/").Content.Body)
	for _, part := range []string{"lazy", "idle", "drawn"} {
		if !strings.Contains(body, "<b>"+part+" part</b>") {
			t.Errorf("no %s part:\n%s", part, body)
		}
	}
}

// The scripts of a site are requested once, if the server allows it.
func TestScriptsOfASiteAreShared(t *testing.T) {
	var scripts, data atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/app.js":
			scripts.Add(1)
			w.Header().Set("Cache-Control", "public, max-age=3600")
			fmt.Fprint(w, `fetch("/data").then(r => r.text()).then(t => root.innerHTML = t)`)
		case "/data":
			data.Add(1)
			fmt.Fprint(w, "hello")
		default:
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<div id=root></div><script src=/app.js></script>")
		}
	}))
	defer s.Close()
	p := newProtocol(t, chromeproto.Options{Mode: chromeproto.Always, IgnoreRobots: true})
	for i := range 3 {
		if r := get(t, p, fmt.Sprintf("%s/%d", s.URL, i)); !strings.Contains(string(r.Content.Body), "hello") {
			t.Errorf("%s", r.Content.Body)
		}
	}
	if scripts.Load() != 1 || data.Load() != 3 {
		t.Errorf("%d requests for the script, %d for data", scripts.Load(), data.Load())
	}
}

// The requests of a page obey robots.txt, in https and in workers too, and blocked types.
func TestRequestsOfPagesObeyRules(t *testing.T) {
	var mu sync.Mutex
	asked := map[string]bool{}
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked[r.URL.Path] = true
		mu.Unlock()
		switch r.URL.Path {
		case "/robots.txt":
			fmt.Fprint(w, "User-agent: testbot\nDisallow: /private/\n")
		case "/":
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, `<img src=/a.png><img src=data:,><iframe src=/frame></iframe><video src=/v.mp4></video><style>@font-face { font-family: f; src: url(/f.woff) } p { font-family: f }</style><p>text</p>
				<script src=/private/a.js></script><script src=/public/a.js></script><script>
				new Worker(URL.createObjectURL(new Blob(["fetch('"+location.origin+"/private/worker'); fetch('"+location.origin+"/public/worker')"])));
				fetch("/private/data").then(r => document.title = r.status); navigator.sendBeacon("/beacon", ""); fetch("/slow")</script>`)
		case "/slow":
			time.Sleep(200 * time.Millisecond)
		}
	}))
	defer s.Close()
	c, err := httpproto.New(httpproto.Options{Agent: "testbot", Guard: httpproto.Guard{AllowPrivate: true}, InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	p := newProtocol(t, chromeproto.Options{Client: c, Mode: chromeproto.Always})
	if r := get(t, p, s.URL+"/"); !strings.Contains(string(r.Content.Body), "<title>403</title>") {
		t.Errorf("%s", r.Content.Body)
	}
	mu.Lock()
	defer mu.Unlock()
	got := slices.Sorted(maps.Keys(asked))
	if want := []string{"/", "/public/a.js", "/public/worker", "/robots.txt", "/slow"}; !slices.Equal(got, want) {
		t.Errorf("asked for %q, want %q", got, want)
	}
}

func TestPictures(t *testing.T) {
	s := httptest.NewServer(html(map[string]string{"/": `<body style="background: #00ff00"><script>document.write("rendered")</script>`}))
	defer s.Close()
	var shot, print []byte
	p := newProtocol(t, chromeproto.Options{Mode: chromeproto.Always, IgnoreRobots: true,
		Screenshot: func(url string, data []byte) error { shot = data; return nil },
		PDF:        func(url string, data []byte) error { print = data; return nil },
	})
	get(t, p, s.URL+"/")
	picture, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		t.Fatal(err)
	}
	if _, g, _, _ := picture.At(600, 600).RGBA(); g != 0xffff || picture.Bounds().Dx() != 1280 {
		t.Errorf("%v, green %x", picture.Bounds(), g)
	}
	if !bytes.HasPrefix(print, []byte("%PDF-")) {
		t.Errorf("%.20q", print)
	}
}
