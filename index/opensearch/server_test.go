//go:build servers

package opensearch_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/index"
	"github.com/recrawl/recrawl/index/indextest"
	"github.com/recrawl/recrawl/index/opensearch"
	"github.com/recrawl/recrawl/internal/testlevel"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/webtest"
	"github.com/recrawl/recrawl/stores/memstore"
)

// node is an OpenSearch on loopback, which is killed and started again with its data.
type node struct {
	t       *testing.T
	dir     string
	address string // http://127.0.0.1:PORT
	cmd     *exec.Cmd
	log     bytes.Buffer
}

func run(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %q: %v: %s", name, args, err, out)
	}
}

func startNode(t *testing.T) *node {
	t.Helper()
	n := &node{t: t, dir: t.TempDir()}
	if err := os.CopyFS(n.dir, os.DirFS("testdata")); err != nil {
		t.Fatal(err)
	}
	run(t, n.dir, "mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=lib")
	run(t, n.dir, "javac", "-cp", "lib/*", "-d", ".", "OpenSearchNode.java")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n.address = "http://" + l.Addr().String()
	l.Close()
	n.start()
	t.Cleanup(n.kill)
	return n
}

func (n *node) start() {
	n.t.Helper()
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(n.address, "http://"))
	n.cmd = exec.Command("java", "-Xms320m", "-Xmx320m", "-XX:+UseSerialGC", "-cp", "lib/*:.", "OpenSearchNode",
		"path.home="+n.dir, "path.data="+filepath.Join(n.dir, "data"), "http.port="+port, "transport.port=0", "network.host=127.0.0.1",
		"discovery.type=single-node", "node.name=test", "cluster.name=test", "http.type=netty4", "transport.type=netty4",
		"thread_pool.write.size=1", "thread_pool.write.queue_size=2",
		"cluster.routing.allocation.disk.threshold_enabled=false") // the disk of this machine has no say
	n.cmd.Dir, n.cmd.Stdout, n.cmd.Stderr = n.dir, &n.log, &n.log
	if err := n.cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	for began := time.Now(); ; {
		r, err := http.Get(n.address + "/_cluster/health?wait_for_status=yellow&timeout=1s")
		if err == nil {
			r.Body.Close()
			if r.StatusCode == http.StatusOK {
				return
			}
		}
		if time.Since(began) > 2*time.Minute {
			n.t.Fatalf("the node does not start: %v: %s", err, n.log.String())
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func (n *node) kill() {
	_ = n.cmd.Process.Signal(syscall.SIGKILL)
	_ = n.cmd.Wait()
}

func (n *node) do(method, path, body string) map[string]any {
	n.t.Helper()
	r, err := http.NewRequest(method, n.address+path, strings.NewReader(body))
	if err != nil {
		n.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		n.t.Fatal(err)
	}
	defer a.Body.Close()
	text, _ := io.ReadAll(a.Body)
	var all map[string]any
	if err := json.Unmarshal(text, &all); err != nil || a.StatusCode/100 != 2 {
		n.t.Fatalf("%s %s: %d: %s", method, path, a.StatusCode, text)
	}
	return all
}

// documents returns the documents of an index, as a search finds them.
func (n *node) documents(name string) map[string]index.Document {
	n.t.Helper()
	r, err := http.Post(n.address+"/"+name+"/_search", "application/json", strings.NewReader(`{"size":10000}`))
	if err != nil {
		n.t.Fatal(err)
	}
	defer r.Body.Close()
	var found struct {
		Hits struct {
			Hits []struct {
				Source index.Document `json:"_source"`
			} `json:"hits"`
		} `json:"hits"`
	}
	if err := json.NewDecoder(r.Body).Decode(&found); err != nil {
		n.t.Fatal(err)
	}
	docs := map[string]index.Document{}
	for _, h := range found.Hits.Hits {
		docs[h.Source.URL] = h.Source
	}
	return docs
}

// TestServer starts one node for all of its parts: a start takes seconds.
func TestServer(t *testing.T) {
	n := startNode(t)
	t.Run("fields", func(t *testing.T) { fieldsOfAnyForm(t, n) })
	t.Run("killed, full and slow", func(t *testing.T) { killedFullAndSlow(t, n) })
	if !testlevel.Pick(false, true) { // -tags servers,exhaustive
		return
	}
	t.Run("kit", func(t *testing.T) {
		names, made := map[index.Writer]string{}, 0
		open := func(name string) (index.Writer, error) {
			w, err := opensearch.Open(t.Context(), n.address+"/"+name, opensearch.Options{})
			names[w] = name
			return w, err
		}
		indextest.Run(t, indextest.Harness{
			Open:   func() (index.Writer, error) { made++; return open(fmt.Sprint("kit", made)) },
			Reopen: func(w index.Writer) (index.Writer, error) { return open(names[w]) },
			Read: func(w index.Writer) (map[string]index.Document, error) {
				return n.documents(names[w]), nil
			},
		})
		n.do("DELETE", "/kit*", "")
	})
	t.Run("throughput", func(t *testing.T) { throughput(t, n) })
}

// fieldsOfAnyForm writes a field that is a date on one page and none on the next.
func fieldsOfAnyForm(t *testing.T, n *node) {
	w, err := opensearch.Open(t.Context(), n.address+"/fields", opensearch.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i, value := range []string{"2026-03-04", "yesterday", strings.Repeat("long ", 800)} {
		if err := w.Write(t.Context(), &index.Document{URL: fmt.Sprintf("http://example.com/%d", i), Fields: map[string][]string{"published": {value}}, Usage: "search=y", Charset: "utf-8"}); err != nil {
			t.Fatal(err)
		}
		if err := w.Commit(t.Context()); err != nil {
			t.Error(err)
		}
	}
	for query, want := range map[string]float64{`{"match":{"fields.published":"Yesterday"}}`: 1, `{"term":{"fields.published.keyword":"2026-03-04"}}`: 1, `{"term":{"usage":"search=y"}}`: 3} {
		if got := n.do("POST", "/fields/_count", `{"query":`+query+`}`)["count"]; got != want {
			t.Errorf("%s: %v documents, want %v", query, got, want)
		}
	}
}

// site has pages that go away.
type site struct {
	protocol.Protocol
	removed *sync.Map
}

func (s site) Fetch(ctx context.Context, r protocol.Request) (protocol.Response, error) {
	if _, gone := s.removed.Load(r.URL); gone {
		return protocol.Response{Outcome: protocol.Outcome{Code: protocol.NotFound, Status: 404}}, nil
	}
	return s.Protocol.Fetch(ctx, r)
}

// table is an index in memory, to compare with.
type table map[string]index.Document

func (x table) Write(_ context.Context, d *index.Document) error { x[d.URL] = *d; return nil }
func (x table) Delete(_ context.Context, url string) error       { delete(x, url); return nil }
func (x table) Commit(context.Context) error                     { return nil }

func killedFullAndSlow(t *testing.T, n *node) {
	now := time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)
	var clock atomic.Int64
	clock.Store(now.Unix())
	web := &webtest.Web{Hosts: 3, PagesPerHost: 100, Calm: true, Start: now.AddDate(-1, 0, 0), Now: func() time.Time { return time.Unix(clock.Load(), 0).UTC() }}
	var removed sync.Map
	var db memstore.DB
	defer db.Close()
	o := recrawl.Options{
		Agent: "test", Protocol: site{web.Protocol(), &removed}, Now: web.Now,
		Fetch: fetch.Options{Politeness: fetch.Politeness{Delay: -1}},
	}
	o.Generate.TopN = 60
	c, err := recrawl.New(recrawl.Stores{Crawl: db.Crawl(), Hosts: db.Hosts(), Links: db.Links(), Segments: db.Segments()}, o)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	k, err := c.AddConsumer(t.Context(), "index", recrawl.ConsumerOptions{Start: recrawl.StartAtBeginning, EveryVisit: true})
	if err != nil {
		t.Fatal(err)
	}
	var retries, commits atomic.Int64
	var why sync.Map
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		w, err := opensearch.Open(ctx, n.address+"/pages", opensearch.Options{BulkBytes: 20_000, Patience: -1, OnRetry: func(err error, _ time.Duration) {
			retries.Add(1)
			for _, s := range []string{"refused", "EOF", "reset", "cluster_block", "rejected", "status 429", "status 503"} {
				if strings.Contains(err.Error(), s) {
					why.Store(s, true)
				}
			}
		}})
		if err == nil {
			_, err = k.Index(ctx, w, recrawl.IndexOptions{Follow: true, Batch: 25, OnCommit: func(recrawl.IndexReport) { commits.Add(1) }})
		}
		done <- err
	}()
	round := func() {
		if _, err := c.Round(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	until := func(what string, ok func() bool) {
		for began := time.Now(); !ok(); time.Sleep(20 * time.Millisecond) {
			if time.Since(began) > time.Minute {
				t.Fatal(what)
			}
			select {
			case err := <-done:
				t.Fatal(err)
			default:
			}
		}
	}
	if _, err := c.Inject(t.Context(), web.Seeds()...); err != nil {
		t.Fatal(err)
	}
	round()
	round()
	until("commits", func() bool { return commits.Load() > 1 })
	// Killed, while there is something to write.
	n.kill()
	round()
	before := retries.Load()
	until("retries while the server is down", func() bool { return retries.Load() > before+2 })
	n.start()
	// Full: what the flood-stage watermark does.
	n.do("PUT", "/pages/_settings", `{"index.blocks.read_only_allow_delete":true}`)
	round()
	before = retries.Load()
	until("retries while the disk is full", func() bool { return retries.Load() > before+1 })
	n.do("PUT", "/pages/_settings", `{"index.blocks.read_only_allow_delete":null}`)
	// Slow: others fill the queue.
	busy, stop := context.WithCancel(t.Context())
	var others sync.WaitGroup
	body := strings.Repeat(`{"index":{}}`+"\n"+`{"text":"`+strings.Repeat("some words of others ", 100)+`"}`+"\n", 300)
	for range 12 {
		others.Go(func() {
			for busy.Err() == nil {
				r, _ := http.NewRequestWithContext(busy, http.MethodPost, n.address+"/others/_bulk", strings.NewReader(body))
				r.Header.Set("Content-Type", "application/x-ndjson")
				if a, err := http.DefaultClient.Do(r); err == nil {
					_, _ = io.Copy(io.Discard, a.Body)
					a.Body.Close()
				}
			}
		})
	}
	before = retries.Load()
	for range 10 {
		round()
	}
	until("retries while the server is slow", func() bool { return retries.Load() > before })
	stop()
	others.Wait()
	// Some pages go away.
	all := table{}
	if _, err := index.Run(t.Context(), db.Crawl(), db.Links(), db.Segments(), all, index.Options{}); err != nil {
		t.Fatal(err)
	}
	gone := 0
	for u := range all {
		if gone++; gone > 20 {
			break
		}
		removed.Store(u, true)
	}
	clock.Add(int64(60 * 24 * time.Hour / time.Second))
	if _, err := c.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	until("everything to be acknowledged", func() bool {
		status, err := c.Consumers(t.Context())
		return err == nil && status[0].Events == 0
	})
	cancel()
	<-done
	want := table{}
	if _, err := index.Run(t.Context(), db.Crawl(), db.Links(), db.Segments(), want, index.Options{}); err != nil {
		t.Fatal(err)
	}
	got := n.documents("pages")
	if len(want) < 250 || len(got) != len(want) {
		t.Errorf("%d documents, want %d", len(got), len(want))
	}
	for u, w := range want {
		if g := got[u]; g.Title != w.Title || g.Text != w.Text || g.Signature != w.Signature || !g.Fetched.Equal(w.Fetched) || g.Segment != w.Segment || g.Host != w.Host {
			t.Errorf("%s: %.200v, want %.200v", u, g, w)
		}
	}
	reasons := ""
	why.Range(func(k, _ any) bool { reasons += k.(string) + ", "; return true })
	t.Logf("%d documents are equal, after %d retries: %s", len(got), retries.Load(), reasons)
}

// throughput compares the writer with a loop that sends the same documents, encoded before, in one
// request after another.
func throughput(t *testing.T, n *node) {
	random := rand.New(rand.NewPCG(1, 1))
	words := make([]string, 3000)
	for i := range words {
		words[i] = fmt.Sprintf("w%x", random.Uint32()>>(random.IntN(16)))
	}
	docs := make([]index.Document, 1500)
	for i := range docs {
		var text strings.Builder
		for text.Len() < 10_000 {
			text.WriteString(words[random.IntN(len(words))])
			text.WriteByte(' ')
		}
		docs[i] = index.Document{URL: fmt.Sprintf("http://example.com/%d", i), Title: "A page", Text: text.String(), Host: "example.com", Fetched: time.Now(), Score: 1}
	}
	const bulk = 5 << 20
	var bodies [][]byte
	var b bytes.Buffer
	end := func() {
		var packed bytes.Buffer
		z, _ := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
		_, _ = z.Write(b.Bytes())
		_ = z.Close()
		bodies = append(bodies, packed.Bytes())
		b.Reset()
	}
	for i := range docs {
		fmt.Fprintf(&b, `{"index":{"_id":%q}}`+"\n", docs[i].URL)
		line, _ := json.Marshal(&docs[i])
		b.Write(append(line, '\n'))
		if b.Len() > bulk {
			end()
		}
	}
	end()
	bare := func() time.Duration {
		n.do("PUT", "/bare", `{"settings":{"number_of_shards":1,"number_of_replicas":0,"refresh_interval":"30s"},"mappings":{"properties":{"url":{"type":"keyword"},"host":{"type":"keyword"},"content_type":{"type":"keyword"},"segment":{"type":"keyword"},"signature":{"type":"keyword"},"text":{"type":"text"},"title":{"type":"text"}}}}`)
		began := time.Now()
		for _, body := range bodies {
			r, _ := http.NewRequest(http.MethodPost, n.address+"/bare/_bulk", bytes.NewReader(body))
			r.Header.Set("Content-Type", "application/x-ndjson")
			r.Header.Set("Content-Encoding", "gzip")
			a, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			text, _ := io.ReadAll(a.Body)
			a.Body.Close()
			if !bytes.Contains(text, []byte(`"errors":false`)) {
				t.Fatalf("%.300s", text)
			}
		}
		n.do("POST", "/bare/_refresh", "")
		d := time.Since(began)
		n.do("DELETE", "/bare", "")
		return d
	}
	written := func() time.Duration {
		w, err := opensearch.Open(t.Context(), n.address+"/written", opensearch.Options{})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		for i := range docs {
			if err := w.Write(t.Context(), &docs[i]); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		d := time.Since(began)
		n.do("DELETE", "/written-1", "")
		return d
	}
	bare() // the virtual machine compiles
	written()
	bests := [2]time.Duration{time.Hour, time.Hour}
	for range 4 {
		bests[0], bests[1] = min(bests[0], bare()), min(bests[1], written())
	}
	ratio := bests[0].Seconds() / bests[1].Seconds()
	t.Logf("%d documents of 10 KB: %.0f/s bare, %.0f/s by the writer: %.2f", len(docs), float64(len(docs))/bests[0].Seconds(), float64(len(docs))/bests[1].Seconds(), ratio)
	if ratio < 0.75 { // on an idle machine it is at least 0.9
		t.Errorf("the writer has %.2f of the throughput of a bare loop", ratio)
	}
}
