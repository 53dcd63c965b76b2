package fetch

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/segment"
)

// Parse is the parse stage for a segment that was fetched without a parser: it
// reads the contents and writes what a fetch that parses would have written.
// It uses the options Parser, Parsing, Signature, Rules, Scoring, Logger and
// those that say which links are kept; Parser is required. It may be interrupted
// and called again, as Run may. A segment that was already parsed is left alone.
func Parse(ctx context.Context, segments segment.Store, name string, o Options) (Report, error) {
	if o.Parser == nil {
		return Report{}, errors.New("fetch: Options.Parser is required to parse")
	}
	o = o.withDefaults()
	r, err := parseSegment(ctx, segments, name, &o)
	if err != nil {
		err = fmt.Errorf("parse %s: %w", name, err)
	}
	return r, err
}

func parseSegment(ctx context.Context, segments segment.Store, name string, o *Options) (Report, error) {
	s := parseStage{content: contentReader{opts: o, parseStage: true}, report: Report{Visits: map[protocol.Code]int{}}}
	err := s.run(ctx, segments, name)
	return s.report, err
}

// parseStage is the parse stage of one segment.
type parseStage struct {
	content contentReader
	from    map[string]crawldb.Datum // the records of the list
	targets targetLinks
	known   origins // whose robots.txt was checked for sitemaps
	report  Report
}

func (s *parseStage) run(ctx context.Context, segments segment.Store, name string) (err error) {
	if s.report.Already, err = segment.Has[segment.Parse](ctx, segments, name); err != nil || s.report.Already {
		return err
	}
	if s.from, err = selected(ctx, segments, name); err != nil {
		return err
	}
	if s.targets, err = readTargetLinks(ctx, segments, name); err != nil {
		return err
	}
	keep, err := commonBlocks(ctx, segments, name, parsedNames())
	if err != nil {
		return err
	}
	w, err := openParsed(ctx, segments, name, wholeName, keep)
	if err != nil {
		return err
	}
	defer w.close()
	nextContent, stop := iter.Pull2(segment.Blocks[page.Content](ctx, segments, name, keep))
	defer stop()
	if err := s.targets.addEarlier(ctx, segments, name, keep); err != nil {
		return err
	}
	for visits, err := range segment.Blocks[segment.Visit](ctx, segments, name, keep) {
		if err != nil {
			return err
		}
		contents, err, ok := nextContent()
		if err != nil {
			return err
		}
		if !ok {
			return &segment.CorruptError{File: name + "/" + segment.ContentPart, Err: errors.New("fewer blocks than " + segment.FetchPart)}
		}
		group, err := s.parse(ctx, visits, contents)
		if err != nil {
			return err
		}
		if err := w.write(ctx, group); err != nil {
			return err
		}
	}
	s.report.Redirects = Redirects{} // which belong to the fetch
	return w.commit(ctx)
}

// parse parses the contents of a block. Not every visit has one.
func (s *parseStage) parse(ctx context.Context, visits []segment.Visit, contents []page.Content) ([]*visitResult, error) {
	group := make([]*visitResult, len(visits))
	for i := range visits {
		v := &visits[i]
		group[i] = &visitResult{visit: *v}
		c := &page.Content{URL: v.URL}
		if len(contents) > 0 && contents[0].URL == v.URL {
			c, contents = &contents[0], contents[1:]
		} else if v.Outcome.Code == protocol.Success {
			continue // fetched with NoContent: nothing to parse
		}
		d, ok := s.from[v.URL]
		if !ok {
			d = s.content.opts.targetRecord(v.URL, s.targets.links[v.URL])
		}
		s.content.read(ctx, group[i], &d, c)
		if err := s.content.addRobotsSitemaps(ctx, &s.known, group[i]); err != nil {
			return nil, err
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		s.targets.add(v, group[i].parse)
		s.report.count(group[i])
	}
	return group, nil
}

// selected returns the records of the fetch list, as they were when selected: the links of a
// page get their share of what it had then.
func selected(ctx context.Context, segments segment.Store, name string) (map[string]crawldb.Datum, error) {
	records := map[string]crawldb.Datum{}
	for d, err := range segment.Records[crawldb.Datum](ctx, segments, name) {
		if err != nil {
			return nil, err
		}
		if _, err := segment.TakePlacement(&d); err != nil {
			return nil, err
		}
		records[d.URL] = d
	}
	return records, nil
}

// parseRest parses what a fetch that began without a parser has fetched, and adds that
// to the report. Of two simultaneous fetches one does it, and the other waits: updating
// a partly parsed segment would lose the links of the rest.
func (l *loop) parseRest(ctx context.Context, o *Options) error {
	r, err := parseSegment(ctx, l.segments, l.name, o)
	for pause := 10 * time.Millisecond; errors.Is(err, segment.ErrBusy); pause = min(2*pause, time.Second) {
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		}
		r, err = parseSegment(ctx, l.segments, l.name, o)
	}
	l.report.Parsed += r.Parsed
	l.report.ParseFailed += r.ParseFailed
	l.report.ParseCut += r.ParseCut
	l.report.Links += r.Links
	l.report.LinksRejected += r.LinksRejected
	l.report.LinksCut += r.LinksCut
	l.report.Sitemaps.Add(r.Sitemaps)
	return err
}
