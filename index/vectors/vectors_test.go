package vectors_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/recrawl/recrawl/index"
	"github.com/recrawl/recrawl/index/indextest"
	"github.com/recrawl/recrawl/index/vectors"
)

// table is a Store in memory.
type table map[string]map[string]vectors.Chunk

func (s table) IDs(_ context.Context, url string) ([]string, error) {
	return slices.Sorted(maps.Keys(s[url])), nil
}

func (s table) Put(_ context.Context, chunks []vectors.Chunk) error {
	for _, c := range chunks {
		if s[c.URL] == nil {
			s[c.URL] = map[string]vectors.Chunk{}
		}
		s[c.URL][c.ID] = c
	}
	return nil
}

func (s table) Remove(_ context.Context, url string, ids []string) error {
	for _, id := range ids {
		delete(s[url], id)
	}
	return nil
}

func (s table) Commit(ctx context.Context) error { return ctx.Err() }

func lengths(_ context.Context, texts []string) (all [][]float32, err error) {
	for _, t := range texts {
		all = append(all, []float32{float32(len(t))})
	}
	return all, nil
}

func article() string {
	var b strings.Builder
	for i := range 200 {
		fmt.Fprintf(&b, "Paragraph %d is about a matter of its own, number %d of many.\n", i, i*7919%1000)
	}
	return b.String()
}

// A change in the midst of a page has one or two chunks embedded again, wherever it moves the rest.
func TestOnlyChangedChunksAreEmbeddedAgain(t *testing.T) {
	s := table{}
	w := vectors.New(s, lengths, vectors.Options{ChunkBytes: 500})
	put := func(text string) (embedded int) {
		t.Helper()
		before := w.Embedded()
		if err := w.Write(t.Context(), &index.Document{URL: "http://a.example/", Title: "A", Text: text}); err != nil {
			t.Fatal(err)
		}
		if err := w.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		return w.Embedded() - before
	}
	text := article()
	all := put(text)
	if all < 10 || len(s["http://a.example/"]) != all {
		t.Fatalf("%d chunks embedded, %d kept", all, len(s["http://a.example/"]))
	}
	if n := put(text); n != 0 {
		t.Errorf("%d embedded again without a change", n)
	}
	for name, changed := range map[string]string{
		"a line before": "A new line at the top.\n" + text,
		"a line within": strings.Replace(text, "Paragraph 100 is", "Paragraph 100 was", 1),
		"a line less":   strings.Replace(text, "Paragraph 50 is about a matter of its own, number 950 of many.\n", "", 1),
	} {
		put(text)
		if n := put(changed); n < 1 || n > 3 {
			t.Errorf("%s: %d of %d chunks embedded again", name, n, all)
		}
	}
	if err := w.Delete(t.Context(), "http://a.example/"); err != nil || len(s["http://a.example/"]) != 0 {
		t.Errorf("%d chunks left, %v", len(s["http://a.example/"]), err)
	}
}

func TestChunksAreBoundedAndWhole(t *testing.T) {
	for name, text := range map[string]string{
		"article": article(), "no spaces": strings.Repeat("ä東", 3000), "one line": strings.Repeat("word. And more ", 2000), "empty": "", "blank": "\n \n",
	} {
		var got strings.Builder
		for _, c := range vectors.Split(text, 400) {
			if len(c) > 800 || strings.ToValidUTF8(c, "") != c {
				t.Errorf("%s: a chunk of %d bytes", name, len(c))
			}
			got.WriteString(c)
		}
		squeeze := func(s string) string { return strings.Join(strings.Fields(s), "") }
		if squeeze(got.String()) != squeeze(text) {
			t.Errorf("%s: text was lost or made", name)
		}
	}
}

func TestEmbedErrorIsReported(t *testing.T) {
	down := errors.New("down")
	w := vectors.New(table{}, func(context.Context, []string) ([][]float32, error) { return nil, down }, vectors.Options{})
	if err := w.Write(t.Context(), &index.Document{URL: "a", Text: "text"}); err != nil {
		t.Fatal(err)
	}
	if err := w.Commit(t.Context()); !errors.Is(err, down) {
		t.Error(err)
	}
}

// The kit of index writers, as far as chunks keep of documents.
func TestKit(t *testing.T) {
	stores := map[index.Writer]table{}
	indextest.Run(t, indextest.Harness{
		Open: func() (index.Writer, error) {
			s := table{}
			w := vectors.New(s, lengths, vectors.Options{})
			stores[w] = s
			return writerOfTitles{w}, nil
		},
		Reopen: func(w index.Writer) (index.Writer, error) {
			s := stores[w.(writerOfTitles).Writer]
			n := vectors.New(s, lengths, vectors.Options{})
			stores[n] = s
			return writerOfTitles{n}, nil
		},
		Read: func(w index.Writer) (map[string]index.Document, error) {
			docs := map[string]index.Document{}
			for url, chunks := range stores[w.(writerOfTitles).Writer] {
				for _, c := range chunks {
					docs[url] = index.Document{URL: url, Title: strings.TrimPrefix(c.Title, "title ")}
				}
			}
			return docs, nil
		},
		Same: func(want, got index.Document) error {
			if want.URL != got.URL || want.Title != got.Title {
				return fmt.Errorf("%.80q, want %.80q", got.Title, want.Title)
			}
			return nil
		},
	})
}

// writerOfTitles has one chunk of each document: one that changes with its title.
type writerOfTitles struct{ *vectors.Writer }

func (w writerOfTitles) Write(ctx context.Context, d *index.Document) error {
	one := *d
	one.Text = fmt.Sprintf("%x.", d.Title)[:min(2*len(d.Title)+1, 1500)]
	return w.Writer.Write(ctx, &one)
}

func Example() {
	store := table{}
	w := vectors.New(store, lengths, vectors.Options{}) // lengths stands for a model
	ctx := context.Background()
	_ = w.Write(ctx, &index.Document{URL: "https://example.com/", Text: "Gophers dig burrows."})
	fmt.Println(w.Commit(ctx), w.Embedded())
	_ = w.Write(ctx, &index.Document{URL: "https://example.com/", Text: "Gophers dig burrows."})
	fmt.Println(w.Commit(ctx), w.Embedded())
	// Output:
	// <nil> 1
	// <nil> 1
}
