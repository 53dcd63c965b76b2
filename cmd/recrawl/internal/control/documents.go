package control

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/index"
)

// A DocumentRequest asks for what the events change in an index.
type DocumentRequest struct {
	// Restart registers the consumer anew.
	Restart bool
	// Check, if not nil, are URLs in the index. The reply lists those to delete as Dead, and has no
	// changes.
	Check []string

	DeleteGone, DeleteRobotsNoIndex, DeleteFailedParse index.Switch
	SkipNotModified, AddBinaryContent, NutchCompat     bool
}

// NewDocumentRequest returns a request with the options that say what is indexed.
func NewDocumentRequest(o *index.Options) DocumentRequest {
	return DocumentRequest{
		DeleteGone: o.DeleteGone, DeleteRobotsNoIndex: o.DeleteRobotsNoIndex, DeleteFailedParse: o.DeleteFailedParse,
		SkipNotModified: o.SkipNotModified, AddBinaryContent: o.AddBinaryContent, NutchCompat: o.NutchCompat,
	}
}

// IndexOptions returns the options of the request.
func (q *DocumentRequest) IndexOptions() index.Options {
	return index.Options{
		DeleteGone: q.DeleteGone, DeleteRobotsNoIndex: q.DeleteRobotsNoIndex, DeleteFailedParse: q.DeleteFailedParse,
		SkipNotModified: q.SkipNotModified, AddBinaryContent: q.AddBinaryContent, NutchCompat: q.NutchCompat,
	}
}

// changeLine is an index.Change: Entry is the line of index.JSONL, empty if there is nothing to do.
type changeLine struct {
	Position  string          `json:",omitempty"`
	Reconcile bool            `json:",omitempty"`
	Entry     json.RawMessage `json:",omitempty"`
}

func encodeChange(ctx context.Context, c *index.Change) (json.RawMessage, error) {
	var b bytes.Buffer
	w := index.NewJSONL(&b)
	if err := c.Apply(ctx, w); err != nil {
		return nil, err
	}
	if err := w.Commit(ctx); err != nil {
		return nil, err
	}
	return json.Marshal(&changeLine{c.Position, c.Reconcile, bytes.TrimSpace(b.Bytes())})
}

// DecodeChange reads a line of a reply to a DocumentRequest.
func DecodeChange(line json.RawMessage) (c index.Change, err error) {
	var l changeLine
	if err := json.Unmarshal(line, &l); err != nil {
		return c, fmt.Errorf("a change: %w", err)
	}
	c.Position, c.Reconcile = l.Position, l.Reconcile
	for e, err := range index.ReadJSONL(bytes.NewReader(append(l.Entry, '\n'))) {
		if err != nil {
			return c, err
		}
		if c.URL = e.URL; !e.Deleted {
			c.Document = &e.Document
		}
	}
	return c, nil
}

// documentReader reads changes for one client, from request to request: the first changes of a
// snapshot have no position, so they cannot be acknowledged in parts.
type documentReader struct {
	consumer string
	next     func() (index.Change, error, bool)
	stop     func()
}

// answerDocuments answers a request for changes. The client that asks last has a consumer.
func (s *feedServer) answerDocuments(ctx context.Context, c *servedClient, q *FeedRequest) (r FeedReply, err error) {
	defer func() {
		if err != nil {
			r.Error = err.Error()
			c.endDocuments()
		}
	}()
	r.Number = q.Number
	if q.Documents.Check != nil {
		r.Dead, err = deadURLs(ctx, s.crawler, q.Documents.Check)
		return r, err
	}
	for _, other := range s.clients {
		if other != c && other.documents != nil && other.documents.consumer == q.Consumer {
			other.endDocuments()
		}
	}
	if q.Documents.Restart {
		c.endDocuments()
		if err := s.crawler.RestartConsumer(ctx, q.Consumer, q.Options); err != nil {
			return r, err
		}
	}
	k, err := q.acknowledge(ctx, s.crawler)
	if err != nil || q.AckOnly {
		return r, err
	}
	if c.documents == nil {
		next, stop := iter.Pull2(k.Documents(ctx, q.Documents.IndexOptions()))
		c.documents = &documentReader{q.Consumer, next, stop}
	}
	for total := 0; len(r.Lines) < maxLines && total < maxLineBytes; {
		change, err, ok := c.documents.next()
		if !ok {
			c.endDocuments()
			r.End = true
			return r, nil
		}
		if err != nil {
			return r, err
		}
		line, err := encodeChange(ctx, &change)
		if err != nil {
			return r, err
		}
		r.Lines = append(r.Lines, line)
		total += len(line)
	}
	return r, nil
}

func (c *servedClient) endDocuments() {
	if c.documents != nil {
		c.documents.stop()
		c.documents = nil
	}
}

// deadURLs returns the URLs whose documents index.Reconcile would delete.
func deadURLs(ctx context.Context, crawler *recrawl.Crawler, urls []string) ([]string, error) {
	list := urlList{urls: urls}
	_, err := crawler.ReconcileIndex(ctx, &list)
	return list.dead, err
}

// urlList is an index.Lister with some URLs.
type urlList struct{ urls, dead []string }

func (l *urlList) URLs(context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for _, u := range l.urls {
			if !yield(u, nil) {
				return
			}
		}
	}
}

func (l *urlList) Delete(_ context.Context, url string) error {
	l.dead = append(l.dead, url)
	return nil
}

func (*urlList) Write(context.Context, *index.Document) error { return nil }
func (*urlList) Commit(context.Context) error                 { return nil }
