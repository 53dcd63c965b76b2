package index

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/linkdb"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/segment"
)

// Options say what to index. The zero value indexes every segment.
type Options struct {
	// Segments are the segments to read; nil means all that were fetched and
	// parsed.
	Segments []string
	// KeepGone writes no deletions for pages that are gone, redirect, or are
	// duplicates. (Nutch: indexer.delete, the other way round.)
	KeepGone bool
	// IgnoreRobots indexes pages that ask not to be. (Nutch:
	// indexer.delete.robots.noindex, the other way round.)
	IgnoreRobots bool
}

// Report says what was written.
type Report struct {
	// Segments counts the segments that were read, Skipped those that were not
	// fetched and parsed yet.
	Segments, Skipped int
	// Documents and Deleted count what the writer was given; NoIndex those of
	// Deleted whose page asks not to be indexed.
	Documents, Deleted, NoIndex int
	// Unparsed counts pages that were fetched but have no text to index.
	Unparsed int
}

// Run writes a document for each page that was fetched and is still there, from
// the newest segment that holds its content, and a deletion for each page that
// is not; then it commits. links may be nil, which leaves out the anchors.
func Run(ctx context.Context, crawl crawldb.Store, links linkdb.Store, segments segment.Store, w Writer, o Options) (Report, error) {
	j := job{crawl: crawl, links: links, segments: segments, w: w, o: o, seen: map[string]struct{}{}}
	err := j.run(ctx)
	if err != nil {
		err = fmt.Errorf("index: %w", err)
	}
	return j.report, err
}

type job struct {
	crawl    crawldb.Store
	links    linkdb.Store
	segments segment.Store
	w        Writer
	o        Options
	report   Report
	// seen holds the pages that a newer segment has decided.
	seen map[string]struct{}
}

func (j *job) run(ctx context.Context) error {
	names := slices.Clone(j.o.Segments)
	if names == nil {
		for name, err := range j.segments.List(ctx) {
			if err != nil {
				return err
			}
			names = append(names, name)
		}
	}
	slices.Sort(names)
	slices.Reverse(names)
	for _, name := range slices.Compact(names) {
		ready := true
		for _, part := range []string{segment.FetchPart, segment.ParseTextPart, segment.ParseDataPart, segment.ParsePart} {
			ok, err := segment.Committed(ctx, j.segments, name, part)
			if err != nil {
				return err
			}
			ready = ready && ok
		}
		if !ready {
			if slices.Contains(j.o.Segments, name) {
				return fmt.Errorf("segment %s is not fetched and parsed: %w", name, segment.ErrNotFound)
			}
			j.report.Skipped++
			continue
		}
		if err := j.segment(ctx, name); err != nil {
			return err
		}
		j.report.Segments++
	}
	return j.w.Commit(ctx)
}

// segment walks the parts of a segment side by side.
func (j *job) segment(ctx context.Context, name string) error {
	texts, stopTexts := iter.Pull2(segment.Blocks[segment.Text](ctx, j.segments, name, 0))
	defer stopTexts()
	data, stopData := iter.Pull2(segment.Blocks[segment.Data](ctx, j.segments, name, 0))
	defer stopData()
	for visits, err := range segment.Blocks[segment.Visit](ctx, j.segments, name, 0) {
		if err != nil {
			return err
		}
		t, err := pull(texts, name, segment.ParseTextPart)
		if err != nil {
			return err
		}
		d, err := pull(data, name, segment.ParseDataPart)
		if err != nil {
			return err
		}
		for i := range visits {
			v := &visits[i]
			var text *segment.Text
			var parsed *segment.Data
			if len(t) > 0 && t[0].URL == v.URL {
				text, t = &t[0], t[1:]
			}
			if len(d) > 0 && d[0].URL == v.URL {
				parsed, d = &d[0], d[1:]
			}
			if err := j.page(ctx, name, v, text, parsed); err != nil {
				return err
			}
		}
	}
	return nil
}

func pull[T any](next func() ([]T, error, bool), name, part string) ([]T, error) {
	block, err, ok := next()
	if err == nil && !ok {
		err = &segment.CorruptError{File: name + "/" + part, Err: errors.New("fewer blocks than " + segment.FetchPart)}
	}
	return block, err
}

// page decides about one visit. What is in the index afterwards depends on the
// record as it is now.
func (j *job) page(ctx context.Context, name string, v *segment.Visit, text *segment.Text, data *segment.Data) error {
	code := v.Outcome.Code
	if code == protocol.NotModified || code.Transient() {
		return nil // an older segment knows more
	}
	if _, ok := j.seen[v.URL]; ok {
		return nil
	}
	j.seen[v.URL] = struct{}{}
	rec, err := j.crawl.Get(ctx, v.URL)
	if err != nil && !errors.Is(err, crawldb.ErrNotFound) {
		return err
	}
	there := err == nil && (rec.Status == crawldb.Fetched || rec.Status == crawldb.NotModified || rec.Status == crawldb.Unfetched)
	if code != protocol.Success || !there {
		return j.remove(ctx, v.URL)
	}
	if data == nil {
		j.report.Unparsed++
		return nil
	}
	if data.Parsed.NoIndex && !j.o.IgnoreRobots {
		j.report.NoIndex++
		return j.remove(ctx, v.URL)
	}
	doc := &Document{
		URL: v.URL, Title: data.Parsed.Title, Host: crawldb.Host(v.URL),
		ContentType: v.ContentType, Fetched: v.Time, Modified: rec.Modified,
		Signature: hex.EncodeToString(rec.Signature), Score: rec.Score, Segment: name,
	}
	if text != nil {
		doc.Text = text.Text
	}
	if j.links != nil {
		if doc.Anchors, err = j.anchors(ctx, v.URL); err != nil {
			return err
		}
	}
	j.report.Documents++
	return j.w.Write(ctx, doc)
}

func (j *job) remove(ctx context.Context, url string) error {
	if j.o.KeepGone {
		return nil
	}
	j.report.Deleted++
	return j.w.Delete(ctx, url)
}

// anchors returns the distinct texts of the links to a page.
func (j *job) anchors(ctx context.Context, url string) ([]string, error) {
	inlinks, err := j.links.Get(ctx, url)
	if err != nil {
		return nil, err
	}
	var out []string
	seen := map[string]struct{}{}
	for _, l := range inlinks {
		if _, ok := seen[l.Anchor]; !ok && l.Anchor != "" {
			seen[l.Anchor] = struct{}{}
			out = append(out, l.Anchor)
		}
	}
	return out, nil
}
