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
)

var rules = []rule{
	{name: "it reads its documents", check: readsDocuments},
	{name: "it neither panics nor hangs", check: ends},
	{name: "links are absolute", check: absolute},
	{name: "links are distinct", check: distinct},
	{name: "strings are UTF-8", check: isUTF8},
	{name: "what it returns is bounded", check: bounded},
	{name: "the limit on links holds", limited: true, check: limitHolds},
	{name: "the content is not changed", check: notChanged},
	{name: "the body is not kept", check: notKept},
	{name: "same content, same result", check: deterministic},
	{name: "an error fails that page only", check: independent},
	{name: "it can be used concurrently", check: concurrent},
	{name: "a done context is noticed", check: noticesDone},
	{name: "a context that ends meanwhile is noticed", check: noticesEnd},
}

func readsDocuments(k *kit) error {
	p := k.h.New()
	for i, c := range k.h.Documents {
		got, err := k.read(k.ctx, p, c)
		if err != nil {
			return fmt.Errorf("document %d: %w", i, err)
		}
		if got.Title == "" && got.Text == "" && len(got.Outlinks) == 0 && len(got.Meta) == 0 {
			return fmt.Errorf("document %d: the parser found nothing", i)
		}
	}
	return nil
}

func ends(k *kit) error {
	return k.each(func(string, page.Content, page.Parsed) error { return nil })
}

func absolute(k *kit) error {
	return k.each(func(_ string, _ page.Content, got page.Parsed) error {
		for _, l := range targets(got) {
			u, err := url.Parse(l)
			if err != nil {
				return fmt.Errorf("link %q: %w", abbreviate(l), err)
			}
			if !u.IsAbs() {
				return fmt.Errorf("link %q is not absolute", abbreviate(l))
			}
		}
		return nil
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

func distinct(k *kit) error {
	return k.each(func(_ string, _ page.Content, got page.Parsed) error {
		seen := make(map[string]bool, len(got.Outlinks))
		for _, l := range got.Outlinks {
			if seen[l.URL] {
				return fmt.Errorf("link %q comes twice", abbreviate(l.URL))
			}
			seen[l.URL] = true
		}
		return nil
	})
}

func isUTF8(k *kit) error {
	return k.each(func(_ string, _ page.Content, got page.Parsed) error {
		for s := range texts(&got) {
			if !utf8.ValidString(*s) {
				return fmt.Errorf("%q is not UTF-8", abbreviate(*s))
			}
		}
		return nil
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

func bounded(k *kit) error {
	return k.each(func(_ string, c page.Content, got page.Parsed) error {
		size := 0
		for s := range texts(&got) {
			size += len(*s)
		}
		if limit := boundFixed + boundFactor*len(c.Body); size > limit {
			return fmt.Errorf("%d bytes of results from a body of %d bytes", size, len(c.Body))
		}
		return nil
	})
}

func limitHolds(k *kit) error {
	for i, c := range k.h.Documents {
		whole, err := k.read(k.ctx, k.h.New(), c)
		if err != nil || len(whole.Outlinks) < 2 {
			continue
		}
		n := len(whole.Outlinks) / 2
		got, err := k.read(k.ctx, k.h.Limited(n), c)
		if err != nil {
			return fmt.Errorf("document %d, limit of %d links: %w", i, n, err)
		}
		if len(got.Outlinks) > n {
			return fmt.Errorf("document %d: got %d links; the limit is %d", i, len(got.Outlinks), n)
		}
		if got.OutlinksCut == 0 {
			return fmt.Errorf("document %d: links were left out, but OutlinksCut is 0", i)
		}
		for j, l := range got.Outlinks {
			if l.URL != whole.Outlinks[j].URL {
				return fmt.Errorf("document %d: with a limit, other links come first", i)
			}
		}
		return nil
	}
	return errors.New("no document of the harness has two links")
}

func notChanged(k *kit) error {
	p := k.h.New()
	for name, c := range k.all() {
		given := c
		given.Body = bytes.Clone(c.Body)
		if _, err := k.readInPlace(k.ctx, p, &given); errors.Is(err, errBroken) {
			return fmt.Errorf("%s: %w", name, err)
		}
		if !bytes.Equal(given.Body, c.Body) {
			return fmt.Errorf("%s: the parser changed the body", name)
		}
		given.Body = c.Body
		if !reflect.DeepEqual(given, c) {
			return fmt.Errorf("%s: the parser changed the content", name)
		}
	}
	return nil
}

func notKept(k *kit) error {
	p := k.h.New()
	for name, c := range k.all() {
		c.Body = bytes.Clone(c.Body)
		got, err := k.readInPlace(k.ctx, p, &c)
		if errors.Is(err, errBroken) {
			return fmt.Errorf("%s: %w", name, err)
		}
		before := clone(got)
		for i := range c.Body {
			c.Body[i] = '#'
		}
		if !reflect.DeepEqual(got, before) {
			return fmt.Errorf("%s: the result changed when the body was overwritten", name)
		}
	}
	return nil
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

func deterministic(k *kit) error {
	p := k.h.New()
	return k.each(func(_ string, c page.Content, first page.Parsed) error {
		for _, p := range []struct {
			who string
			get func() (page.Parsed, error)
		}{
			{"the same parser", func() (page.Parsed, error) { return k.read(k.ctx, p, c) }},
			{"the same parser, asked again,", func() (page.Parsed, error) { return k.read(k.ctx, p, c) }},
			{"another parser", func() (page.Parsed, error) { return k.read(k.ctx, k.h.New(), c) }},
		} {
			got, err := p.get()
			if err != nil {
				return fmt.Errorf("%s fails: %w", p.who, err)
			}
			if !reflect.DeepEqual(got, first) {
				return fmt.Errorf("%s returns a different result", p.who)
			}
		}
		return nil
	})
}

func independent(k *kit) error {
	p, c := k.h.New(), k.h.Documents[0]
	want, err := k.read(k.ctx, p, c)
	if err != nil {
		return fmt.Errorf("document 0: %w", err)
	}
	for name, body := range Hostile(k.h.Size) {
		if _, err := k.read(k.ctx, p, k.hostile(body)); errors.Is(err, errBroken) {
			return fmt.Errorf("%s: %w", name, err)
		}
		got, err := k.read(k.ctx, p, c)
		if err != nil {
			return fmt.Errorf("document 0 fails after %s: %w", name, err)
		}
		if !reflect.DeepEqual(got, want) {
			return fmt.Errorf("document 0 has a different result after %s", name)
		}
	}
	return nil
}

func concurrent(k *kit) error {
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
		got, err := k.read(k.ctx, k.h.New(), c)
		if errors.Is(err, errBroken) {
			return fmt.Errorf("%s: %w", name, err)
		}
		docs = append(docs, document{name, c, got, err})
	}
	p := k.h.New()
	errs := make([]error, readers)
	var wg sync.WaitGroup
	for r := range readers {
		wg.Go(func() {
			for i := range rounds * len(docs) {
				d := docs[(i+r*len(docs)/readers)%len(docs)]
				got, err := k.read(k.ctx, p, d.c)
				if (err != nil) != (d.err != nil) || err == nil && !reflect.DeepEqual(got, d.want) {
					errs[r] = fmt.Errorf("%s has a different result while others are parsed", d.name)
					return
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func noticesDone(k *kit) error {
	ctx, cancel := context.WithCancel(k.ctx)
	cancel()
	return k.notices(ctx)
}

func noticesEnd(k *kit) error {
	return k.notices(&ending{Context: k.ctx, looks: 3, done: make(chan struct{})})
}

// notices requires that a parser does not read a long document to its end if the
// context is done at the start or later.
func (k *kit) notices(ctx context.Context) error {
	const size = 4 << 20 // long enough for a parser to check its context
	c := k.h.Documents[0]
	if len(c.Body) == 0 {
		return errors.New("document 0 is empty")
	}
	c.Body = bytes.Repeat(c.Body, size/len(c.Body)+1)
	if _, err := k.read(k.ctx, k.h.New(), c); err != nil {
		if errors.Is(err, errBroken) {
			return err
		}
		return nil // many documents in a row are none
	}
	got, err := k.read(ctx, k.h.New(), c)
	switch {
	case errors.Is(err, errBroken):
		return err
	case err != nil && (ctx.Err() == nil || !errors.Is(err, ctx.Err())):
		return fmt.Errorf("the error is %v, want that of the context", err)
	case err == nil && !got.Truncated:
		return fmt.Errorf("all %d bytes were read although the context was done", len(c.Body))
	}
	return nil
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
