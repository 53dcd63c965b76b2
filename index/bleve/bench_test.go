package bleve_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	engine "github.com/blevesearch/bleve/v2"

	"github.com/recrawl/recrawl/index"
	"github.com/recrawl/recrawl/index/bleve"
)

// benchDocuments are documents of 10 KB.
func benchDocuments(n int) []index.Document {
	random := rand.New(rand.NewPCG(1, 1))
	docs := make([]index.Document, n)
	for i := range docs {
		var text strings.Builder
		for text.Len() < 10_000 {
			fmt.Fprintf(&text, "w%x ", random.Uint32()>>(20+random.IntN(10)))
		}
		docs[i] = index.Document{URL: fmt.Sprintf("http://example.com/%d", i), Title: "A page", Text: text.String(), Host: "example.com", Score: 1}
	}
	return docs
}

const benchBatch = 500

// BenchmarkWrite writes 500 documents of 10 KB with a Commit, BenchmarkBatch the same fields with the library's own
// mapping and Batch.
func BenchmarkWrite(b *testing.B) {
	docs := benchDocuments(benchBatch)
	x, err := bleve.Open(filepath.Join(b.TempDir(), "x"), bleve.Options{Exclusive: true})
	if err != nil {
		b.Fatal(err)
	}
	defer x.Close()
	for b.Loop() {
		for i := range docs {
			if err := x.Write(b.Context(), &docs[i]); err != nil {
				b.Fatal(err)
			}
		}
		if err := x.Commit(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkBatch(b *testing.B) {
	docs := benchDocuments(benchBatch)
	m := engine.NewIndexMapping()
	words := engine.NewTextFieldMapping()
	words.IncludeInAll, words.DocValues = false, false
	key := engine.NewKeywordFieldMapping()
	key.Store, key.IncludeInAll, key.IncludeTermVectors, key.DocValues = false, false, false, false
	d := engine.NewDocumentStaticMapping()
	d.AddFieldMappingsAt("title", words)
	d.AddFieldMappingsAt("text", words)
	d.AddFieldMappingsAt("host", key)
	m.DefaultMapping = d
	x, err := engine.New(filepath.Join(b.TempDir(), "x"), m)
	if err != nil {
		b.Fatal(err)
	}
	defer x.Close()
	for b.Loop() {
		batch := x.NewBatch()
		for i := range docs {
			if err := batch.Index(docs[i].URL, map[string]string{"title": docs[i].Title, "text": docs[i].Text, "host": docs[i].Host}); err != nil {
				b.Fatal(err)
			}
		}
		if err := x.Batch(batch); err != nil {
			b.Fatal(err)
		}
	}
}
