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
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/segment"
)

// Options say what to index. The zero value indexes every segment, and deletes
// what is no longer there.
type Options struct {
	// Segments are the segments to read; nil means all that were fetched and
	// parsed.
	Segments []string
	// DeleteGone deletes pages that are gone, redirect, are duplicates or orphans.
	// Default: on. (Nutch: indexer.delete, -deleteGone; off.)
	DeleteGone Switch
	// DeleteRobotsNoIndex deletes pages that ask not to be indexed, as they were when
	// their content last came. If the X-Robots-Tag of an answer "not modified" begins to
	// forbid indexing, or ceases to, a fetch that parses requests the content, too. The end
	// of a time (unavailable_after) is only seen if Segments include that content.
	// Off indexes them. Default: on. (Nutch: indexer.delete.robots.noindex; off.)
	DeleteRobotsNoIndex Switch
	// DeleteFailedParse deletes pages that were fetched but could not be parsed.
	// Default: on. (Nutch: parser.delete.failed.parse; off.)
	DeleteFailedParse Switch
	// SkipNotModified leaves alone the documents of db_notmodified pages, for an
	// index that already has them. (Nutch: indexer.skip.notmodified.)
	SkipNotModified bool
	// Accept returns the spelling of a URL under which its page is indexed, and
	// whether it is indexed at all. Of pages that get the same spelling one is
	// indexed: one that is there, if any is, and of those the one in the newest
	// segment. Nil keeps all as they are. (Nutch: -normalize, -filter.)
	Accept func(url string) (string, bool)
	// Filter sees each document before it is written, and may change it. If it
	// returns false, the document is not written; with DeleteFiltered it is
	// deleted. An error ends the run. (Nutch: the indexing filters;
	// indexer.delete.skipped.by.indexingfilter.)
	Filter         func(ctx context.Context, d *Document) (keep bool, err error)
	DeleteFiltered bool
	// Scoring gives each document its Boost. Nil gives none. (Nutch: indexerScore.)
	Scoring scoring.Filter
	// AddBinaryContent adds the bytes that were fetched to the document. (Nutch:
	// -addBinaryContent.)
	AddBinaryContent bool
	// NoCommit leaves the Commit to the caller. (Nutch: -noCommit.)
	NoCommit bool
	// SortMemory limits the bytes held in memory for finding out which visit to a
	// page decides, if there are several; zero means 64 MiB.
	SortMemory int
	// TempDir is where what does not fit is written; empty means os.TempDir.
	// No file is left there; on Linux not even if the process is killed.
	TempDir string
	// NutchCompat decides as Nutch does: nothing is deleted unless that is
	// switched on; whether a page asks not to be indexed is checked first; the
	// outcome of the visit counts along with the record, so that a page without a
	// record is indexed, as is an orphan and, with DeleteGone off, a duplicate; a
	// visit with a transient failure hides the older ones; a page without text is
	// left out; and an anchor appears once for each host that has it. (In Nutch,
	// with several segments, chance decides which visit to a page counts; here it
	// is the newest that brought more than not_modified.)
	NutchCompat bool
}

// Report says what was written.
type Report struct {
	// Segments counts the segments that were read, Skipped those that were not
	// fetched and parsed yet.
	Segments, Skipped int
	// Documents and Deleted count what was passed to the writer. Deleted is the
	// sum of the next seven.
	Documents, Deleted int
	// Documents were deleted because their pages are gone, redirect, are
	// duplicates or orphans, could not be parsed, ask not to be indexed, or were
	// filtered.
	Gone, Redirects, Duplicates, Orphans, FailedParse, NoIndex, FilteredDeleted int
	// Unparsed counts pages that were fetched but have no text to index,
	// NotModified those left alone because of SkipNotModified.
	Unparsed, NotModified int
	// Filtered counts the documents that Filter kept out, deleted or not;
	// Rejected the pages that Accept kept out.
	Filtered, Rejected int
}

// Run writes a document for each page that was fetched and is still there, from
// the newest segment with its content, and a deletion for each page that is not,
// then it commits. links may be nil, which leaves out the anchors. By default the
// record decides whether the page exists at all:
//
//	record                   visit                        in the index
//	none, db_gone            any                          deleted
//	db_redir_*               any                          deleted
//	db_duplicate             any                          deleted
//	db_orphan                any                          deleted
//	db_parse_failed          any                          deleted
//	another                  not modified, failed for now as the next older segment says
//	another, visited since   gone, redirect               left as it is
//	another                  gone                         deleted
//	another                  redirect                     deleted
//	another                  success, not parsable        deleted
//	another                  success, not parsed          left as it is
//	another                  success, asks not to be      deleted
//	db_notmodified           success                      written, or left with SkipNotModified
//	another                  success                      written
//
// Where a deletion is switched off the index is left as it is, except that a page
// that asks not to be indexed is then indexed. A page that asks for this from some
// time on counts as asking if it was visited after that, modified or not.
//
// With NutchCompat the rules are those of Nutch's indexer, in its order: see
// [Options].
func Run(ctx context.Context, crawl crawldb.Store, links linkdb.Store, segments segment.Store, w Writer, o Options) (Report, error) {
	j := job{crawl: crawl, links: links, segments: segments, w: w, o: o}
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
}

func (j *job) run(ctx context.Context) error {
	names, err := j.ready(ctx)
	if err != nil {
		return err
	}
	deciding, err := j.choose(ctx, names)
	if err != nil {
		return err
	}
	defer deciding.close()
	for n, name := range names {
		if err := j.segment(ctx, name, n, deciding); err != nil {
			return err
		}
		j.report.Segments++
	}
	if j.o.NoCommit {
		return nil
	}
	return j.w.Commit(ctx)
}

// ready returns the segments to read, the newest first.
func (j *job) ready(ctx context.Context) ([]string, error) {
	names := slices.Clone(j.o.Segments)
	if names == nil {
		for name, err := range j.segments.List(ctx) {
			if err != nil {
				return nil, err
			}
			names = append(names, name)
		}
	}
	slices.Sort(names)
	slices.Reverse(names)
	var ready []string
	for _, name := range slices.Compact(names) {
		ok, err := j.complete(ctx, name)
		if err != nil {
			return nil, err
		}
		if ok {
			ready = append(ready, name)
			continue
		}
		if slices.Contains(j.o.Segments, name) {
			return nil, fmt.Errorf("segment %s is not fetched and parsed: %w", name, segment.ErrNotFound)
		}
		j.report.Skipped++
	}
	return ready, nil
}

// complete reports whether a segment has all parts that are read.
func (j *job) complete(ctx context.Context, name string) (bool, error) {
	parts := []string{segment.FetchPart, segment.ParseTextPart, segment.ParseDataPart, segment.ParsePart}
	if j.o.AddBinaryContent {
		parts = append(parts, segment.ContentPart)
	}
	for _, part := range parts {
		if ok, err := segment.Committed(ctx, j.segments, name, part); err != nil || !ok {
			return false, err
		}
	}
	return true, nil
}

// segment reads the parts of a segment, number n, side by side.
func (j *job) segment(ctx context.Context, name string, n int, deciding *choice) error {
	texts, stopTexts := iter.Pull2(segment.Blocks[segment.Text](ctx, j.segments, name, 0))
	defer stopTexts()
	data, stopData := iter.Pull2(segment.Blocks[segment.Data](ctx, j.segments, name, 0))
	defer stopData()
	parses, stopParses := iter.Pull2(segment.Blocks[segment.Parse](ctx, j.segments, name, 0))
	defer stopParses()
	contents, stopContents := iter.Pull2(segment.Blocks[page.Content](ctx, j.segments, name, 0))
	defer stopContents()
	visit := -1
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
		p, err := pull(parses, name, segment.ParsePart)
		if err != nil {
			return err
		}
		var c []page.Content
		if j.o.AddBinaryContent {
			if c, err = pull(contents, name, segment.ContentPart); err != nil {
				return err
			}
		}
		for i := range visits {
			in := input{Visit: &visits[i]}
			url := in.Visit.URL
			if len(t) > 0 && t[0].URL == url {
				in.Text, t = &t[0], t[1:]
			}
			if len(d) > 0 && d[0].URL == url {
				in.Data, d = &d[0], d[1:]
			}
			if len(p) > 0 && p[0].URL == url {
				in.Parse, p = &p[0], p[1:]
			}
			var content []byte
			if len(c) > 0 && c[0].URL == url {
				content, c = c[0].Body, c[1:]
			}
			visit++
			document, ok, err := deciding.takes(n, visit, url)
			if err != nil {
				return err
			}
			if !ok {
				continue
			}
			if err := j.page(ctx, name, document, in, content); err != nil {
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

// page decides about a document by one visit. What is in the index afterwards depends
// on the current record.
func (j *job) page(ctx context.Context, name, url string, in input, content []byte) error {
	rec, err := j.crawl.Get(ctx, in.Visit.URL)
	if err == nil {
		in.Record = &rec
	} else if !errors.Is(err, crawldb.ErrNotFound) {
		return err
	}
	d := decide(in, j.o)
	switch d {
	case add:
		return j.add(ctx, name, url, in, content)
	case leaveUnparsed:
		j.report.Unparsed++
	case leaveNotModified:
		j.report.NotModified++
	case deleteGone:
		j.report.Gone++
	case deleteRedirect:
		j.report.Redirects++
	case deleteDuplicate:
		j.report.Duplicates++
	case deleteOrphan:
		j.report.Orphans++
	case deleteFailedParse:
		j.report.FailedParse++
	case deleteNoIndex:
		j.report.NoIndex++
	}
	if d.deletes() {
		return j.remove(ctx, url)
	}
	return nil
}

func (j *job) add(ctx context.Context, name, url string, in input, content []byte) error {
	v := in.Visit
	doc := &Document{
		URL: url, Title: in.Data.Parsed.Title, Host: crawldb.Host(url),
		ContentType: v.ContentType, Fetched: v.Time, Segment: name, BinaryContent: content,
		NoArchive: in.Data.Parsed.NoArchive, UnavailableAfter: in.Data.Parsed.UnavailableAfter,
		Usage: in.Data.Parsed.Usage(), Fields: in.Data.Parsed.Fields(),
	}
	if content != nil {
		doc.Charset = in.Data.Parsed.Charset
	}
	if rec := in.Record; rec != nil {
		doc.Modified, doc.Signature, doc.Score = rec.Modified, hex.EncodeToString(rec.Signature), rec.Score
	} else if in.Parse != nil {
		doc.Signature = hex.EncodeToString(in.Parse.Signature)
	}
	if in.Text != nil {
		doc.Text = in.Text.Text
	}
	if j.o.Scoring != nil {
		doc.Boost = j.o.Scoring.Boost(in.Record, 1)
	}
	if j.links != nil {
		inlinks, err := j.links.Get(ctx, v.URL)
		if err != nil {
			return err
		}
		doc.Anchors = linkdb.Anchors(inlinks, !j.o.NutchCompat)
	}
	if j.o.Filter != nil {
		keep, err := j.o.Filter(ctx, doc)
		if err != nil {
			return fmt.Errorf("filter %s: %w", url, err)
		}
		if !keep {
			j.report.Filtered++
			if !j.o.DeleteFiltered {
				return nil
			}
			j.report.FilteredDeleted++
			return j.remove(ctx, url)
		}
	}
	j.report.Documents++
	return j.w.Write(ctx, doc)
}

func (j *job) remove(ctx context.Context, url string) error {
	j.report.Deleted++
	return j.w.Delete(ctx, url)
}
