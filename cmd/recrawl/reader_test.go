package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/linkdb"
	"github.com/recrawl/recrawl/protocol/httpproto"
	"github.com/recrawl/recrawl/stores/pebblestore"
	"github.com/recrawl/recrawl/update"
)

// readerMain is a program with an OnPage hook: it crawls what is due and writes a line to a
// file for each page event. It has so little memory to sort in that it needs temporary
// files. Its arguments are the directory of the crawl, the file, where to connect, and the
// time.
func readerMain() {
	if err := read(os.Args[1], os.Args[2], os.Args[3], os.Args[4]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func read(dir, file, connectTo, stamp string) error {
	now, err := time.Parse(time.RFC3339, stamp)
	if err != nil {
		return err
	}
	to, err := httpproto.ParseConnectTo(connectTo)
	if err != nil {
		return err
	}
	db, err := pebblestore.Open(dir, pebblestore.Options{})
	if err != nil {
		return err
	}
	defer db.Close()
	out, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o666)
	if err != nil {
		return err
	}
	defer out.Close()
	crawler, err := recrawl.New(recrawl.Stores{Crawl: db.Crawl(), Hosts: db.Hosts(), Links: db.Links(), Segments: db.Segments()}, recrawl.Options{
		Agent:  "testbot",
		HTTP:   httpproto.Options{AllowPrivate: true, ConnectTo: []httpproto.ConnectTo{to}},
		Fetch:  fetch.Options{Delay: -1},
		Update: update.Options{SortMemory: 192 << 10}, Invert: linkdb.InvertOptions{SortMemory: 192 << 10},
		Now: func() time.Time { return now },
		OnPage: func(_ context.Context, e recrawl.PageEvent) error {
			_, err := fmt.Fprintf(out, "%s %s %x\n", e.Kind, e.URL, e.Signature)
			return err
		},
	})
	if err != nil {
		return err
	}
	defer crawler.Close()
	r, err := crawler.Run(context.Background())
	fmt.Println(r.Events, "events")
	return err
}
