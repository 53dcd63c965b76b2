package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/protocol/httpproto"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/stores/pebblestore"
)

// A serviceNote is a line that a consumer of the service writes: an event, before it is acknowledged.
type serviceNote struct {
	At                       time.Time // by the right clock
	Position, Kind, URL, Sig string    `json:",omitempty"`
	ETag                     string    `json:",omitempty"`
	Previous, PreviousSig    string    `json:",omitempty"`
}

// A serviceRound is a line that the service writes for each report of a round.
type serviceRound struct{ Rounds, Visits int }

// Consumers of the service. The dead one reads only while the file "alive" is there.
const (
	serviceEach  = "each"  // every visit, each acknowledged
	serviceBatch = "batch" // changes, acknowledged by tens
	serviceSlow  = "slow"  // changes, with a pause after each
	serviceDead  = "dead"
	serviceFinal = "final" // a snapshot when all is over
)

// serviceMain is a program with an endless crawl inside, and consumers of its changes. Its
// arguments are the directory of the store, that of its notes, where to connect, and the seeds; without
// seeds the consumers read what is left, and it ends. Its clock is wrong by what the file "clock"
// says. It waits for a disk that is too full to open the store.
func serviceMain() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := service(ctx, os.Args[1], os.Args[2], os.Args[3], os.Args[4:])
	stop()
	if err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func service(ctx context.Context, dir, notes, connectTo string, seeds []string) (err error) {
	to, err := httpproto.ParseConnectTo(connectTo)
	if err != nil {
		return err
	}
	o := pebblestore.Options{CacheSize: 2 << 20, MemTableSize: 256 << 10, OnRoom: func(r pebblestore.Room) {
		fmt.Fprintf(os.Stderr, "paused: %v, %d free, %d needed, %v\n", r.Paused, r.Free, r.Need, r.Err)
	}}
	db, err := pebblestore.Open(dir, o)
	for errors.Is(err, syscall.ENOSPC) && ctx.Err() == nil { // others have taken the reserve, too
		time.Sleep(100 * time.Millisecond)
		db, err = pebblestore.Open(dir, o)
	}
	if ctx.Err() != nil && err != nil {
		return ctx.Err()
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()

	var wrong atomic.Int64
	var all sync.WaitGroup
	defer all.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	readClock := func() {
		text, _ := os.ReadFile(filepath.Join(notes, "clock"))
		if d, err := time.ParseDuration(string(text)); err == nil {
			wrong.Store(int64(d))
		}
	}
	readClock()
	all.Go(func() {
		for ctx.Err() == nil {
			readClock()
			time.Sleep(20 * time.Millisecond)
		}
	})
	rounds, err := openNotes(notes, "rounds")
	if err != nil {
		return err
	}
	defer rounds.Close()
	options := recrawl.Options{
		Agent: "testbot", Now: func() time.Time { return time.Now().Add(time.Duration(wrong.Load())) },
		HTTP: httpproto.Options{Guard: httpproto.Guard{AllowPrivate: true}, ConnectTo: []httpproto.ConnectTo{to}},
		Schedule: schedule.Adaptive{
			Default:     schedule.Default{DefaultInterval: 5 * time.Second, MaxInterval: serviceMaxInterval, RetryDelay: 2 * time.Second},
			MinInterval: 2 * time.Second, AdaptiveMax: serviceMaxInterval,
		},
		Fetch: fetch.Options{Politeness: fetch.Politeness{Delay: -1}},
		Run:   recrawl.RunOptions{Wait: true}, Retention: recrawl.Retention{Segments: 10, Bytes: 512 << 10},
		Hooks: recrawl.Hooks{Round: func(r recrawl.Report) {
			line, _ := json.Marshal(serviceRound{r.Rounds, r.Visited()})
			rounds.Write(append(line, '\n'))
		}},
	}
	crawler, err := recrawl.New(recrawl.Stores{Crawl: db.Crawl(), Hosts: db.Hosts(), Links: db.Links(), Segments: db.Segments()}, options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, crawler.Close()) }()

	names := []string{serviceEach, serviceBatch, serviceSlow, serviceDead}
	if len(seeds) == 0 {
		for _, name := range append(names, serviceFinal) {
			if err := consume(ctx, crawler, name, notes, true); err != nil {
				return err
			}
		}
		return nil
	}
	go func() { // until the test ends, however it does
		io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	failed := make(chan error, len(names)+2)
	for _, name := range names {
		all.Go(func() {
			for ctx.Err() == nil {
				if _, err := os.Stat(filepath.Join(notes, "alive")); name == serviceDead && err != nil {
					if _, err := crawler.AddConsumer(ctx, name, recrawl.ConsumerOptions{Start: recrawl.StartAtBeginning}); err != nil && ctx.Err() == nil {
						failed <- err
						return
					}
					time.Sleep(50 * time.Millisecond)
					continue
				}
				if err := consume(ctx, crawler, name, notes, false); err != nil && ctx.Err() == nil {
					failed <- fmt.Errorf("%s: %w", name, err)
					return
				}
			}
		})
	}
	all.Go(func() {
		_, err := crawler.Inject(ctx, seeds...)
		if err == nil {
			_, err = crawler.Run(ctx)
		}
		failed <- err
	})
	all.Go(func() {
		if err := urge(ctx, crawler, seeds); err != nil && ctx.Err() == nil {
			failed <- err
		}
	})
	err = <-failed
	cancel()
	all.Wait()
	return err
}

// urge makes something urgent now and then.
func urge(ctx context.Context, crawler *recrawl.Crawler, seeds []string) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Duration(rand.Int64N(int64(8 * time.Second)))):
		}
		seed, err := seeds[rand.IntN(len(seeds))], error(nil)
		switch rand.IntN(3) {
		case 0:
			_, err = crawler.Inject(ctx, fmt.Sprintf("%snew/%d", seed, rand.IntN(20)))
		case 1:
			if err = crawler.Signal(ctx, seed, time.Time{}); errors.Is(err, crawldb.ErrNotFound) {
				err = nil
			}
		case 2:
			_, err = crawler.GenerateFree(ctx, func(yield func(string, error) bool) { yield(seed, nil) })
		}
		if err != nil {
			return fmt.Errorf("urgent: %w", err)
		}
	}
}

// serviceMaxInterval is the longest time between two visits.
const serviceMaxInterval = 20 * time.Second

func openNotes(dir, name string) (*os.File, error) {
	return os.OpenFile(filepath.Join(dir, name+".jsonl"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o666)
}

// consume reads the events of a consumer, notes them, and acknowledges them; with drain until there are no
// more.
func consume(ctx context.Context, crawler *recrawl.Crawler, name, notes string, drain bool) error {
	start := recrawl.StartAtBeginning
	if name == serviceFinal {
		start = recrawl.StartWithSnapshot
	}
	k, err := crawler.AddConsumer(ctx, name, recrawl.ConsumerOptions{Start: start, EveryVisit: name == serviceEach})
	if err != nil {
		return err
	}
	out, err := openNotes(notes, name)
	if err != nil {
		return err
	}
	defer out.Close()
	events := k.Follow(ctx)
	if drain {
		events = k.Events(ctx)
	}
	n, last := 0, ""
	for e, err := range events {
		if err != nil {
			return err
		}
		note := serviceNote{
			At: time.Now(), Position: e.Position, Kind: e.Kind.String(), URL: e.URL, Sig: fmt.Sprintf("%x", e.Signature), ETag: strings.Trim(e.Visit.ETag, `"`),
			PreviousSig: fmt.Sprintf("%x", e.Previous.Signature),
		}
		if e.Previous.Kind != 0 {
			note.Previous = e.Previous.Kind.String()
		}
		line, err := json.Marshal(note)
		if err != nil {
			return err
		}
		if _, err := out.Write(append(line, '\n')); err != nil {
			return err
		}
		last = e.Position
		batch := map[string]int{serviceBatch: 10, serviceSlow: 3, serviceDead: 25}[name]
		if n++; batch == 0 || n%batch == 0 {
			if err := k.Ack(ctx, e.Position); err != nil {
				return err
			}
		}
		if drain {
			continue
		}
		switch name {
		case serviceSlow:
			time.Sleep(time.Duration(rand.Int64N(int64(60 * time.Millisecond))))
		case serviceDead:
			if _, err := os.Stat(filepath.Join(notes, "alive")); errors.Is(err, fs.ErrNotExist) {
				return nil
			}
		}
	}
	if drain && last != "" {
		return k.Ack(ctx, last)
	}
	return nil
}
