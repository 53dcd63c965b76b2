// Webhook watches a site and posts every change to a URL, signed, as JSON with the words that differ. It
// registers a consumer of the change feed, which remembers what the receiver has accepted: if the program
// is killed, or the receiver is down, changes are posted later, in order for each page. A change may be
// posted twice, with the same Webhook-Id.
//
//	go run ./webhook http://localhost:9000/hook secret.txt https://example.org/
//
// The file has a line "whsec_" and 24 to 64 random bytes in base64. The receiver checks the signature
// with feed.Verify, or with a library of standardwebhooks.com.
package main

import (
	"context"
	"errors"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/httpapi/feed"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/stores/pebblestore"
)

func main() {
	if len(os.Args) < 4 {
		log.Fatal("usage: webhook HOOK SECRETS URL...")
	}
	text, err := os.ReadFile(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	secrets, err := feed.ParseSecrets(text)
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err = watch(ctx, "webhook.crawl", os.Args[3:], recrawl.Options{
		Agent: "webhook", Run: recrawl.RunOptions{Wait: true}, Retention: recrawl.Retention{Segments: 3},
		Schedule: schedule.Adaptive{Default: schedule.Default{DefaultInterval: 24 * time.Hour}},
		Fetch:    fetch.Options{Links: fetch.Links{IgnoreExternal: true}},
	}, feed.Webhook{
		URL: os.Args[1], Secrets: secrets, Detail: feed.Detail{Diff: true}, Logger: slog.Default(),
		Dead: feed.OpenLetters("webhook.dead-letters").Add,
	})
	if err != nil && !errors.Is(err, context.Canceled) {
		log.Fatal(err)
	}
}

// consumer is the name of the consumer of the change feed.
const consumer = "webhook"

// watch crawls the sites of some seeds into a directory, and posts what changes, until the context ends or
// the crawl does.
func watch(ctx context.Context, dir string, seeds []string, o recrawl.Options, w feed.Webhook) error {
	db, err := pebblestore.Open(dir, pebblestore.Options{})
	if err != nil {
		return err
	}
	defer db.Close()
	crawler, err := recrawl.New(recrawl.Stores{Crawl: db.Crawl(), Hosts: db.Hosts(), Segments: db.Segments()}, o)
	if err != nil {
		return err
	}
	defer crawler.Close()
	if _, err := crawler.Inject(ctx, seeds...); err != nil {
		return err
	}
	if _, err := crawler.AddConsumer(ctx, consumer, recrawl.ConsumerOptions{}); err != nil {
		return err
	}
	crawling, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	posted := make(chan error, 1)
	go func() {
		err := w.Consume(crawling, crawler, consumer, true)
		cancel(err) // no crawl without its receiver
		posted <- err
	}()
	_, err = crawler.Run(crawling)
	if err != nil {
		cancel(err)
		return <-posted
	}
	cancel(nil)
	<-posted
	return w.Consume(ctx, crawler, consumer, false) // what is left
}
