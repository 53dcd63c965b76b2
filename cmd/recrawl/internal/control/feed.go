package control

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/render"
	"github.com/recrawl/recrawl/httpapi/feed"
	"github.com/recrawl/recrawl/stores/pebblestore"
)

// Only the process that has a store open can read its change feed. Another process makes its
// requests with a file, one after the other, and finds each reply in a second file.

const (
	feedRequestSuffix = ".feed-request.json"
	feedReplySuffix   = ".feed-reply.json"
	feedInterval      = 50 * time.Millisecond
)

// A FeedRequest is one step of a process that reads the change feed.
type FeedRequest struct {
	Client string // set by FeedClient
	Number int    // of the request, set by FeedClient
	// List and Drop say what is requested other than events; AckOnly requests none.
	List, Drop, AckOnly bool
	Consumer            string
	Options             recrawl.ConsumerOptions // if it is new
	Ack                 string                  // the position to acknowledge first, if any
	Text, Diff          bool                    // with the texts of pages, with how they differ from before
	Documents           *DocumentRequest        // asks for changes of an index in the place of events
}

// A FeedReply is the answer to a FeedRequest.
type FeedReply struct {
	Number int // of the request
	// Lines are the events that are not acknowledged, as feed.Change: some of them, or none if there
	// are none. Last is the position of the last of them.
	Lines []json.RawMessage
	Last  string
	// Consumers is what List returns.
	Consumers []recrawl.ConsumerStatus
	// End says that Documents have come to the end of the feed, and Dead is what DocumentRequest.Check
	// returns.
	End   bool     `json:",omitempty"`
	Dead  []string `json:",omitempty"`
	Error string
}

// The most that one reply has.
const (
	maxLines     = 5000
	maxLineBytes = 4 << 20
)

// AnswerFeed does what a request says.
func AnswerFeed(ctx context.Context, crawler *recrawl.Crawler, q *FeedRequest) (FeedReply, error) {
	r := FeedReply{Number: q.Number}
	var err error
	switch {
	case q.List:
		r.Consumers, err = crawler.Consumers(ctx)
	case q.Drop:
		err = crawler.DropConsumer(ctx, q.Consumer)
	default:
		err = r.read(ctx, crawler, q)
	}
	if err != nil {
		r.Error = err.Error()
	}
	return r, err
}

// acknowledge returns the consumer of the request, after its acknowledgement.
func (q *FeedRequest) acknowledge(ctx context.Context, crawler *recrawl.Crawler) (*recrawl.Consumer, error) {
	k, err := crawler.AddConsumer(ctx, q.Consumer, q.Options)
	if err == nil && q.Ack != "" {
		err = k.Ack(ctx, q.Ack)
	}
	return k, err
}

func (r *FeedReply) read(ctx context.Context, crawler *recrawl.Crawler, q *FeedRequest) error {
	k, err := q.acknowledge(ctx, crawler)
	if err != nil || q.AckOnly {
		return err
	}
	total := 0
	for e, err := range k.Events(ctx) {
		if err != nil {
			return err
		}
		j, err := feed.NewChange(ctx, &e, feed.Detail{Text: q.Text, Diff: q.Diff})
		if err != nil {
			return err
		}
		var b bytes.Buffer
		if err := render.JSONLine(&b, &j); err != nil {
			return err
		}
		line := bytes.TrimRight(b.Bytes(), "\n")
		r.Lines, r.Last = append(r.Lines, line), e.Position
		if total += len(line); len(r.Lines) >= maxLines || total >= maxLineBytes {
			break
		}
	}
	return nil
}

// A FeedClient makes requests to the process that has a store open.
type FeedClient struct {
	dir, run, id string
	number       int
}

// NewFeedClient returns a client of the process that has the store in dir open. Close it after use.
func NewFeedClient(dir string) *FeedClient {
	return &FeedClient{dir: dir, run: pebblestore.RunDir(dir), id: rand.Text()}
}

// Close removes the files of the client.
func (c *FeedClient) Close() {
	removeFeedFiles(c.run, c.id)
}

func removeFeedFiles(run, id string) {
	_ = os.Remove(filepath.Join(run, id+feedRequestSuffix))
	_ = os.Remove(filepath.Join(run, id+feedReplySuffix))
}

// Do makes a request and waits for the reply. If no process has the store open for writing, or the
// one that has ends first, the error is fs.ErrNotExist.
func (c *FeedClient) Do(ctx context.Context, q FeedRequest) (r FeedReply, err error) {
	c.number++
	q.Client, q.Number = c.id, c.number
	tick := time.NewTicker(feedInterval)
	defer tick.Stop()
	asked := false
	for touched := time.Now(); ; {
		used, err := pebblestore.InUse(c.dir)
		if _, rerr := readJSON(c.run, c.id+feedReplySuffix, &r); rerr == nil && r.Number == q.Number {
			if r.Error != "" {
				return r, errors.New(r.Error)
			}
			return r, nil
		}
		if err != nil {
			return r, err
		}
		if !used {
			return r, fs.ErrNotExist
		}
		if !asked || time.Since(touched) > touchInterval {
			err := writeJSON(c.run, c.id+feedRequestSuffix, &q)
			asked, touched = err == nil, time.Now()
			if err != nil && !errors.Is(err, fs.ErrNotExist) { // the process may not have begun to answer
				return r, err
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return r, ctx.Err()
		}
	}
}

// answerFeeds answers the requests of other processes, one after another, until the context
// ends.
func answerFeeds(ctx context.Context, crawler *recrawl.Crawler, run string) {
	tick := time.NewTicker(feedInterval)
	defer tick.Stop()
	s := feedServer{crawler, run, map[string]*servedClient{}}
	defer s.end()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		s.answerAll(ctx)
	}
}

// feedServer answers requests. Its clients are those that have made a request within
// requestPatience.
type feedServer struct {
	crawler *recrawl.Crawler
	run     string
	clients map[string]*servedClient
}

type servedClient struct {
	liveness
	answered  int             // the number of the last request with a reply
	documents *documentReader // nil if it reads none
}

// end ends the reading of all clients.
func (s *feedServer) end() {
	for _, c := range s.clients {
		c.endDocuments()
	}
}

// answerAll answers the requests that are there.
func (s *feedServer) answerAll(ctx context.Context) {
	entries, _ := os.ReadDir(s.run)
	for _, e := range entries {
		if id, ok := strings.CutSuffix(e.Name(), feedRequestSuffix); ok && ctx.Err() == nil {
			s.answer(ctx, id)
		}
	}
	maps.DeleteFunc(s.clients, func(_ string, c *servedClient) bool {
		ended := time.Since(c.since) > requestPatience
		if ended {
			c.endDocuments()
		}
		return ended
	})
}

// answer answers the request of a client, unless it has its reply, and removes the files of one
// that has died.
func (s *feedServer) answer(ctx context.Context, id string) {
	var q FeedRequest
	touched, err := readJSON(s.run, id+feedRequestSuffix, &q)
	if err != nil || q.Client != id {
		return
	}
	c := s.clients[id]
	if c == nil {
		c = &servedClient{}
		s.clients[id] = c
	}
	if c.dead(id, touched) {
		removeFeedFiles(s.run, id)
		return
	}
	if c.answered == q.Number {
		return
	}
	var r FeedReply
	if q.Documents != nil {
		r, err = s.answerDocuments(ctx, c, &q)
	} else {
		r, err = AnswerFeed(ctx, s.crawler, &q)
	}
	if err != nil && ctx.Err() != nil {
		return
	}
	if writeJSON(s.run, id+feedReplySuffix, &r) == nil { // otherwise again: the disk may have been full
		c.answered = q.Number
	}
}
