package opensearch_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl/index"
	"github.com/recrawl/recrawl/index/indextest"
	"github.com/recrawl/recrawl/index/opensearch"
)

const address = "http://user:secret@localhost:9200/pages"

func (f *fake) open(t *testing.T, o opensearch.Options) *opensearch.Writer {
	t.Helper()
	o.Client = &http.Client{Transport: f}
	w, err := opensearch.Open(t.Context(), address, o)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestKit(t *testing.T) {
	fakes := map[index.Writer]*fake{}
	reopen := func(f *fake) (index.Writer, error) {
		w, err := opensearch.Open(context.Background(), address, opensearch.Options{Client: &http.Client{Transport: f}, BulkBytes: 64 << 10})
		if err == nil {
			fakes[w] = f
		}
		return w, err
	}
	indextest.Run(t, indextest.Harness{
		Open:   func() (index.Writer, error) { return reopen(&fake{}) },
		Reopen: func(w index.Writer) (index.Writer, error) { return reopen(fakes[w]) },
		Read: func(w index.Writer) (map[string]index.Document, error) {
			docs := map[string]index.Document{}
			for _, d := range fakes[w].docs {
				var doc index.Document
				if d.deleted {
					continue
				}
				if err := json.Unmarshal(d.source, &doc); err != nil {
					return nil, err
				}
				docs[doc.URL] = doc
			}
			return docs, nil
		},
	})
}

func writeAll(t *testing.T, w *opensearch.Writer, n int) error {
	t.Helper()
	for i := range n {
		if err := w.Write(t.Context(), &index.Document{URL: fmt.Sprintf("http://example.com/%d", i), Text: strings.Repeat("text ", 100)}); err != nil {
			return err
		}
	}
	return w.Commit(t.Context())
}

func urls(t *testing.T, w *opensearch.Writer) (all []string) {
	t.Helper()
	for u, err := range w.URLs(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, u)
	}
	return all
}

// A server that is down, full or slow for a while has all documents in the end; a pause is as long as it asks for.
func TestServerThatIsBusyHasAllDocumentsInTheEnd(t *testing.T) {
	for name, trouble := range map[string]func(f *fake, n *int){
		"connections break": func(f *fake, n *int) {
			f.answer = func(*http.Request) (int, bool) { *n--; return 0, *n >= 0 }
		},
		"answers are lost": func(f *fake, n *int) {
			f.lost = func() bool { *n--; return *n >= 0 }
		},
		"429": func(f *fake, n *int) {
			f.answer = func(*http.Request) (int, bool) { *n--; return http.StatusTooManyRequests, *n >= 0 }
		},
		"some documents are refused": func(f *fake, n *int) {
			f.item = func(id string) (int, string) {
				if *n--; *n >= 0 && *n%3 == 0 {
					return http.StatusTooManyRequests, "es_rejected_execution_exception"
				}
				return 0, ""
			}
		},
		"the disk is full": func(f *fake, n *int) {
			f.item = func(id string) (int, string) {
				if *n--; *n >= 0 {
					return http.StatusForbidden, "cluster_block_exception"
				}
				return 0, ""
			}
		},
		"requests are too large": func(f *fake, n *int) { f.most = 5000 },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, n, retries := &fake{}, 12, 0
				w := f.open(t, opensearch.Options{OnRetry: func(error, time.Duration) { retries++ }})
				trouble(f, &n)
				if err := writeAll(t, w, 40); err != nil {
					t.Fatal(err)
				}
				if got := urls(t, w); len(got) != 40 || retries == 0 && f.most == 0 {
					t.Errorf("%d documents after %d retries", len(got), retries)
				}
			})
		})
	}
}

func TestPatienceEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		w := f.open(t, opensearch.Options{Patience: time.Minute})
		f.answer = func(*http.Request) (int, bool) { return http.StatusServiceUnavailable, true }
		began := time.Now()
		if err := writeAll(t, w, 1); err == nil || !strings.Contains(err.Error(), "status 503") {
			t.Error(err)
		}
		if d := time.Since(began); d < 30*time.Second || d > time.Minute {
			t.Errorf("after %v", d)
		}
	})
}

func TestDocumentThatTheServerDoesNotTakeIsLeftOut(t *testing.T) {
	f := &fake{item: func(id string) (int, string) {
		if strings.HasSuffix(id, "/3") {
			return http.StatusBadRequest, "mapper_parsing_exception"
		}
		return 0, ""
	}}
	if err := writeAll(t, f.open(t, opensearch.Options{}), 5); !errors.Is(err, opensearch.ErrRejected) {
		t.Error(err)
	}
	var rejected []string
	w := f.open(t, opensearch.Options{OnReject: func(url string, err error) error { rejected = append(rejected, url); return nil }})
	if err := writeAll(t, w, 5); err != nil || len(rejected) != 1 || len(urls(t, w)) != 4 {
		t.Error(err, rejected, urls(t, w))
	}
}

// A writer that another one has taken the place of changes nothing any more, and says so.
func TestWriterThatIsSupersededChangesNothing(t *testing.T) {
	f := &fake{}
	old := f.open(t, opensearch.Options{})
	if err := writeAll(t, old, 3); err != nil {
		t.Fatal(err)
	}
	w := f.open(t, opensearch.Options{})
	if err := writeAll(t, w, 3); err != nil {
		t.Fatal(err)
	}
	if err := old.Delete(t.Context(), "http://example.com/1"); err != nil {
		t.Fatal(err)
	}
	if err := old.Commit(t.Context()); !errors.Is(err, opensearch.ErrSuperseded) {
		t.Error(err)
	}
	if len(urls(t, w)) != 3 {
		t.Error(urls(t, w))
	}
}

func TestLongURLHasAHashAsItsID(t *testing.T) {
	f := &fake{}
	w := f.open(t, opensearch.Options{})
	long := "http://example.com/" + strings.Repeat("a", 600)
	if err := w.Write(t.Context(), &index.Document{URL: long}); err != nil {
		t.Fatal(err)
	}
	if err := w.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	for id := range f.docs {
		if len(id) > 512 {
			t.Error(len(id))
		}
	}
	if u := urls(t, w); len(u) != 1 || u[0] != long {
		t.Error(u)
	}
}

func TestAddressNamesAnIndex(t *testing.T) {
	for _, bad := range []string{"http://localhost:9200", "http://localhost:9200/", "localhost", "http://a:secret@localhost/%zz"} {
		if _, err := opensearch.Open(t.Context(), bad, opensearch.Options{Patience: 1}); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// A commit whose context ended between the halves of a request that was too large leaves its changes to the next one.
func TestChangesOfACommitThatWasCutOffAreSentByTheNext(t *testing.T) {
	f := &fake{}
	w := f.open(t, opensearch.Options{})
	for i := range 40 {
		if err := w.Write(t.Context(), &index.Document{URL: fmt.Sprintf("http://example.com/%d", i), Text: strings.Repeat("text ", 100)}); err != nil {
			t.Fatal(err)
		}
	}
	f.most = 5000
	ctx, cancel := context.WithCancel(t.Context())
	f.lost = func() bool { cancel(); return true }
	if err := w.Commit(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	f.lost = nil
	if err := w.Write(t.Context(), &index.Document{URL: "http://example.com/0", Text: "new"}); err != nil {
		t.Fatal(err)
	}
	if err := w.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(urls(t, w)); n != 40 || !strings.Contains(string(f.docs["http://example.com/0"].source), "new") {
		t.Errorf("%d documents, %s", n, f.docs["http://example.com/0"].source)
	}
}

// A field without a mapping is what the first document makes it, and later ones are refused.
func TestEachFieldOfADocumentHasAMapping(t *testing.T) {
	f := &fake{}
	f.open(t, opensearch.Options{})
	var made struct {
		Mappings struct {
			Properties map[string]struct{ Type string }
			Templates  []map[string]struct {
				Path    string `json:"path_match"`
				Mapping struct{ Type string }
			} `json:"dynamic_templates"`
		}
	}
	if err := json.Unmarshal(f.settings, &made); err != nil {
		t.Fatal(err)
	}
	for field := range reflect.TypeFor[index.Document]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if made.Mappings.Properties[name].Type == "" {
			t.Errorf("%s has no mapping", name)
		}
	}
	if m := made.Mappings.Templates; len(m) != 1 || m[0]["fields"].Path != "fields.*" || m[0]["fields"].Mapping.Type != "text" {
		t.Errorf("of Document.Fields: %+v", m)
	}
}
