package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/stores/pebblestore"
)

func main() {
	db, err := pebblestore.Open("crawl", pebblestore.Options{}) // a directory
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	c, err := recrawl.New(recrawl.Stores{
		Crawl: db.Crawl(), Hosts: db.Hosts(), Links: db.Links(), Segments: db.Segments(),
	}, recrawl.Options{
		Agent: "mybot", // the name in User-Agent and robots.txt
		OnPage: func(ctx context.Context, e recrawl.PageEvent) error {
			fmt.Println(e.Kind, e.URL) // new, changed, moved, gone, refused
			return nil
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	ctx := context.Background()
	seeds, err := c.Inject(ctx, os.Args[1:]...)
	if err := errors.Join(err, seeds.Err()); err != nil {
		log.Fatal(err)
	}
	report, err := c.Run(ctx) // until nothing is due; forever with Options.Run.Wait
	fmt.Println(report)
	if err := errors.Join(err, report.Err()); err != nil {
		log.Fatal(err)
	}
}
