package bleve_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/recrawl/recrawl/index"
	"github.com/recrawl/recrawl/index/bleve"
	"github.com/recrawl/recrawl/index/indextest"
)

func open(t *testing.T, dir string, o bleve.Options) *bleve.Index {
	t.Helper()
	x, err := bleve.Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = x.Close() })
	return x
}

func all(w index.Writer) (map[string]index.Document, error) {
	x := w.(*bleve.Index)
	docs := map[string]index.Document{}
	for url, err := range x.URLs(context.Background()) {
		if err != nil {
			return nil, err
		}
		d, ok, err := x.Document(url)
		if err != nil || !ok {
			return nil, fmt.Errorf("%s: %v %v", url, ok, err)
		}
		docs[url] = d
	}
	return docs, nil
}

func TestKit(t *testing.T) {
	dirs := map[index.Writer]string{}
	indextest.Run(t, indextest.Harness{
		Open: func() (index.Writer, error) {
			dir := filepath.Join(t.TempDir(), "index")
			x, err := bleve.Open(dir, bleve.Options{})
			if err == nil {
				t.Cleanup(func() { _ = x.Close() })
				dirs[x] = dir
			}
			return x, err
		},
		Read: all,
		Reopen: func(w index.Writer) (index.Writer, error) {
			// A copy, as the other index still has it open.
			dir := filepath.Join(t.TempDir(), "index")
			if err := os.CopyFS(dir, os.DirFS(dirs[w])); err != nil {
				return nil, err
			}
			x, err := bleve.Open(dir, bleve.Options{})
			if err == nil {
				t.Cleanup(func() { _ = x.Close() })
				dirs[x] = dir
			}
			return x, err
		},
	})
}

func write(t *testing.T, x *bleve.Index, docs ...index.Document) {
	t.Helper()
	for i := range docs {
		if err := x.Write(t.Context(), &docs[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := x.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func search(t *testing.T, x *bleve.Index, text string) string {
	t.Helper()
	r, err := x.Search(t.Context(), bleve.Query{Text: text})
	if err != nil {
		t.Fatal(err)
	}
	var urls []string
	for _, d := range r.Results {
		urls = append(urls, d.Document.URL)
	}
	return strings.Join(urls, " ")
}

func TestSearch(t *testing.T) {
	x := open(t, filepath.Join(t.TempDir(), "x"), bleve.Options{})
	write(t, x,
		index.Document{URL: "a", Title: "Gophers and other rodents", Text: "They dig burrows. Groß und klein.", Host: "zoo.example", ContentType: "text/html"},
		index.Document{URL: "b", Title: "Burrows", Text: strings.Repeat("nothing to see here, ", 40) + "but a gopher digs red burrows here " + strings.Repeat("and again nothing, ", 40), Host: "other.example", ContentType: "application/pdf"},
		index.Document{URL: "c", Text: "empty", Anchors: []string{"the best gopher"}, Host: "zoo.example"},
	)
	for query, want := range map[string]string{
		"burrows":                   "b a",
		"GOPHER":                    "c b",
		"gopher -burrows":           "c",
		`"red burrows"`:             "b",
		`"burrows red"`:             "",
		"groß":                      "a",
		"host:zoo.example burrows":  "a",
		"type:application/pdf":      "b",
		"title:gophers":             "a",
		"gopher rodents":            "",
		"-":                         "",
		`"`:                         "a b c",
		"burrows title:burrows -x:": "b",
	} {
		if got := search(t, x, query); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
	r, err := x.Search(t.Context(), bleve.Query{Text: "gopher burrows", Limit: 1})
	if err != nil || r.Total != 1 || len(r.Results) != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	s, marked := r.Results[0], ""
	for _, m := range s.Matches {
		marked += s.Snippet[m[0]:m[1]] + " "
	}
	if !strings.Contains(s.Snippet, "a gopher digs red burrows here") || len(s.Snippet) > 240 || marked != "gopher burrows " {
		t.Errorf("%q, marked %q", s.Snippet, marked)
	}
}

// A process that has committed does not keep others from writing and searching, and one that only reads
// sees what they wrote.
func TestIndexIsSharedBetweenCommits(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "x")
	if _, err := bleve.Open(dir, bleve.Options{ReadOnly: true}); err == nil {
		t.Error("an index that is not there was opened")
	}
	one, other := open(t, dir, bleve.Options{}), open(t, dir, bleve.Options{})
	reader := open(t, dir, bleve.Options{ReadOnly: true})
	write(t, one, index.Document{URL: "a", Text: "word"})
	write(t, other, index.Document{URL: "b", Text: "word"})
	if got := search(t, reader, "word"); got != "a b" {
		t.Errorf("found %q", got)
	}
	if err := one.Delete(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	if err := one.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := search(t, reader, "word"); got != "a" {
		t.Errorf("found %q", got)
	}
}

// Many small commits leave few files.
func TestCommitsAreMerged(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "x")
	x := open(t, dir, bleve.Options{})
	for i := range 25 {
		write(t, x, index.Document{URL: fmt.Sprint(i), Text: "word"})
	}
	files, err := os.ReadDir(filepath.Join(dir, "store"))
	if err != nil || len(files) > 16 {
		t.Errorf("%d files, %v", len(files), err)
	}
}
