//go:build servers

package httpapi

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/protocol/webtest"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/stores/memstore"
)

var screenshots = flag.Bool("screenshots", false, "write the screenshots of docs/pages")

// browser is a headless Chromium, driven over the WebDriver protocol. It can connect to nothing but
// this machine.
type browser struct {
	t       *testing.T
	session string // the URL of the session
}

func startBrowser(t *testing.T) *browser {
	t.Helper()
	driver, err := exec.LookPath("chromedriver")
	if err != nil {
		t.Fatal("chromedriver and chromium are needed: apt-get install chromium-driver")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	var log bytes.Buffer
	c := exec.Command(driver, fmt.Sprintf("--port=%d", port))
	c.Stdout, c.Stderr, c.WaitDelay = &log, &log, 2*time.Second
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	b := &browser{t: t, session: fmt.Sprintf("http://127.0.0.1:%d", port)}
	for began := time.Now(); ; {
		answer, err := http.Get(b.session + "/status")
		if err == nil {
			answer.Body.Close()
			break
		}
		if time.Since(began) > 20*time.Second {
			t.Fatalf("chromedriver: %v\n%s", err, &log)
		}
	}
	var s struct{ SessionID string }
	b.do("POST", "/session", map[string]any{"capabilities": map[string]any{"alwaysMatch": map[string]any{
		"browserName": "chrome", "goog:loggingPrefs": map[string]string{"browser": "ALL"},
		"goog:chromeOptions": map[string]any{"args": []string{
			"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
			"--hide-scrollbars", "--user-data-dir=" + t.TempDir(), "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"}},
	}}}, &s)
	b.session += "/session/" + s.SessionID
	t.Cleanup(func() { b.do("DELETE", "", map[string]any{}, nil) })
	return b
}

// do makes a request of the protocol, and decodes the value of the answer into v.
func (b *browser) do(method, path string, body, v any) {
	b.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		b.t.Fatal(err)
	}
	r, err := http.NewRequest(method, b.session+path, bytes.NewReader(text))
	if err != nil {
		b.t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer answer.Body.Close()
	got := struct{ Value json.RawMessage }{}
	if err := json.NewDecoder(answer.Body).Decode(&got); err != nil || answer.StatusCode != 200 {
		b.t.Fatalf("%s %s: %d %s, %v", method, path, answer.StatusCode, got.Value, err)
	}
	if v != nil {
		if err := json.Unmarshal(got.Value, v); err != nil {
			b.t.Fatalf("%s %s: %v: %s", method, path, err, got.Value)
		}
	}
}

func (b *browser) open(u string) { b.do("POST", "/url", map[string]string{"url": u}, nil) }

// run runs a script beside the page, which the policy of the page does not keep from running.
func run[T any](b *browser, script string, args ...any) (v T) {
	b.t.Helper()
	b.do("POST", "/execute/sync", map[string]any{"script": script, "args": append([]any{}, args...)}, &v)
	return v
}

func (b *browser) command(name string, params map[string]any) {
	b.do("POST", "/goog/cdp/execute", map[string]any{"cmd": name, "params": params}, nil)
}

// show sets the width of the window and the colours that the user prefers.
func (b *browser) show(width, height int, colours string) {
	b.command("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false})
	b.command("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": colours}}})
}

func (b *browser) press(keys string) {
	var actions []map[string]string
	for _, k := range keys {
		actions = append(actions, map[string]string{"type": "keyDown", "value": string(k)}, map[string]string{"type": "keyUp", "value": string(k)})
	}
	b.do("POST", "/actions", map[string]any{"actions": []any{map[string]any{"type": "key", "id": "k", "actions": actions}}}, nil)
}

const (
	tabKey   = "\ue004"
	enterKey = "\ue007"
)

// complaints returns what the console has had since the last call.
func (b *browser) complaints() (all []string) {
	var entries []struct{ Level, Message string }
	b.do("POST", "/se/log", map[string]string{"type": "browser"}, &entries)
	for _, e := range entries {
		all = append(all, e.Level+": "+e.Message)
	}
	return all
}

// axe returns the script of axe-core, which checks what screen readers and keyboards need.
func axe(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	c := exec.CommandContext(t.Context(), "npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", dir, "axe-core@4.11.0")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("npm install axe-core: %v\n%s", err, out)
	}
	text, err := os.ReadFile(filepath.Join(dir, "node_modules/axe-core/axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A browser without a network shows all pages in light and dark colours without a complaint; no script of a
// crawled page runs; axe-core finds nothing.
func TestPagesInABrowser(t *testing.T) {
	f := newFixture(t, func(o *Options) {
		o.Guard.Authorize = Allow(Actions()...)
	})
	if _, err := f.crawler.AddConsumer(t.Context(), "index", recrawl.ConsumerOptions{Start: recrawl.StartAtBeginning}); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(f)
	defer server.Close()
	b, check := startBrowser(t), axe(t)
	for i, path := range paths() {
		if strings.Contains(path, "refresh") {
			continue
		}
		for _, colours := range []string{"light", "dark"} {
			b.show(1280-i%2*890, 900, colours) // or 390
			b.open(server.URL + path)
			if title := run[string](b, "return document.title"); title == "pwned" || !strings.HasSuffix(title, "– recrawl") {
				t.Errorf("%s: title %q", path, title)
			}
			if n := run[int](b, "return document.scripts.length + document.images.length"); n != 0 {
				t.Errorf("%s: %d scripts and images", path, n)
			}
			if wide := run[int](b, "return document.documentElement.scrollWidth - innerWidth"); wide > 0 {
				t.Errorf("%s: %d pixels wider than the window", path, wide)
			}
			for _, c := range b.complaints() {
				t.Errorf("%s: %s", path, c)
			}
			if i > 0 && (i%4 < 2) == (colours == "light") { // each is checked in one of both
				continue
			}
			violations := run[[]struct {
				ID    string
				Nodes []struct{ HTML, FailureSummary string }
			}](b, check+"; return axe.run({preload: false, resultTypes: [\"violations\"]}).then(r => r.violations)")
			for _, v := range violations {
				t.Errorf("%s, %s: %s: %+v", path, colours, v.ID, v.Nodes[0])
			}
		}
	}
}

// Everything can be done with the keyboard alone.
func TestKeyboardInABrowser(t *testing.T) {
	f := newFixture(t, func(o *Options) { o.Guard.Authorize = Allow(Actions()...) })
	server := httptest.NewServer(f)
	defer server.Close()
	b := startBrowser(t)
	b.show(1280, 900, "light")
	b.open(server.URL + "/controls")
	const focus = "const e = document.activeElement; return e.id || e.className || e.textContent"
	b.press(tabKey)
	if at := run[string](b, focus); at != "skip" {
		t.Errorf("the first stop is %q", at)
	}
	b.press(enterKey)
	if at := run[string](b, focus); at != "main" {
		t.Errorf("behind the skip link: %q", at)
	}
	b.press(tabKey)
	if at := run[string](b, focus); at != "seed-urls" {
		t.Errorf("the first control is %q", at)
	}
	if outline := run[string](b, "return getComputedStyle(document.activeElement).outlineStyle"); outline != "solid" {
		t.Errorf("focus is shown by %q", outline)
	}
	b.press("https://typed.example/" + tabKey + enterKey)
	for began := time.Now(); !strings.Contains(run[string](b, "return document.body.innerText"), "1 new seeds were added."); {
		if time.Since(began) > 10*time.Second {
			t.Fatalf("no seed was added: %s", run[string](b, "return document.body.innerText"))
		}
	}
	if u := run[string](b, "return location.pathname"); u != "/controls" {
		t.Errorf("at %s", u)
	}
	// A page of another site cannot do the same.
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<form method=post action="%s/seeds"><input name=urls value="https://forged.example/"><button id=b>go</button></form>`, server.URL)
	}))
	defer other.Close()
	b.open(other.URL)
	run[any](b, "document.getElementById('b').click()")
	for began := time.Now(); run[string](b, "return location.href") != server.URL+"/seeds"; {
		if time.Since(began) > 10*time.Second {
			t.Fatal("the form was not sent")
		}
	}
	if text := run[string](b, "return document.body.innerText"); !strings.Contains(text, "another site") {
		t.Errorf("forged: %s", text)
	}
	if list := get[urlList](t, f, "/urls?q=forged.example"); len(list.URLs) > 0 {
		t.Error("a page of another site has added a seed")
	}
}

// TestScreenshots writes the pictures of the documentation with -screenshots, and otherwise checks that they
// are there and small.
func TestScreenshots(t *testing.T) {
	const dir, most = "../docs/pages", 150_000
	if *screenshots {
		takeScreenshots(t, dir)
	}
	names, err := filepath.Glob(dir + "/*.png")
	if err != nil || len(names) < 4 {
		t.Fatalf("%q, %v", names, err)
	}
	total := int64(0)
	for _, name := range names {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		total += info.Size()
	}
	if total > most {
		t.Errorf("%d bytes, at most %d", total, most)
	}
}

func takeScreenshots(t *testing.T, dir string) {
	now := time.Date(2026, 9, 1, 6, 0, 0, 0, time.UTC)
	w := &webtest.Web{Hosts: 8, PagesPerHost: 60, Start: now.AddDate(0, -6, 0), Now: func() time.Time { return now }}
	db := &memstore.DB{}
	stores := recrawl.Stores{Crawl: db.Crawl(), Hosts: db.Hosts(), Links: db.Links(), Segments: db.Segments()}
	newCrawler := func(t *testing.T) *recrawl.Crawler {
		crawler, err := recrawl.New(stores, recrawl.Options{
			Agent: "testbot", Protocol: w.Protocol(), Schedule: schedule.Learned{Budget: 90}, Now: func() time.Time { return now },
			Fetch: fetch.Options{Politeness: fetch.Politeness{Delay: -1}},
		})
		if err != nil {
			t.Fatal(err)
		}
		return crawler
	}
	synctest.Test(t, func(t *testing.T) { // pauses take no time
		crawler := newCrawler(t)
		defer crawler.Close()
		if _, err := crawler.Inject(t.Context(), w.Seeds()...); err != nil {
			t.Fatal(err)
		}
		for range 8 * 60 {
			now = now.Add(3 * time.Hour)
			if _, err := crawler.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		_, err := crawler.AddConsumer(t.Context(), "search-index", recrawl.ConsumerOptions{Start: recrawl.StartAtBeginning})
		if err != nil {
			t.Fatal(err)
		}
	})
	crawler := newCrawler(t)
	defer crawler.Close()
	h, err := New(Options{Crawler: crawler, Stores: stores, Title: "town crawl", Now: func() time.Time { return now }, Guard: Guard{Authorize: Allow(Actions()...)}})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	defer server.Close()
	b := startBrowser(t)
	answer, err := http.Get(server.URL + "/changes.json?kind=changed")
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(answer.Body)
	changed := regexp.MustCompile(`"url": "([^"]*/[a-z][^"]*)"`).FindSubmatch(text)
	for _, s := range []struct {
		name, path, colours string
		width, height       int
	}{
		{"overview", "/", "light", 1280, 900}, {"overview-narrow", "/", "dark", 390, 800},
		{"url", "/url?u=" + url.QueryEscape(string(changed[1])), "dark", 1280, 900}, {"schedule-narrow", "/schedule", "light", 390, 800},
	} {
		b.show(s.width, s.height, s.colours)
		b.open(server.URL + s.path)
		var picture string
		b.do("GET", "/screenshot", map[string]any{}, &picture)
		decoded, err := png.Decode(base64.NewDecoder(base64.StdEncoding, strings.NewReader(picture)))
		if err != nil {
			t.Fatal(err)
		}
		var small bytes.Buffer
		if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&small, withFewColours(decoded)); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, s.name+".png"), small.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// withFewColours returns a picture in its sixteen most frequent colours.
func withFewColours(p image.Image) image.Image {
	counts := map[color.Color]int{}
	for y := range p.Bounds().Dy() {
		for x := range p.Bounds().Dx() {
			counts[p.At(x, y)]++
		}
	}
	frequent := slices.SortedFunc(maps.Keys(counts), func(a, b color.Color) int { return counts[b] - counts[a] })
	few := image.NewPaletted(p.Bounds(), frequent[:min(len(frequent), 16)])
	draw.Draw(few, few.Bounds(), p, image.Point{}, draw.Src)
	return few
}
