// Webhook watches a site and posts every change to a URL, as JSON. A change that cannot be
// posted is tried again, each time after twice the pause. None is lost if the program is
// stopped meanwhile: OnPage is called again for what it has not returned from, so the receiver
// may get a change twice, with the same id.
//
//	go run ./webhook http://localhost:9000/hook https://example.org/
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/stores/pebblestore"
)

func main() {
	if len(os.Args) < 3 {
		log.Fatal("usage: webhook HOOK URL...")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := watch(ctx, "webhook.crawl", os.Args[2:], recrawl.Options{
		Agent: "webhook", Run: recrawl.RunOptions{Wait: true}, Retention: recrawl.Retention{Segments: 3},
		Schedule: schedule.Adaptive{Default: schedule.Default{DefaultInterval: 24 * time.Hour}},
		Fetch:    fetch.Options{Links: fetch.Links{IgnoreExternal: true}},
	}, hook{URL: os.Args[1]})
	if err != nil {
		log.Fatal(err)
	}
}

// watch crawls the sites of some seeds into a directory, and posts what changes.
func watch(ctx context.Context, dir string, seeds []string, o recrawl.Options, h hook) (err error) {
	db, err := pebblestore.Open(dir, pebblestore.Options{})
	if err != nil {
		return err
	}
	defer db.Close()
	o.OnPage = h.page
	crawler, err := recrawl.New(recrawl.Stores{Crawl: db.Crawl(), Hosts: db.Hosts(), Segments: db.Segments()}, o)
	if err != nil {
		return err
	}
	defer crawler.Close()
	if _, err := crawler.Inject(ctx, seeds...); err != nil {
		return err
	}
	_, err = crawler.Run(ctx)
	return err
}

// change is the body of a request.
type change struct {
	ID    string    `json:"id"` // the same whenever this change is posted
	Kind  string    `json:"kind"`
	URL   string    `json:"url"`
	Time  time.Time `json:"time"`
	Title string    `json:"title,omitempty"`
}

// hook posts changes.
type hook struct {
	URL   string
	Pause time.Duration // before the first retry; zero means a second
}

// page is an OnPage. It returns when the change is with the receiver, or with an error when
// ctx ends; the round then waits to be resumed.
func (h hook) page(ctx context.Context, e recrawl.PageEvent) error {
	if e.Kind == recrawl.PageUnchanged {
		return nil
	}
	c := change{ID: e.Segment + " " + e.URL, Kind: e.Kind.String(), URL: e.URL, Time: e.Visit.Time}
	if e.Kind == recrawl.PageNew || e.Kind == recrawl.PageChanged {
		p, err := e.Parsed(ctx)
		if err != nil {
			return err
		}
		c.Title = p.Title
	}
	body, err := json.Marshal(c)
	if err != nil {
		return err
	}
	pause := h.Pause
	if pause == 0 {
		pause = time.Second
	}
	for {
		err := post(ctx, h.URL, body)
		if err == nil {
			return nil
		}
		log.Printf("%v; again in %v", err, pause)
		select {
		case <-time.After(pause):
			pause = min(2*pause, time.Hour)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// post sends one body; any answer but 2xx is an error.
func post(ctx context.Context, url string, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<16)) // so that the connection can be used again
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("%s: %s", url, resp.Status)
	}
	return nil
}
