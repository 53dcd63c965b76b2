package main

import (
	"context"
	"fmt"
	"os"
	"strings"
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
// time. If the name of the file begins with parseLater, pages are parsed in a stage of its own.
//
// With mergeLayers in place of the file it merges links instead.
func readerMain() {
	do := func() error { return read(os.Args[1], os.Args[2], os.Args[3], os.Args[4]) }
	if os.Args[2] == mergeLayers {
		do = func() error { return mergeLinks(os.Args[1]) }
	}
	if err := do(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

const (
	mergeLayers = "layers" // in place of the file
	parseLater  = "later-"
	// So many Merges make so many layers that some are joined.
	layerMerges = 22
	layerPages  = 3200
)

// mergeLinks adds more than a megabyte of links at a time, and compacts what it has made. It may be
// repeated.
func mergeLinks(dir string) error {
	db, err := pebblestore.Open(dir, pebblestore.Options{})
	if err != nil {
		return err
	}
	defer db.Close()
	for n := range layerMerges {
		from := fmt.Sprintf("http://from%02d.example/%s", n*7%layerMerges, strings.Repeat("a/long/path/", 25))
		entries := make([]linkdb.Entry, layerPages)
		for i := range entries {
			entries[i] = linkdb.Entry{URL: fmt.Sprintf("http://host.example/%06d", i), Inlinks: []linkdb.Inlink{{From: fmt.Sprint(from, i), Anchor: "a"}}}
		}
		if err := db.Links().Merge(context.Background(), entries, 3); err != nil {
			return err
		}
	}
	return db.Compact(context.Background())
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
		Agent: "testbot", ParseLater: strings.HasPrefix(file, parseLater),
		HTTP:   httpproto.Options{Guard: httpproto.Guard{AllowPrivate: true}, ConnectTo: []httpproto.ConnectTo{to}},
		Fetch:  fetch.Options{Politeness: fetch.Politeness{Delay: -1}},
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
