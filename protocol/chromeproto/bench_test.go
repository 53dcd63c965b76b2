//go:build servers && linux

package chromeproto_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/chromeproto"
	"github.com/recrawl/recrawl/protocol/httpproto"
)

// BenchmarkPage measures what a page costs: of HTTP alone, with the detector, and rendered. The page
// is an app with 60 KB of script, one request for data and 50 links. Beside the time, it reports the
// CPU time of this process, which also serves the pages, and of the browser's, and the most
// memory that the browser's processes have together (PSS).
func BenchmarkPage(b *testing.B) {
	filler := strings.Repeat("function f() { return [1, 2, 3].map(x => x * 2).filter(x => x > 2) }\n", 850)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/app.js":
			fmt.Fprint(w, filler+`fetch("/data").then(r => r.json()).then(all => { root.innerHTML = all.map(n => "<p><a href='/item/" + n + "'>An item with the number " + n + "</a> and some text about it.</p>").join("") })`)
		case "/data":
			fmt.Fprint(w, "[0"+strings.Repeat(", 7", 49)+"]")
		case "/app":
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, `<!DOCTYPE html><title>App</title><div id=root></div><script src=/app.js></script>`)
		default:
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, `<!DOCTYPE html><title>Text</title>`+strings.Repeat("<p>Ten kilobytes of text that a server has made.", 200))
		}
	}))
	defer s.Close()
	for _, c := range []struct {
		name, path string
		mode       chromeproto.Mode
		pages      int
	}{{"http", "/text", chromeproto.Never, 1}, {"detected", "/text", chromeproto.Auto, 1}, {"rendered", "/app", chromeproto.Auto, 1}, {"rendered-4", "/app", chromeproto.Auto, 4}} {
		b.Run(c.name, func(b *testing.B) {
			client, err := httpproto.New(httpproto.Options{Agent: "testbot", Guard: httpproto.Guard{AllowPrivate: true}})
			if err != nil {
				b.Fatal(err)
			}
			defer client.Close()
			b.Setenv("TMPDIR", b.TempDir())
			p := newProtocol(b, chromeproto.Options{Client: client, Mode: c.mode, Limits: chromeproto.Limits{Pages: c.pages}})
			get(b, p, s.URL+c.path) // starts the browser
			u := &usage{folder: os.TempDir(), cpu: map[string]time.Duration{}}
			stop := u.watch()
			before, own := u.sum(), cpuTime(syscall.RUSAGE_SELF)
			b.ResetTimer()
			var all sync.WaitGroup
			next := make(chan bool)
			for range c.pages {
				all.Go(func() {
					for range next {
						if r, err := p.Fetch(b.Context(), protocol.Request{URL: s.URL + c.path}); err != nil || r.Outcome.Code != protocol.Success || r.Content.Truncated {
							b.Errorf("%v %v", r.Outcome, err)
						}
					}
				})
			}
			for b.Loop() {
				next <- true
			}
			close(next)
			all.Wait()
			b.StopTimer()
			stop()
			b.ReportMetric(float64((cpuTime(syscall.RUSAGE_SELF)-own-u.own).Microseconds())/float64(b.N)/1000, "own-cpu-ms/op")
			b.ReportMetric(float64((u.sum()-before).Microseconds())/float64(b.N)/1000, "browser-cpu-ms/op")
			b.ReportMetric(float64(u.peak>>20), "browser-MB")
		})
	}
}

func cpuTime(whose int) time.Duration {
	var r syscall.Rusage
	syscall.Getrusage(whose, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// usage is what the processes of a browser have used, those that have ended included.
type usage struct {
	folder string
	mu     sync.Mutex
	cpu    map[string]time.Duration
	peak   int64
	looks  int
	own    time.Duration // of the thread that looks
}

func (u *usage) watch() (stop func()) {
	u.look()
	done, ended := make(chan bool), make(chan bool)
	go func() {
		defer close(ended)
		runtime.LockOSThread() // its CPU time is not that of pages
		before := cpuTime(1)
		defer func() { u.own = cpuTime(1) - before }()
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				u.look()
			case <-done:
				return
			}
		}
	}()
	return func() { close(done); <-ended; u.look() }
}

func (u *usage) look() {
	u.mu.Lock()
	defer u.mu.Unlock()
	memory := int64(0)
	for _, pid := range family(u.folder) {
		stat, _ := os.ReadFile("/proc/" + pid + "/stat")
		_, rest, _ := strings.Cut(string(stat), ") ")
		if f := strings.Fields(rest); len(f) > 12 {
			user, _ := strconv.ParseInt(f[11], 10, 64)
			system, _ := strconv.ParseInt(f[12], 10, 64)
			u.cpu[pid] = time.Duration(user+system) * 10 * time.Millisecond
			if u.looks%10 == 0 {
				memory += proportional(pid)
			}
		}
	}
	u.looks++
	u.peak = max(u.peak, memory)
}

// proportional returns the memory of a process, with its share of what it shares.
func proportional(pid string) int64 {
	b, _ := os.ReadFile("/proc/" + pid + "/smaps_rollup")
	_, rest, _ := strings.Cut(string(b), "\nPss:")
	f := strings.Fields(rest)
	if len(f) == 0 {
		return 0
	}
	n, _ := strconv.ParseInt(f[0], 10, 64)
	return n << 10
}

func (u *usage) sum() (all time.Duration) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, d := range u.cpu {
		all += d
	}
	return all
}
