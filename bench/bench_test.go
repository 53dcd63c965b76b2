package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestMain lets the test binary be the children that the program makes of itself.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && slices.Contains([]string{workerArg, serverArg, dbWorkerArg, victimArg}, os.Args[1]) {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestEveryContenderCrawlsTheWholeWeb(t *testing.T) {
	s, err := startServer(t.Context(), webSize{Hosts: 4, Pages: 6})
	if err != nil {
		t.Fatal(err)
	}
	defer s.stop()
	for _, name := range contenderNames() {
		t.Run(name, func(t *testing.T) {
			j := job{site: s.site, Contender: name, Workers: 4, Idle: 10, Profile: filepath.Join(t.TempDir(), "p")}
			r, err := crawl(t.Context(), j)
			if err != nil {
				t.Fatal(err)
			}
			// Colly may ask for a page twice.
			if r.Pages < 24 || r.Pages > 24 && name != "colly" || r.Bytes == 0 || r.cpu() <= 0 || r.Mallocs == 0 {
				t.Errorf("%+v", r)
			}
			if name == "recrawl-pebble" && (r.Disk.URLs != 24 || r.Disk.CrawlDB == 0 || r.Disk.Segments == 0) {
				t.Errorf("%+v", r.Disk)
			}
			if _, err := os.Stat(j.Profile + ".allocs"); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestEndlessWebIsLeftAfterMaxPages(t *testing.T) {
	s, err := startServer(t.Context(), webSize{Hosts: 3, Pages: 10, KB: 10})
	if err != nil {
		t.Fatal(err)
	}
	defer s.stop()
	for _, name := range contenderNames() {
		j := job{site: s.site, Contender: name, Workers: 4, Idle: 10, Max: 30}
		r, err := crawl(t.Context(), j)
		if err != nil {
			t.Fatal(name, err)
		}
		if size := r.Bytes / int64(max(r.Pages, 1)); r.Pages != 30 && name != "colly" || size < 9_800 || size > 10_200 {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

func TestPagesHaveTheirSizeAndLinks(t *testing.T) {
	for kb, links := range map[int]int{2: 6, 10: 31, 30: 77, 50: 124} {
		p := &pages{Hosts: 40, KB: kb}
		leads, all := map[string]int{}, 0
		for _, u := range p.list(400) {
			host, path, _ := strings.Cut(strings.TrimPrefix(u, "http://"), "/")
			h := 0
			for p.host(h) != host {
				h++
			}
			n, ok := p.find(h, "/"+path)
			if !ok {
				t.Fatalf("%d KB: %s is not found", kb, u)
			}
			body := string(p.render(nil, h, n))
			if len(body) < kb*980 || len(body) > kb*1020 || strings.Count(body, "<a ") != links {
				t.Fatalf("%d KB: %s has %d bytes and %d links, want %d", kb, u, len(body), strings.Count(body, "<a "), links)
			}
			for i := range links {
				all++
				leads[p.url(p.link(h, n, i))]++
			}
		}
		if again := 1 - float64(len(leads))/float64(all); again < 0.4 || again > 0.5 {
			t.Errorf("%d KB: %.2f of the links lead where another does", kb, again)
		}
	}
}

func TestNothingButLoopback(t *testing.T) {
	seeds := filepath.Join(t.TempDir(), "seeds")
	if err := os.WriteFile(seeds, []byte("# one\nhttp://example.com/\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"sites", "-http", "192.0.2.1:80", "-seeds", seeds},
		{"sites", "-http", "example.com:80", "-seeds", seeds},
		{"sites", "-http", "127.0.0.1:80", "-https", "192.0.2.1:443", "-seeds", seeds},
	} {
		if err := run(t.Context(), args); err == nil || !strings.Contains(err.Error(), "loopback") {
			t.Errorf("%q: %v", args, err)
		}
	}
	s := site{HTTP: "127.0.0.1:8080"}
	if to, err := s.connectTo("example.com:80"); err != nil || to != s.HTTP {
		t.Errorf("%q, %v", to, err)
	}
	for _, addr := range []string{"example.com:443", "example.com:8080", "example.com"} {
		if to, err := s.connectTo(addr); err == nil {
			t.Errorf("%s leads to %s", addr, to)
		}
	}
}

func TestTableShowsMedians(t *testing.T) {
	results := func(millis ...time.Duration) (rs []result) {
		for _, ms := range millis {
			rs = append(rs, result{Pages: 1000, Bytes: 2e6, User: ms * time.Millisecond})
		}
		return rs
	}
	var out bytes.Buffer
	err := printTables(&out, []string{"recrawl-mem", "colly"}, map[string][]result{
		"recrawl-mem": results(300, 100, 200), "colly": results(900, 400, 100),
	})
	if err != nil {
		t.Fatal(err)
	}
	squeezed := strings.Join(strings.Fields(out.String()), " ")
	if want := "| recrawl-mem | 1000 | 2.00 | 200 | 0.00 | 100 | 300 | 5000 | - | 2.00 |"; !strings.Contains(squeezed, want) {
		t.Errorf("no %q in\n%s", want, out.String())
	}
}

func TestChildrenRefuseIncompleteJobs(t *testing.T) {
	if err := work(t.Context(), strings.NewReader(`{"Contender":"none"}`), io.Discard); err == nil {
		t.Error("a worker without a contender")
	}
	if err := serve(strings.NewReader(""), io.Discard); err == nil {
		t.Error("a server without a size")
	}
}

func TestModes(t *testing.T) {
	for _, mode := range []string{"pages", "web", "sites", "db", "all"} {
		if !strings.Contains(modes, "go run ./bench "+mode+" ") && !strings.Contains(modes, "go run ./bench "+mode+"\n") {
			t.Errorf("the help has no command for the mode %s", mode)
		}
	}
	if err := run(t.Context(), []string{"page"}); err == nil || !strings.Contains(err.Error(), `no mode "page"`) {
		t.Error(err)
	}
}
