package warc_test

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/httpproto"
	"github.com/recrawl/recrawl/stores/memstore"
	"github.com/recrawl/recrawl/warc"
)

// handled answers requests from a handler, without a network.
type handled struct{ http.Handler }

func (h handled) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result(), nil
}

// library is a site of 40 pages with redirects, missing pages, validators and a robots.txt.
func library() http.Handler {
	m := http.NewServeMux()
	m.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		var n int
		fmt.Sscanf(r.URL.Path, "/page/%d", &n)
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Etag", fmt.Sprintf(`"%d"`, n))
		if n%5 == 4 {
			w.Header().Set("X-Robots-Tag", "noindex")
		}
		fmt.Fprintf(w, "<title>%d</title><p>Page %d ä", n, n)
		if n < 40 {
			fmt.Fprintf(w, `<a href="/page/%d">a</a> <a href="/page/%d">b</a> <a href="/moved/%d">c</a> <a href="/missing/%d">d</a> <a href="/private/%d">e</a>`, n+1, n+7, n, n, n)
		}
	})
	m.HandleFunc("/moved/", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/page/"+strings.TrimPrefix(r.URL.Path, "/moved/"), http.StatusMovedPermanently)
	})
	m.HandleFunc("/missing/", http.NotFound)
	m.HandleFunc("/robots.txt", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "User-agent: *\nDisallow: /private/\n") })
	return m
}

// crawl crawls a site until nothing is due, and returns the stores and what came of each URL.
func crawl(t *testing.T, p protocol.Protocol) (*memstore.DB, map[string]string) {
	t.Helper()
	db := &memstore.DB{}
	c, err := recrawl.New(recrawl.Stores{Crawl: db.Crawl(), Hosts: db.Hosts(), Links: db.Links(), Segments: db.Segments()}, recrawl.Options{
		Agent: "bot", Protocol: p,
		Fetch: fetch.Options{Politeness: fetch.Politeness{Delay: -1}},
		Now:   func() time.Time { return captureTime },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Inject(t.Context(), "https://site.example/page/1"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	outcomes := map[string]string{}
	for d, err := range db.Crawl().Scan(t.Context(), crawldb.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		outcomes[d.URL] = fmt.Sprintf("%v %x", d.Status, d.Signature)
	}
	return db, outcomes
}

// TestCrawlOfAnArchiveIsThatOfTheSite crawls a site, and then what was archived of it: while it
// was fetched, and from the segments.
func TestCrawlOfAnArchiveIsThatOfTheSite(t *testing.T) {
	fetched, kept := t.TempDir(), t.TempDir()
	w := newWriter(t, fetched, warc.Options{CDXJ: true, MaxBytes: 5000})
	client, err := httpproto.New(httpproto.Options{Agent: "bot", Capture: w.Capture,
		RoundTripper: func(http.RoundTripper) http.RoundTripper { return handled{library()} }})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	db, want := crawl(t, client)
	closeWriter(t, w)
	if len(want) < 100 {
		t.Fatalf("%d URLs", len(want))
	}
	w = newWriter(t, kept, warc.Options{Compression: warc.Zstd, Info: warc.Fields{{"description", warc.SegmentsDescription}}})
	if err := warc.WriteSegments(t.Context(), w, db.Segments()); err != nil {
		t.Fatal(err)
	}
	closeWriter(t, w)

	for name, dir := range map[string]string{"while fetching": fetched, "from segments": kept} {
		t.Run(name, func(t *testing.T) {
			files := slices.DeleteFunc(filesOf(t, dir, "recrawl-*"), func(path string) bool { return strings.HasSuffix(path, ".cdxj") })
			want := maps.Clone(want)
			_, got := crawl(t, openArchive(t, warc.ReplayOptions{}, files...))
			if dir == kept {
				// Segments do not keep robots.txt, so the pages that it forbids are missing instead.
				for url := range want {
					if strings.Contains(url, "/private/") {
						delete(want, url)
						delete(got, url)
					}
				}
			}
			for url, outcome := range want {
				if got[url] != outcome {
					t.Errorf("%s: %s, want %s", url, got[url], outcome)
				}
			}
			if len(got) != len(want) {
				t.Errorf("%d URLs, want %d", len(got), len(want))
			}
		})
	}
}

func TestPackage(t *testing.T) {
	dir := t.TempDir()
	w := newWriter(t, dir, warc.Options{MaxBytes: 1})
	capture(t, w, exchange("http://a.example/", okay("one")), exchange("http://a.example/2", okay("two")), exchange("http://a.example/3", "HTTP/1.1 404 No\r\n\r\n"))
	closeWriter(t, w)
	path := filepath.Join(dir, "site.wacz")
	if err := warc.Pack(t.Context(), path, warc.Package{Title: "A", Created: captureTime}, filesOf(t, dir, "recrawl-*")...); err != nil {
		t.Fatal(err)
	}
	z, err := zip.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	content := map[string][]byte{}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		if content[f.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(f.Name, "archive/") && f.Method != zip.Store {
			t.Errorf("%s is compressed again", f.Name)
		}
	}
	var description struct {
		MainPageURL string `json:"mainPageURL"`
		Resources   []struct {
			Path, Hash string
			Bytes      int
		}
	}
	if err := json.Unmarshal(content["datapackage.json"], &description); err != nil {
		t.Fatal(err)
	}
	if len(description.Resources) != 5 || description.MainPageURL != "http://a.example/" {
		t.Errorf("%+v", description)
	}
	for _, r := range description.Resources {
		sum := sha256.Sum256(content[r.Path])
		if r.Bytes != len(content[r.Path]) || r.Hash != "sha256:"+hex.EncodeToString(sum[:]) {
			t.Errorf("%+v", r)
		}
	}
	if pages := strings.Count(string(content["pages/pages.jsonl"]), "\n"); pages != 3 {
		t.Errorf("pages\n%s", content["pages/pages.jsonl"])
	}
	if err := warc.Pack(context.Background(), path, warc.Package{}); err == nil {
		t.Error("a package without files")
	}
}
