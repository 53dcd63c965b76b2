package parsetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/parse"
)

func readsDocuments(k *check) {
	p := k.h.New()
	for i, c := range k.h.Documents {
		got, err := k.read(k.Ctx, p, c)
		k.Must(err, "document %d", i)
		if got.Title == "" && got.Text == "" && len(got.Outlinks) == 0 && len(got.Meta) == 0 {
			k.Failf("document %d: the parser found nothing", i)
		}
	}
}

func ends(k *check) {
	k.each(func(page.Content, page.Parsed) {})
}

func absolute(k *check) {
	k.each(func(_ page.Content, got page.Parsed) {
		for _, l := range targets(got) {
			u, err := url.Parse(l)
			if err != nil {
				k.Failf("link %q: %w", abbreviate(l), err)
			}
			if !u.IsAbs() {
				k.Failf("link %q is not absolute", abbreviate(l))
			}
		}
	})
}

// targets returns all URLs of a result.
func targets(p page.Parsed) []string {
	var urls []string
	for _, l := range p.Outlinks {
		urls = append(urls, l.URL)
	}
	for _, u := range []string{p.Refresh, p.Canonical} {
		if u != "" {
			urls = append(urls, u)
		}
	}
	return urls
}

func distinct(k *check) {
	k.each(func(_ page.Content, got page.Parsed) {
		seen := make(map[string]bool, len(got.Outlinks))
		for _, l := range got.Outlinks {
			if seen[l.URL] {
				k.Failf("link %q comes twice", abbreviate(l.URL))
			}
			seen[l.URL] = true
		}
	})
}

func isUTF8(k *check) {
	k.each(func(_ page.Content, got page.Parsed) {
		for s := range texts(&got) {
			if !utf8.ValidString(*s) {
				k.Failf("%q is not UTF-8", abbreviate(*s))
			}
		}
	})
}

// texts yields every string of a result.
func texts(p *page.Parsed) func(yield func(*string) bool) {
	return func(yield func(*string) bool) {
		for _, s := range []*string{&p.Title, &p.Text, &p.Refresh, &p.Canonical, &p.Charset} {
			if !yield(s) {
				return
			}
		}
		for i := range p.Outlinks {
			if !yield(&p.Outlinks[i].URL) || !yield(&p.Outlinks[i].Anchor) {
				return
			}
		}
		for i := range p.Meta {
			if !yield(&p.Meta[i].Name) || !yield(&p.Meta[i].Value) {
				return
			}
		}
	}
}

// Limits on what a parser may return: a number of bytes, plus some per byte of the
// body.
const (
	boundFixed  = 16 << 20
	boundFactor = 16
)

func bounded(k *check) {
	k.each(func(c page.Content, got page.Parsed) {
		size := 0
		for s := range texts(&got) {
			size += len(*s)
		}
		if limit := boundFixed + boundFactor*len(c.Body); size > limit {
			k.Failf("%d bytes of results from a body of %d bytes", size, len(c.Body))
		}
	})
}

func limitHolds(k *check) {
	k.Need(k.h.Limited != nil, "Harness.Limited is nil")
	for i, c := range k.h.Documents {
		k.Prefix = fmt.Sprintf("document %d: ", i)
		whole, err := k.read(k.Ctx, k.h.New(), c)
		if err != nil || len(whole.Outlinks) < 2 {
			continue
		}
		n := len(whole.Outlinks) / 2
		got, err := k.read(k.Ctx, k.h.Limited(n), c)
		k.Must(err, "limit of %d links", n)
		if len(got.Outlinks) > n {
			k.Failf("got %d links; the limit is %d", len(got.Outlinks), n)
		}
		if got.OutlinksCut == 0 {
			k.Failf("links were left out, but OutlinksCut is 0")
		}
		for j, l := range got.Outlinks {
			if l.URL != whole.Outlinks[j].URL {
				k.Failf("with a limit, other links come first")
			}
		}
		return
	}
	k.Failf("no document of the harness has two links")
}

func notChanged(k *check) {
	p := k.h.New()
	for _, c := range k.all() {
		given := c
		given.Body = bytes.Clone(c.Body)
		k.readInPlace(k.Ctx, p, &given)
		if !bytes.Equal(given.Body, c.Body) {
			k.Failf("the parser changed the body")
		}
		given.Body = c.Body
		if !reflect.DeepEqual(given, c) {
			k.Failf("the parser changed the content")
		}
	}
}

func notKept(k *check) {
	p := k.h.New()
	for _, c := range k.all() {
		c.Body = bytes.Clone(c.Body)
		got, _ := k.readInPlace(k.Ctx, p, &c)
		first := clone(got)
		for i := range c.Body {
			c.Body[i] = '#'
		}
		if !reflect.DeepEqual(got, first) {
			k.Failf("the result changed when the body was overwritten")
		}
	}
}

// clone copies a result and every byte it refers to.
func clone(p page.Parsed) page.Parsed {
	p.Outlinks = slices.Clone(p.Outlinks)
	p.Meta = slices.Clone(p.Meta)
	for s := range texts(&p) {
		*s = strings.Clone(*s)
	}
	return p
}

func deterministic(k *check) {
	p := k.h.New()
	k.each(func(c page.Content, first page.Parsed) {
		for _, again := range []struct {
			name   string
			parser parse.Parser
		}{
			{"the same parser", p},
			{"the same parser, asked again,", p},
			{"another parser", k.h.New()},
		} {
			got, err := k.read(k.Ctx, again.parser, c)
			k.Must(err, "%s", again.name)
			if !reflect.DeepEqual(got, first) {
				k.Failf("%s returns a different result", again.name)
			}
		}
	})
}

func independent(k *check) {
	p, c := k.h.New(), k.h.Documents[0]
	want, err := k.read(k.Ctx, p, c)
	k.Must(err, "document 0")
	for name, body := range Hostile(k.h.Size) {
		k.Prefix = name + ": "
		k.read(k.Ctx, p, k.hostile(body))
		got, err := k.read(k.Ctx, p, c)
		k.Must(err, "document 0 after it")
		if !reflect.DeepEqual(got, want) {
			k.Failf("document 0 has a different result after it")
		}
	}
}

func concurrent(k *check) {
	const readers, rounds = 8, 2
	type document struct {
		name string
		c    page.Content
		want page.Parsed
		err  error
	}
	var docs []document
	for name, c := range k.all() {
		c.Body = c.Body[:min(len(c.Body), 4096)]
		got, err := k.read(k.Ctx, k.h.New(), c)
		docs = append(docs, document{name, c, got, err})
	}
	k.Prefix = ""
	p := k.h.New()
	k.Together(readers, func(r int) {
		for i := range rounds * len(docs) {
			d := docs[(i+r*len(docs)/readers)%len(docs)]
			got, err := k.read(k.Ctx, p, d.c)
			if (err != nil) != (d.err != nil) || err == nil && !reflect.DeepEqual(got, d.want) {
				k.Failf("%s has a different result while others are parsed", d.name)
			}
		}
	})
}

func noticesDone(k *check) {
	ctx, cancel := context.WithCancel(k.Ctx)
	cancel()
	k.notices(ctx)
}

func noticesEnd(k *check) {
	k.notices(&ending{Context: k.Ctx, looks: 3, done: make(chan struct{})})
}

// notices requires that a parser does not read a long document to its end if the
// context is done at the start or later.
func (k *check) notices(ctx context.Context) {
	const size = 4 << 20 // long enough for a parser to check its context
	c := k.h.Documents[0]
	if len(c.Body) == 0 {
		k.Failf("document 0 is empty")
	}
	c.Body = bytes.Repeat(c.Body, size/len(c.Body)+1)
	if _, err := k.read(k.Ctx, k.h.New(), c); err != nil {
		return // many documents in a row are none
	}
	got, err := k.read(ctx, k.h.New(), c)
	switch {
	case err != nil && (ctx.Err() == nil || !errors.Is(err, ctx.Err())):
		k.Failf("the error is %v, want that of the context", err)
	case err == nil && !got.Truncated:
		k.Failf("all %d bytes were read although the context was done", len(c.Body))
	}
}

// ending is a context that is done after it has been checked a number of times.
type ending struct {
	context.Context
	mu    sync.Mutex
	looks int
	done  chan struct{}
}

func (c *ending) look() (over bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.looks--; c.looks == 0 {
		close(c.done)
	}
	return c.looks <= 0
}

// Done counts as a check, since the caller may select on it.
func (c *ending) Done() <-chan struct{} {
	c.look()
	return c.done
}

func (c *ending) Err() error {
	if c.look() {
		return context.Canceled
	}
	return nil
}

func abbreviate(s string) string {
	if len(s) > 100 {
		return s[:100] + "..."
	}
	return s
}
