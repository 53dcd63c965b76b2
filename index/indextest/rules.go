package indextest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/recrawl/recrawl/index"
)

// same demands that all fields are equal.
func same(want, got index.Document) error {
	fields := func(d index.Document) map[string]any {
		return map[string]any{
			"URL": d.URL, "Title": d.Title, "Text": d.Text, "Anchors": fmt.Sprintf("%q", d.Anchors), "Host": d.Host, "ContentType": d.ContentType,
			"Fetched": d.Fetched.UTC(), "Modified": d.Modified.UTC(), "Signature": d.Signature, "Score": d.Score, "Segment": d.Segment,
		}
	}
	g := fields(got)
	for name, w := range fields(want) {
		if g[name] != w {
			return fmt.Errorf("%s is %.100q, want %.100q", name, fmt.Sprint(g[name]), fmt.Sprint(w))
		}
	}
	return nil
}

func full(url string) index.Document {
	return index.Document{
		URL: url, Title: "Title of " + url, Text: "Some text.", Anchors: []string{"second", "first"}, Host: "example.com", ContentType: "text/html",
		Fetched: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Modified: time.Date(2025, 12, 31, 23, 59, 59, 0, time.UTC),
		Signature: "0123456789abcdef", Score: 0.25, Segment: "20260102030405",
	}
}

func titled(url, title string) index.Document { return index.Document{URL: url, Title: title} }

const (
	a = "http://example.com/a"
	b = "http://example.com/a/b"
)

func documentIsThereAfterCommit(c *check) {
	c.write(titled(a, "one"))
	c.commit()
	c.holds("after Commit", titled(a, "one"))
	c.write(titled(b, "two"))
	c.commit()
	c.holds("after a second Commit", titled(a, "one"), titled(b, "two"))
}

func everyFieldIsKept(c *check) {
	c.write(full(a))
	c.write(index.Document{URL: b})
	c.commit()
	c.holds("after Commit", full(a), index.Document{URL: b})
}

func textIsKeptUnchanged(c *check) {
	var want []index.Document
	for i, s := range []string{
		"", "<b>&amp;\"'</b>", "line\nline\r\n\ttab", "\u2028\u2029", "naïve Ελλάδα 東京 🙂", "nul \x00 and \x7f", `{"deleted":true}`, strings.Repeat("long ", 1<<18),
	} {
		d := titled(fmt.Sprintf("http://example.com/?text=%d&x=<y>", i), s)
		d.Text, d.Anchors = s, []string{s + "."}
		c.write(d)
		want = append(want, d)
	}
	c.commit()
	c.holds("after Commit", want...)
}

func textThatIsNotUTF8DoesNoHarm(c *check) {
	d := titled(a, "a\xff\xc0\x80b")
	d.Text = string([]byte{0xed, 0xa0, 0x80, 0xf8})
	c.write(d)
	c.write(full(b))
	c.commit()
	docs := c.read()
	if _, ok := docs[a]; !ok || len(docs) != 2 {
		c.Failf("got %d documents, want the one with bad text and another", len(docs))
	}
	c.Must(c.h.Same(full(b), docs[b]), "the other document")
}

func lastWriteOfURLWins(c *check) {
	c.write(full(a))
	c.write(titled(a, "two"))
	c.commit()
	c.holds("written twice before Commit", titled(a, "two"))
	c.write(titled(a, "three"))
	c.commit()
	c.holds("written again after Commit", titled(a, "three"))
}

func deleteRemovesDocument(c *check) {
	c.write(titled(a, "one"))
	c.commit()
	c.delete(a)
	c.commit()
	c.holds("deleted after Commit")
	c.write(titled(a, "two"))
	c.delete(a)
	c.commit()
	c.holds("deleted before Commit")
}

func deleteRemovesNoOtherDocument(c *check) {
	c.write(full(a))
	c.write(full(b))
	c.write(full(a + "?q"))
	c.commit()
	c.delete(a)
	c.commit()
	c.holds("after Delete", full(b), full(a+"?q"))
}

func documentCanComeBack(c *check) {
	c.write(titled(a, "one"))
	c.delete(a)
	c.write(titled(a, "two"))
	c.commit()
	c.holds("before Commit", titled(a, "two"))
	c.delete(a)
	c.commit()
	c.write(titled(a, "three"))
	c.commit()
	c.holds("after Commit", titled(a, "three"))
}

func deleteOfMissingDocumentIsNoError(c *check) {
	c.delete(a)
	c.delete(a)
	c.commit()
	c.holds("after Commit")
	c.delete(a)
	c.write(full(b))
	c.commit()
	c.holds("after another Commit", full(b))
}

func commitOfNothingIsNoError(c *check) {
	c.commit()
	c.commit()
	c.write(full(a))
	c.commit()
	c.commit()
	c.holds("after Commit", full(a))
}

func callerMayChangeDocumentAfterWrite(c *check) {
	d := full(a)
	c.Must(c.w.Write(c.Ctx, &d), "Write")
	d.Title, d.Anchors[0] = "changed", "changed"
	d.URL = b
	c.commit()
	c.holds("after the document was changed", full(a))
}

func writeDoesNotChangeDocument(c *check) {
	d := full(a)
	d.Fetched = d.Fetched.In(time.FixedZone("", 3600))
	kept := d
	kept.Anchors = slices.Clone(d.Anchors)
	c.Must(c.w.Write(c.Ctx, &d), "Write")
	c.commit()
	if d.Fetched != kept.Fetched {
		c.Failf("Fetched was changed to %v", d.Fetched)
	}
	c.Must(same(kept, d), "the document of the caller")
}

func doneContextEndsEveryMethod(c *check) {
	c.write(titled(a, "one"))
	done, cancel := context.WithCancel(c.Ctx)
	cancel()
	late, stop := context.WithDeadline(c.Ctx, time.Unix(0, 0))
	defer stop()
	d := titled(b, "late")
	for _, ctx := range []context.Context{done, late} {
		for name, err := range map[string]error{
			"Write": c.w.Write(ctx, &d), "Delete": c.w.Delete(ctx, b), "Commit": c.w.Commit(ctx),
		} {
			if !errors.Is(err, ctx.Err()) {
				c.Failf("%s: error is %v, want %v", name, err, ctx.Err())
			}
		}
	}
	c.delete(b)
	c.commit()
	c.holds("after a Commit that was cancelled", titled(a, "one"))
}

func committedDocumentsOutliveWriter(c *check) {
	c.write(full(a))
	c.write(full(b))
	c.commit()
	c.delete(b)
	c.commit()
	c.reopen()
	c.holds("after Reopen", full(a))
	c.write(titled(a, "two"))
	c.commit()
	c.reopen()
	c.holds("after another Reopen", titled(a, "two"))
}

func uncommittedChangesAreThereWholeOrNotAtAll(c *check) {
	c.write(titled(a, "one"))
	c.commit()
	const n = 200
	for i := range n {
		d := full(fmt.Sprintf("%s/%d", b, i))
		d.Text = strings.Repeat("text ", 1000)
		c.write(d)
	}
	c.reopen()
	docs := c.read()
	if err := c.h.Same(titled(a, "one"), docs[a]); err != nil {
		c.Failf("the committed documents: %w", err)
	}
	for url, got := range docs {
		if url == a {
			continue
		}
		want := full(url)
		want.Text = strings.Repeat("text ", 1000)
		c.Must(c.h.Same(want, got), "%s", url)
	}
}

func randomWritesAndDeletionsAgreeWithMap(c *check) {
	random := rand.New(rand.NewPCG(c.h.Seed, 1))
	model := make(map[string]index.Document)
	for step := range 400 {
		url := fmt.Sprintf("http://example.com/%d", random.IntN(30))
		switch n := random.IntN(10); {
		case n < 5:
			d := titled(url, fmt.Sprint("step ", step))
			c.write(d)
			model[url] = d
		case n < 8:
			c.delete(url)
			delete(model, url)
		default:
			c.commit()
			var want []index.Document
			for _, d := range model {
				want = append(want, d)
			}
			c.holds(fmt.Sprintf("seed %d, step %d", c.h.Seed, step), want...)
		}
	}
}
