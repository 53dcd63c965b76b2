//go:build servers

package warc_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/httpproto"
	"github.com/recrawl/recrawl/warc"
)

// oracles installs the programs that the files are checked with, in a virtual environment of
// Python below the user's cache folder.
func oracles(t *testing.T) (bin string) {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = t.TempDir()
	}
	dir := filepath.Join(cache, "recrawl-test", "warc-oracles-1")
	bin = filepath.Join(dir, "bin")
	if _, err := os.Stat(filepath.Join(dir, "complete")); err == nil {
		return bin
	}
	run(t, "python3", "-m", "venv", "--clear", dir)
	run(t, filepath.Join(bin, "pip"), "install", "-q", "warcio==1.8.1", "cdxj-indexer==1.5.0", "wacz==0.6.0")
	if err := os.WriteFile(filepath.Join(dir, "complete"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	return bin
}

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// site answers in the many ways of servers: chunks, codings, redirects, errors, no length.
func site() http.Handler {
	body := func(w http.ResponseWriter, r *http.Request) {
		random := rand.New(rand.NewPCG(1, uint64(len(r.URL.String()))))
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		for range random.IntN(6) {
			fmt.Fprint(w, strings.Repeat("<p>text äöü</p>\n", random.IntN(300)))
			w.(http.Flusher).Flush()
		}
	}
	m := http.NewServeMux()
	m.HandleFunc("/", body)
	m.HandleFunc("/moved", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/", http.StatusFound) })
	m.HandleFunc("/missing", http.NotFound)
	m.HandleFunc("/same/", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "the same for all") })
	m.HandleFunc("/etag", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"1"`)
		if r.Header.Get("If-None-Match") != "" {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		fmt.Fprint(w, "tagged")
	})
	m.HandleFunc("/empty", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusNoContent) })
	return m
}

// crawled visits the site over HTTP/1 and HTTP/2, and returns the files.
func crawled(t *testing.T, compression warc.Compression) []string {
	t.Helper()
	dir := t.TempDir()
	w := newWriter(t, dir, warc.Options{Compression: compression, CDXJ: true, MaxBytes: 20_000})
	client, err := httpproto.New(httpproto.Options{Agent: "bot", Guard: httpproto.Guard{AllowPrivate: true}, InsecureSkipVerify: true, Capture: w.Capture})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for _, http2 := range []bool{false, true} {
		s := httptest.NewUnstartedServer(site())
		s.EnableHTTP2 = http2
		s.StartTLS()
		defer s.Close()
		for i, path := range []string{"/", "/a?b=1&A=2", "/moved", "/missing", "/same/1", "/same/2", "/etag", "/etag", "/empty", "/Case/x/", "/www.x?sid=1"} {
			req := protocol.Request{URL: s.URL + path}
			if i == 7 {
				req.ETag = `"1"`
			}
			if _, err := client.Fetch(context.Background(), req); err != nil {
				t.Fatal(err)
			}
		}
	}
	closeWriter(t, w)
	return filesOf(t, dir, "recrawl-*.warc"+map[warc.Compression]string{warc.Gzip: ".gz", warc.None: ""}[compression])
}

func TestOraclesAcceptFiles(t *testing.T) {
	bin := oracles(t)
	for _, compression := range []warc.Compression{warc.Gzip, warc.None} {
		for _, path := range crawled(t, compression) {
			if out := run(t, filepath.Join(bin, "warcio"), "check", "-v", path); strings.Contains(out, "fail") || !strings.Contains(out, "digest pass") {
				t.Errorf("warcio check: %s", out)
			}
			ours, err := os.ReadFile(path + ".cdxj")
			if err != nil {
				t.Fatal(err)
			}
			theirs := run(t, filepath.Join(bin, "cdxj-indexer"), "--sort", path)
			// Without compression, cdxj-indexer leaves the line ends after a record out of its length.
			withLength := compression != warc.None
			if a, b := indexFields(t, string(ours), withLength), indexFields(t, theirs, withLength); a != b {
				t.Errorf("index\n%s\nthat of cdxj-indexer\n%s", a, b)
			}
		}
	}
}

// indexFields returns the lines of an index with the fields that both programs write, in one
// form.
func indexFields(t *testing.T, index string, withLength bool) string {
	t.Helper()
	var b strings.Builder
	for line := range strings.Lines(index) {
		key, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		stamp, object, _ := strings.Cut(rest, " ")
		var fields map[string]string
		if err := json.Unmarshal([]byte(object), &fields); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if !withLength {
			fields["length"] = ""
		}
		fmt.Fprintln(&b, key, stamp, fields["url"], fields["mime"], fields["status"], fields["digest"], fields["offset"], fields["length"], fields["filename"])
	}
	return b.String()
}

func TestOracleAcceptsPackage(t *testing.T) {
	bin := oracles(t)
	path := filepath.Join(t.TempDir(), "site.wacz")
	if err := warc.Pack(context.Background(), path, warc.Package{Title: "Site"}, crawled(t, warc.Gzip)...); err != nil {
		t.Fatal(err)
	}
	if out := run(t, filepath.Join(bin, "wacz"), "validate", "-f", path); strings.Contains(strings.ToLower(out), "invalid") || strings.Contains(strings.ToLower(out), "failed") {
		t.Errorf("wacz validate: %s", out)
	}
}
