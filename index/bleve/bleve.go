// Package bleve is an index in a directory of this machine: an [index.Writer] over the library
// blevesearch/bleve, and a search. It needs no server. It ranks by words only, and does not crawl. Start
// with [Open], and feed it with recrawl's Consumer.Index.
package bleve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"sync"
	"time"

	engine "github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/analysis/analyzer/custom"
	"github.com/blevesearch/bleve/v2/analysis/token/lowercase"
	"github.com/blevesearch/bleve/v2/analysis/tokenizer/unicode"
	"github.com/blevesearch/bleve/v2/index/scorch"
	"github.com/blevesearch/bleve/v2/index/scorch/mergeplan"
	"github.com/blevesearch/bleve/v2/mapping"
	bleveindex "github.com/blevesearch/bleve_index_api"

	"github.com/recrawl/recrawl/index"
)

// ErrNoIndex says that there is no index in a directory.
var ErrNoIndex = errors.New("there is no index")

// Options say how an index is opened.
type Options struct {
	// ReadOnly is for searches. The index must exist.
	ReadOnly bool
	// Analyzer is the name of the analyzer of a new index, such as "en" or "de", which know the
	// forms of words of a language. Empty is for pages in any language: words as Unicode divides
	// them, in lower case.
	Analyzer string
	// Exclusive keeps the index open from the first use to Close. Otherwise it is open between
	// the first change and its Commit, so that other processes can search and write in between.
	Exclusive bool
	// Wait is how long a method waits while another process has the index open. Zero means a
	// minute.
	Wait time.Duration
}

// Index is an index in a directory. Search, URLs and Document can be called by many
// goroutines at once, beside the one that writes. What Commit has returned for survives kill -9 and
// loss of power; after a kill, the changes of a Commit that was under way are there whole or not at all.
type Index struct {
	dir string
	o   Options

	mu     sync.Mutex
	open   engine.Index // nil if it is not open
	users  int
	batch  *engine.Batch
	closed bool
}

// flushBytes is the size of text that is held before it is written, committed or not.
const flushBytes = 16 << 20

// Exists reports whether there is an index in a directory.
func Exists(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "index_meta.json"))
	return err == nil
}

// Open opens the index in a directory, and makes one if there is none, unless it is only to be read.
func Open(dir string, o Options) (*Index, error) {
	x := &Index{dir: dir, o: o}
	if o.Wait <= 0 {
		x.o.Wait = time.Minute
	}
	if !Exists(dir) {
		if o.ReadOnly {
			return nil, fmt.Errorf("bleve: %w in %s", ErrNoIndex, dir)
		}
		if err := create(dir, o.Analyzer); err != nil {
			return nil, fmt.Errorf("bleve: create %s: %w", dir, err)
		}
	}
	if err := x.acquire(); err != nil {
		return nil, err
	}
	return x, x.release()
}

// create makes an index under another name first: what a kill leaves there is no index.
func create(dir, analyzer string) error {
	m, err := pages(analyzer)
	if err != nil {
		return err
	}
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return errors.New("the directory is not empty, and has no index")
	}
	parts := dir + ".new"
	if err := os.RemoveAll(parts); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(parts), 0o755); err != nil {
		return err
	}
	made, err := engine.New(parts, m)
	if err != nil {
		return err
	}
	if err := made.Close(); err != nil {
		return err
	}
	_ = os.Remove(dir) // an empty directory
	return os.Rename(parts, dir)
}

const anyLanguage = "recrawl"

// pages is the mapping of documents: words of title, text and anchors with their places, host and
// media type as they are, and all else of the document as JSON in a field that is not searched.
func pages(analyzer string) (mapping.IndexMapping, error) {
	m := engine.NewIndexMapping()
	if err := m.AddCustomAnalyzer(anyLanguage, map[string]any{
		"type": custom.Name, "tokenizer": unicode.Name, "token_filters": []string{lowercase.Name},
	}); err != nil {
		return nil, err
	}
	if analyzer == "" {
		analyzer = anyLanguage
	}
	words := engine.NewTextFieldMapping()
	words.Analyzer, words.IncludeInAll, words.DocValues = analyzer, false, false
	unstored := *words
	unstored.Store, unstored.IncludeTermVectors = false, false
	key := engine.NewKeywordFieldMapping()
	key.Store, key.IncludeInAll, key.IncludeTermVectors, key.DocValues = false, false, false, false
	stored := engine.NewTextFieldMapping()
	stored.Index, stored.IncludeInAll, stored.IncludeTermVectors, stored.DocValues = false, false, false, false
	d := engine.NewDocumentStaticMapping()
	d.AddFieldMappingsAt("title", words)
	d.AddFieldMappingsAt("text", words)
	d.AddFieldMappingsAt("anchors", &unstored)
	d.AddFieldMappingsAt("host", key)
	d.AddFieldMappingsAt("type", key)
	d.AddFieldMappingsAt("rest", stored)
	m.DefaultMapping = d
	m.DefaultAnalyzer = analyzer
	return m, m.Validate()
}

// acquire opens the index, unless it is open.
func (x *Index) acquire() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return errors.New("bleve: the index is closed")
	}
	if x.open == nil {
		opened, err := engine.OpenUsing(x.dir, map[string]any{"bolt_timeout": x.o.Wait.String(), "read_only": x.o.ReadOnly})
		if err != nil {
			return fmt.Errorf("bleve: open %s: %w", x.dir, err)
		}
		x.open = opened
	}
	x.users++
	return nil
}

// release closes the index when the last user has released it.
func (x *Index) release() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.users--; x.users > 0 || x.o.Exclusive && !x.closed {
		return nil
	}
	opened := x.open
	x.open = nil
	if err := opened.Close(); err != nil {
		return fmt.Errorf("bleve: close %s: %w", x.dir, err)
	}
	return nil
}

// Close drops what is not committed. It must not be called beside a change.
func (x *Index) Close() error {
	x.mu.Lock()
	x.closed = true
	used := x.batch != nil
	if x.batch = nil; !used && x.open != nil && x.users == 0 {
		x.users, used = 1, true
	}
	x.mu.Unlock()
	if used {
		return x.release()
	}
	return nil
}

// page is a document as the mapping has it.
type page struct {
	Title   string   `json:"title"`
	Text    string   `json:"text"`
	Anchors []string `json:"anchors"`
	Host    string   `json:"host"`
	Type    string   `json:"type"`
	Rest    string   `json:"rest"`
}

// Write adds or replaces the document of a URL.
func (x *Index) Write(ctx context.Context, d *index.Document) error {
	if err := x.change(ctx); err != nil {
		return err
	}
	rest := *d
	rest.Title, rest.Text = "", ""
	b, err := json.Marshal(&rest)
	if err == nil {
		err = x.batch.Index(d.URL, &page{d.Title, d.Text, append([]string{}, d.Anchors...), d.Host, d.ContentType, string(b)})
	}
	if err != nil {
		return fmt.Errorf("bleve: write %s: %w", d.URL, err)
	}
	if x.batch.TotalDocsSize() >= flushBytes {
		return x.flush()
	}
	return nil
}

// Delete removes the document of a URL, if there is one.
func (x *Index) Delete(ctx context.Context, url string) error {
	if err := x.change(ctx); err != nil {
		return err
	}
	x.batch.Delete(url)
	return nil
}

// change begins a batch, unless there is one.
func (x *Index) change(ctx context.Context) error {
	if err := ctx.Err(); err != nil || x.batch != nil {
		return err
	}
	if err := x.acquire(); err != nil {
		return err
	}
	x.batch = x.open.NewBatch()
	return nil
}

func (x *Index) flush() error {
	if err := x.open.Batch(x.batch); err != nil {
		return fmt.Errorf("bleve: write to %s: %w", x.dir, err)
	}
	x.batch.Reset()
	return nil
}

// Commit writes the changes to the disk. It returns once they are synced.
func (x *Index) Commit(ctx context.Context) error {
	if err := ctx.Err(); err != nil || x.batch == nil {
		return err
	}
	err := x.flush()
	if err == nil && !x.o.Exclusive {
		err = x.merge(ctx)
	}
	if err != nil {
		return err
	}
	x.batch = nil
	return x.release()
}

// merge does the merges that are due: the engine does them in the background, and closing it ends them.
func (x *Index) merge(ctx context.Context) error {
	inner, err := x.open.Advanced()
	if err != nil {
		return fmt.Errorf("bleve: merge %s: %w", x.dir, err)
	}
	if s, ok := inner.(*scorch.Scorch); ok {
		plan := mergeplan.DefaultMergePlanOptions
		if err := s.ForceMerge(ctx, &plan); err != nil {
			return fmt.Errorf("bleve: merge %s: %w", x.dir, err)
		}
	}
	return nil
}

// URLs yields the URLs of all documents.
func (x *Index) URLs(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		fail := func(err error) { yield("", fmt.Errorf("bleve: list %s: %w", x.dir, err)) }
		if err := x.acquire(); err != nil {
			yield("", err)
			return
		}
		defer func() { _ = x.release() }()
		inner, err := x.open.Advanced()
		if err != nil {
			fail(err)
			return
		}
		reader, err := inner.Reader()
		if err != nil {
			fail(err)
			return
		}
		defer func() { _ = reader.Close() }()
		all, err := reader.DocIDReaderAll()
		if err != nil {
			fail(err)
			return
		}
		defer func() { _ = all.Close() }()
		for {
			id, err := all.Next()
			if err == nil && id == nil {
				return
			}
			url := ""
			if err == nil {
				url, err = reader.ExternalID(id)
			}
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				fail(err)
				return
			}
			if !yield(url, nil) {
				return
			}
		}
	}
}

// Document returns the document of a URL; ok is false if there is none.
func (x *Index) Document(url string) (d index.Document, ok bool, err error) {
	if err := x.acquire(); err != nil {
		return d, false, err
	}
	defer func() { _ = x.release() }()
	return x.document(url)
}

func (x *Index) document(url string) (d index.Document, ok bool, err error) {
	found, err := x.open.Document(url)
	if err != nil {
		return d, false, fmt.Errorf("bleve: read %s: %w", url, err)
	}
	if found == nil {
		return d, false, nil
	}
	var title, text string
	found.VisitFields(func(f bleveindex.Field) {
		switch f.Name() {
		case "title":
			title = string(f.Value())
		case "text":
			text = string(f.Value())
		case "rest":
			err = json.Unmarshal(f.Value(), &d)
		}
	})
	d.Title, d.Text = title, text
	if err != nil {
		return d, false, fmt.Errorf("bleve: read %s: %w", url, err)
	}
	return d, true, nil
}

var _ index.Lister = (*Index)(nil)
