// Package vectors divides the documents of an index into chunks and has those embedded that are new. It has no
// model and no vector database: both are the caller's, behind [Embed] and [Store]. Start with [New], which
// returns an [index.Writer] for recrawl's Consumer.Index.
package vectors

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/recrawl/recrawl/index"
)

// Embed returns the vectors of texts, in their order.
type Embed func(ctx context.Context, texts []string) ([][]float32, error)

// Chunk is a part of a document.
type Chunk struct {
	// ID identifies the chunk: it is made of the URL and of the text, so a part of a page that stays as it is
	// keeps its ID, wherever it moves on the page.
	ID string
	// URL and Title are those of the document when the chunk was embedded.
	URL, Title string
	// Text is what was embedded, and Vector what it became.
	Text   string
	Vector []float32
}

// Store keeps chunks. Its methods are called by one goroutine at a time. Put and Remove may be repeated.
type Store interface {
	// IDs returns the IDs of the chunks of a URL; none if there are none.
	IDs(ctx context.Context, url string) ([]string, error)
	// Put adds or replaces chunks.
	Put(ctx context.Context, chunks []Chunk) error
	// Remove removes chunks of a URL. Those that are not there are no error.
	Remove(ctx context.Context, url string, ids []string) error
	// Commit makes everything before it durable.
	Commit(ctx context.Context) error
}

// Options say how documents are divided. In each, zero means the default.
type Options struct {
	// ChunkBytes is the size of a chunk that is aimed at. The default is 2,000; none has more than twice
	// that.
	ChunkBytes int
	// BatchTexts is how many texts are embedded with one call, at most. The default is 64.
	BatchTexts int
}

// Writer is an index.Writer that keeps the chunks of documents in a Store.
type Writer struct {
	store Store
	embed Embed
	o     Options

	pending  []Chunk // to be embedded
	embedded int
}

// New returns a writer.
func New(store Store, embed Embed, o Options) *Writer {
	if o.ChunkBytes <= 0 {
		o.ChunkBytes = 2000
	}
	if o.BatchTexts <= 0 {
		o.BatchTexts = 64
	}
	return &Writer{store: store, embed: embed, o: o}
}

// Embedded returns how many chunks were embedded so far.
func (w *Writer) Embedded() int { return w.embedded }

// Write has the chunks of a document embedded that the store does not have, and removes those that the
// document does not have any more.
func (w *Writer) Write(ctx context.Context, d *index.Document) error {
	if err := w.replace(ctx, d.URL, w.chunks(d)); err != nil {
		return err
	}
	if len(w.pending) >= w.o.BatchTexts {
		return w.flush(ctx)
	}
	return nil
}

// Delete removes the chunks of a document.
func (w *Writer) Delete(ctx context.Context, url string) error { return w.replace(ctx, url, nil) }

// Commit has the rest embedded, and commits the store.
func (w *Writer) Commit(ctx context.Context) error {
	if err := w.flush(ctx); err != nil {
		return err
	}
	if err := w.store.Commit(ctx); err != nil {
		return fmt.Errorf("vectors: commit: %w", err)
	}
	return nil
}

// replace makes the chunks those of a URL. The changes before that wait to be embedded come first.
func (w *Writer) replace(ctx context.Context, url string, chunks []Chunk) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for i := range w.pending {
		if w.pending[i].URL == url {
			if err := w.flush(ctx); err != nil {
				return err
			}
			break
		}
	}
	ids, err := w.store.IDs(ctx, url)
	if err != nil {
		return fmt.Errorf("vectors: %s: %w", url, err)
	}
	old := make(map[string]bool, len(ids))
	for _, id := range ids {
		old[id] = true
	}
	for _, c := range chunks {
		if !old[c.ID] {
			w.pending = append(w.pending, c)
		}
		delete(old, c.ID)
	}
	if len(old) == 0 {
		return nil
	}
	removed := make([]string, 0, len(old))
	for _, id := range ids {
		if old[id] {
			removed = append(removed, id)
		}
	}
	if err := w.store.Remove(ctx, url, removed); err != nil {
		return fmt.Errorf("vectors: %s: %w", url, err)
	}
	return nil
}

// flush has the pending chunks embedded and put into the store.
func (w *Writer) flush(ctx context.Context) error {
	for len(w.pending) > 0 {
		batch := w.pending[:min(len(w.pending), w.o.BatchTexts)]
		texts := make([]string, len(batch))
		for i := range batch {
			texts[i] = batch[i].Text
		}
		vectors, err := w.embed(ctx, texts)
		if err == nil && len(vectors) != len(texts) {
			err = fmt.Errorf("%d vectors for %d texts", len(vectors), len(texts))
		}
		if err != nil {
			return fmt.Errorf("vectors: embed: %w", err)
		}
		for i := range batch {
			batch[i].Vector = vectors[i]
		}
		if err := w.store.Put(ctx, batch); err != nil {
			return fmt.Errorf("vectors: %w", err)
		}
		w.embedded += len(batch)
		w.pending = w.pending[len(batch):]
	}
	w.pending = nil
	return nil
}

// chunks divides a document. A chunk that occurs twice has two IDs.
func (w *Writer) chunks(d *index.Document) (all []Chunk) {
	seen := map[string]int{}
	for _, text := range Split(d.Text, w.o.ChunkBytes) {
		sum := sha256.Sum256([]byte(d.URL + "\x00" + text))
		hash := hex.EncodeToString(sum[:16])
		id := hash
		if n := seen[hash]; n > 0 {
			id += "-" + strconv.Itoa(n)
		}
		seen[hash]++
		all = append(all, Chunk{ID: id, URL: d.URL, Title: d.Title, Text: text})
	}
	return all
}

// Split divides a text into chunks of about size bytes, and at most twice that, at ends of lines or, in
// long lines, of sentences and words. Where it divides depends on the text near the place alone: so a change
// changes the chunk it is in, and seldom another.
func Split(text string, size int) (chunks []string) {
	size = max(size, utf8.UTFMax)
	var chunk strings.Builder
	end := func() {
		if s := strings.TrimSpace(chunk.String()); s != "" {
			chunks = append(chunks, s)
		}
		chunk.Reset()
	}
	for piece := range pieces(text, max(size/4, utf8.UTFMax)) {
		if chunk.Len()+len(piece) > 2*size {
			end()
		}
		chunk.WriteString(piece)
		// A chunk of less than half the size goes on; behind that, about every third piece ends one.
		if chunk.Len() >= size/2 && sha256.Sum256([]byte(strings.TrimSpace(piece)))[0] < 256/3 {
			end()
		}
	}
	end()
	return chunks
}

// pieces yields lines, and the sentences or words of lines that are longer than most.
func pieces(text string, most int) iter.Seq[string] {
	return func(yield func(string) bool) {
		for line := range strings.Lines(text) {
			for len(line) > most {
				n := strings.LastIndex(line[:most], ". ") + 2
				if n < 2 {
					n = strings.LastIndex(line[:most], " ") + 1
				}
				if n < 1 {
					for n = most; !utf8.RuneStart(line[n]) && n > most-utf8.UTFMax; n-- {
					}
				}
				if !yield(line[:n]) {
					return
				}
				line = line[n:]
			}
			if !yield(line) {
				return
			}
		}
	}
}
