package control

import (
	"errors"
	"io/fs"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/stores/memstore"
)

// A process that answers for years forgets the clients that have ended, and removes the files of
// those that were killed.
func TestEndedFeedClientsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var db memstore.DB
		defer db.Close()
		crawler, err := recrawl.New(recrawl.Stores{Crawl: db.Crawl(), Hosts: db.Hosts(), Links: db.Links(), Segments: db.Segments()}, recrawl.Options{Agent: "testbot"})
		if err != nil {
			t.Fatal(err)
		}
		defer crawler.Close()
		s := feedServer{crawler, t.TempDir(), map[string]*servedClient{}}
		for _, id := range []string{"ended", "killed"} {
			if err := writeJSON(s.run, id+feedRequestSuffix, FeedRequest{Client: id, Number: 1, List: true}); err != nil {
				t.Fatal(err)
			}
			s.answerAll(t.Context())
			var r FeedReply
			if _, err := readJSON(s.run, id+feedReplySuffix, &r); err != nil || r.Number != 1 || r.Error != "" {
				t.Errorf("%+v, %v", r, err)
			}
		}
		removeFeedFiles(s.run, "ended")
		time.Sleep(requestPatience)
		if s.answerAll(t.Context()); len(s.clients) != 2 {
			t.Errorf("%d clients too early", len(s.clients))
		}
		time.Sleep(time.Second)
		if s.answerAll(t.Context()); len(s.clients) > 0 {
			t.Errorf("%d clients are remembered", len(s.clients))
		}
		var q FeedRequest
		if _, err := readJSON(s.run, "killed"+feedRequestSuffix, &q); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the request of a killed client: %v", err)
		}
	})
}
