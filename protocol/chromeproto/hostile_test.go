//go:build servers

package chromeproto_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/chromeproto"
)

// hostile are pages that try to keep, fill, confuse or leave the browser. What must be in the
// content is want; a page that cannot be rendered is what the server sent, and truncated.
var hostile = []struct {
	name, page, want string
	truncated        bool
}{
	{name: "endless loop", page: `<p>before</p><script>for (;;) {}</script>`, want: "before", truncated: true},
	{name: "endless loop of microtasks", page: `<p>before</p><script>(function f() { Promise.resolve().then(f) })()</script>`, want: "before", truncated: true},
	{name: "endless timers", page: `<p>before</p><script>let n = 0; (function f() { n++; setTimeout(f, 0) })(); setTimeout(() => { document.body.append("after") }, 100)</script>`, want: "after"},
	{name: "endless requests", page: `<p>before</p><script>(async () => { for (;;) await fetch("/data?" + Math.random()).catch(() => {}) })()</script>`, want: "before"},
	{name: "a request that is never answered", page: `<p>before</p><script>fetch("/stall"); setTimeout(() => document.body.append("after"), 3000)</script>`, want: "after"},
	{name: "endless stream", page: `<p>before</p><script>fetch("/stream").then(r => r.text()); document.body.append("after")</script>`, want: "after"},
	{name: "memory of scripts", page: `<p>before</p><script>const all = []; for (;;) all.push({a: "x".repeat(1000) + all.length, b: new Array(1000).fill(all.length)})</script>`, want: "before", truncated: true},
	{name: "memory of buffers", page: `<p>before</p><script>const all = []; setInterval(() => { for (let i = 0; i < 20; i++) all.push(new Uint8Array(16 << 20).fill(1)) }, 1)</script>`, want: "before", truncated: true},
	{name: "huge DOM", page: `<p>before</p><script>const s = "<b>x</b>".repeat(10000); for (let i = 0; i < 300; i++) document.body.insertAdjacentHTML("beforeend", s)</script>`, want: "before", truncated: true},
	{name: "large DOM", page: `<p>before</p><script>document.body.insertAdjacentHTML("beforeend", ("<p>" + "word ".repeat(20)).repeat(12000))</script>`, want: "before", truncated: true},
	{name: "dialogs", page: `<p>before</p><script>for (let i = 0; i < 50; i++) { alert(i); confirm(i); prompt(i) } document.body.append("after")</script>`, want: "after"},
	{name: "endless dialogs", page: `<p>before</p><script>for (;;) alert(1)</script>`, want: "before", truncated: true},
	{name: "pop-ups", page: `<p>before</p><script>for (let i = 0; i < 100; i++) window.open("/popup?" + i); document.body.append("after")</script>`, want: "after"},
	{name: "downloads", page: `<p>before</p><script>for (let i = 0; i < 20; i++) { const a = document.createElement("a"); a.href = "/download"; a.download = "x"; a.click() } document.body.append("after")</script>`, want: "after"},
	{name: "print and close", page: `<p>before</p><script>window.print(); window.close(); window.stop(); document.body.append("after")</script>`, want: "after"},
	{name: "reload", page: `<p>before</p><script>location.reload()</script>`, want: "before"},
	{name: "endless navigation", page: `<p>before</p><script>setInterval(() => { location = "/elsewhere?" + Math.random() }, 1)</script>`, want: "before"},
	{name: "meta refresh to itself", page: `<meta http-equiv="refresh" content="0"><p>before</p>`, want: "before"},
	{name: "blank", page: `<p>before</p><script>location = "about:blank"</script>`, want: "before", truncated: true},
	{name: "another protocol", page: `<p>before</p><script>location = "mailto:a@b"; location = "file:///etc/passwd"; location = "chrome://crash"; location = "chrome://kill"</script>`, want: "before"},
	{name: "file in a frame", page: `<p>before</p><iframe src="file:///etc/passwd"></iframe><script>fetch("file:///etc/passwd").catch(() => document.body.append("after"))</script>`, want: "after"},
	{name: "history", page: `<p>before</p><script>for (let i = 0; i < 500; i++) history.pushState(i, "", "/" + i); document.body.append("after")</script>`, want: "after"},
	{name: "frames in frames", page: `<p>before</p><iframe src="?" id=f></iframe><script>document.body.append("after")</script>`, want: "after"},
	{name: "page that redefines what is asked of it", page: `<p>before</p><script>Object.defineProperty(Element.prototype, "outerHTML", {get() { for (;;) {} }}); String.prototype.slice = () => "lie"; XMLSerializer = null; document.body.append("after")</script>`, want: "after"},
	{name: "no document", page: `<p>before</p><script>document.documentElement.remove()</script>`, want: ""},
	{name: "document.write for ever", page: `<p>before</p><script>setInterval(() => { document.open(); document.write("<p>before " + Math.random()); document.close() }, 10)</script>`, want: "before"},
	{name: "workers", page: `<p>before</p><script>const u = URL.createObjectURL(new Blob(["for (;;) {}"])); for (let i = 0; i < 8; i++) new Worker(u); document.body.append("after")</script>`, want: "after"},
	{name: "WebSocket that is flooded", page: `<p>before</p><script>const w = new WebSocket("ws://" + location.host + "/ws"); w.onopen = () => { for (;;) w.send("x".repeat(1 << 20)) }; document.body.append("after")</script>`, want: "after"},
	{name: "200 frames", page: `<p>before</p><script>for (let i = 0; i < 200; i++) { const f = document.createElement("iframe"); f.src = "/frame?" + i; document.head.append(f) } document.body.append("after")</script>`, want: "after"},
}

// TestHostilePages renders hostile pages beside an honest host, in one pool.
func TestHostilePages(t *testing.T) {
	var downloads, popups atomic.Int64
	mux := http.NewServeMux()
	mux.HandleFunc("/hostile/{n}", func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.PathValue("n"))
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<!DOCTYPE html><html><body>"+hostile[n].page)
	})
	mux.HandleFunc("/data", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "x") })
	mux.HandleFunc("/stall", func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	mux.HandleFunc("/stream", func(w http.ResponseWriter, r *http.Request) {
		for {
			if _, err := w.Write(make([]byte, 64<<10)); err != nil {
				return
			}
		}
	})
	mux.HandleFunc("/download", func(w http.ResponseWriter, r *http.Request) {
		downloads.Add(1)
		w.Header().Set("Content-Disposition", "attachment")
		w.Write(make([]byte, 1000))
	})
	mux.HandleFunc("/popup", func(w http.ResponseWriter, r *http.Request) { popups.Add(1) })
	bad := httptest.NewServer(mux)
	defer bad.Close()
	honest := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, `<!DOCTYPE html><div id=root></div><script>setTimeout(() => { root.innerHTML = "<a href=/next>honest</a>" }, 1000)</script>`)
	}))
	defer honest.Close()
	t.Setenv("TMPDIR", t.TempDir())
	reports := sync.Map{}
	p := newProtocol(t, chromeproto.Options{
		Mode: chromeproto.Always, IgnoreRobots: true, OnPage: func(r chromeproto.Report) { reports.Store(r.URL, r) },
		Limits: chromeproto.Limits{Pages: 6, Time: 3 * time.Second, Requests: 40, Bytes: 4 << 20, Memory: 400 << 20},
	})
	ctx, cancel := context.WithCancel(t.Context())
	honestPages, slowest := 0, time.Duration(0)
	var beside sync.WaitGroup
	beside.Go(func() {
		for ctx.Err() == nil {
			begun := time.Now()
			r := get(t, p, honest.URL)
			if !strings.Contains(string(r.Content.Body), "<a href=\"/next\">honest</a>") {
				report, _ := reports.Load(honest.URL)
				t.Errorf("honest page: %v %q %+v", r.Outcome, r.Content.Body, report)
			}
			honestPages++
			slowest = max(slowest, time.Since(begun))
		}
	})
	var all sync.WaitGroup
	room := make(chan bool, 4)
	for i, c := range hostile {
		room <- true
		all.Go(func() {
			defer func() { <-room }()
			begun := time.Now()
			url := bad.URL + "/hostile/" + strconv.Itoa(i)
			r, err := p.Fetch(t.Context(), protocol.Request{URL: url, MaxBytes: 1 << 20})
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
				return
			}
			report, _ := reports.Load(url)
			if took := time.Since(begun); took > 15*time.Second {
				t.Errorf("%s: took %v", c.name, took)
			}
			t.Logf("%-40s %6v %+v", c.name, time.Since(begun).Round(time.Millisecond), report)
			if r.Outcome.Code != protocol.Success || r.Content.Truncated != c.truncated || !strings.Contains(string(r.Content.Body), c.want) {
				t.Errorf("%s: %v, truncated %v, %d bytes, want %q\n%.300s", c.name, r.Outcome, r.Content.Truncated, len(r.Content.Body), c.want, r.Content.Body)
			}
		})
	}
	all.Wait()
	cancel()
	beside.Wait()
	t.Logf("honest host: %d pages, the slowest in %v", honestPages, slowest)
	for wait := 0; renderers(family(os.TempDir())) > 1; wait++ { // one may be kept for the next page
		if wait > 100 {
			t.Errorf("%d processes of pages are left", renderers(family(os.TempDir())))
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if popups.Load() > 0 {
		t.Errorf("%d pop-ups", popups.Load())
	}
}

// TestKilledBrowserIsReplaced kills the browser while it renders: the page is rendered by the
// next one. When the protocol is closed, nothing is left.
func TestKilledBrowserIsReplaced(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	goroutines := runtime.NumGoroutine()
	begun := make(chan bool, 100)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		if r.URL.Path == "/wait" {
			begun <- true
			time.Sleep(300 * time.Millisecond)
			return
		}
		fmt.Fprint(w, `<p>before</p><script>fetch("/wait").then(() => document.body.append("after"))</script>`)
	}))
	p := newProtocol(t, chromeproto.Options{Mode: chromeproto.Always, IgnoreRobots: true})
	var visits sync.WaitGroup
	for range 3 {
		visits.Go(func() {
			if r := get(t, p, s.URL); !strings.Contains(string(r.Content.Body), "after") || r.Content.Truncated {
				t.Errorf("%v %q", r.Outcome, r.Content.Body)
			}
		})
	}
	<-begun
	browsers := family(temp)
	if renderers(browsers) == 0 {
		t.Fatalf("no browser renders: %v", browsers)
	}
	var groups []int
	kill := func() {
		pid, _ := strconv.Atoi(family(temp)[0])
		group, _ := syscall.Getpgid(pid)
		groups = append(groups, group)
		syscall.Kill(group, syscall.SIGKILL) // only the browser; what it leaves must end too
	}
	kill()
	visits.Wait()
	kill()
	if r := get(t, p, s.URL); !strings.Contains(string(r.Content.Body), "after") {
		t.Errorf("after a kill while idle: %v %q", r.Outcome, r.Content.Body)
	}
	pid, _ := strconv.Atoi(family(temp)[0])
	last, _ := syscall.Getpgid(pid)
	groups = append(groups, last)
	p.Close()
	if _, err := p.Fetch(t.Context(), protocol.Request{URL: s.URL}); err == nil {
		t.Error("a closed protocol fetches")
	}
	s.Close()
	for _, group := range groups {
		if left := members(group); len(left) > 0 {
			t.Errorf("these processes are left: %v", left)
		}
	}
	if left, _ := filepath.Glob(temp + "/recrawl-chrome-*"); len(left) > 0 {
		t.Errorf("these folders are left: %v", left)
	}
	for range 100 {
		if runtime.NumGoroutine() <= goroutines {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	stacks := make([]byte, 1<<20)
	t.Errorf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), goroutines, stacks[:runtime.Stack(stacks, true)])
}

// TestHungBrowserIsReplaced stops the browser, which then answers nothing.
func TestHungBrowserIsReplaced(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	s := httptest.NewServer(html(map[string]string{"/": `<p>before</p><script>document.body.append("after")</script>`}))
	defer s.Close()
	p := newProtocol(t, chromeproto.Options{Mode: chromeproto.Always, IgnoreRobots: true, Limits: chromeproto.Limits{Time: 3 * time.Second}})
	get(t, p, s.URL+"/")
	for _, pid := range family(temp) {
		n, _ := strconv.Atoi(pid)
		syscall.Kill(n, syscall.SIGSTOP)
	}
	if r := get(t, p, s.URL+"/"); !strings.Contains(string(r.Content.Body), "after") {
		t.Errorf("%v %q", r.Outcome, r.Content.Body)
	}
}

// family returns the processes of browsers that have their profile in a folder: of the groups in
// which one names it.
func family(folder string) (pids []string) {
	entries, _ := os.ReadDir("/proc")
	groups := map[int]bool{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if line, err := os.ReadFile("/proc/" + e.Name() + "/cmdline"); err == nil && strings.Contains(string(line), folder) {
			if group, err := syscall.Getpgid(pid); err == nil {
				groups[group] = true
			}
		}
	}
	for group := range groups {
		pids = append(pids, members(group)...)
	}
	return pids
}

// members returns the processes of a group that have not ended.
func members(group int) (pids []string) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if g, err := syscall.Getpgid(pid); err != nil || g != group {
			continue
		}
		if stat, err := os.ReadFile("/proc/" + e.Name() + "/stat"); err == nil && !strings.Contains(string(stat), ") Z ") {
			pids = append(pids, e.Name())
		}
	}
	return pids
}

// renderers counts the processes of pages among some.
func renderers(pids []string) (n int) {
	for _, pid := range pids {
		if line, err := os.ReadFile("/proc/" + pid + "/cmdline"); err == nil && strings.Contains(string(line), "--type=renderer") {
			n++
		}
	}
	return n
}
