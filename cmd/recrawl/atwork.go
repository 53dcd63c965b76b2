package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/stores/pebblestore"
)

// A running crawl locks its directory. So that status can still report on it, it
// leaves a note beside its store every few seconds.

// atWork is such a note.
type atWork struct {
	Verb      string
	Began     time.Time
	PerSecond float64 // visits, over the last ten seconds
	Status    recrawl.Status
}

// noteEvery is how often a note is written: rarely enough to cost nothing, and often
// enough for a reader.
const noteEvery = 2 * time.Second

// watched leaves notes, answers requests for backups and shows progress until stop is
// called. A note that cannot be written is no reason to stop a crawl.
func (a *app) watched(c *cli.Command, s *session) (stop func()) {
	hide := a.showProgress(c, s.crawler)
	quit := make(chan struct{})
	var wg sync.WaitGroup
	answering, quiet := context.WithCancel(context.Background())
	wg.Go(func() { s.db.AnswerBackups(answering) })
	wg.Go(func() {
		tick := time.NewTicker(noteEvery)
		defer tick.Stop()
		w := atWork{Verb: c.Name, Began: time.Now().UTC()}
		var rate meter
		for at := w.Began; ; {
			w.Status = s.crawler.Status()
			w.PerSecond = rate.perSecond(at, w.Status.Visited())
			if text, err := json.Marshal(&w); err == nil {
				_ = s.db.WriteNote(text)
			}
			select {
			case at = <-tick.C:
			case <-quit:
				return
			}
		}
	})
	return func() { close(quit); quiet(); wg.Wait(); hide() }
}

// atWorkJSON is what status -json reports about a running crawl, beside how fresh its
// copies were when it last planned.
type atWorkJSON struct {
	Verb       string         `json:"verb"`
	Process    int            `json:"process"`
	Began      time.Time      `json:"began"`
	AsOf       time.Time      `json:"as_of"`
	Stage      string         `json:"stage,omitempty"`
	StageSince *time.Time     `json:"stage_since,omitempty"`
	Segment    string         `json:"segment,omitempty"`
	Rounds     int            `json:"rounds_done"`
	Visits     int            `json:"visits"`
	Outcomes   map[string]int `json:"outcomes"`
	PerSecond  float64        `json:"visits_per_second"`
	Bytes      int64          `json:"bytes"`
	Listed     int            `json:"listed"`
	Done       int            `json:"listed_done"`
	Followed   int            `json:"followed"`
	InFlight   int            `json:"in_flight"`
	Hosts      int            `json:"hosts_active"`
	NextDue    *time.Time     `json:"next_due,omitempty"`
}

// lockedError needs no further hint about the process that holds the lock.
type lockedError struct{ error }

func (l lockedError) Unwrap() error { return l.error }

// statusAtWork reports the last note of the process that holds the directory, and
// returns locked if it has left none.
func (a *app) statusAtWork(c *cli.Command, wants []float64, locked error) error {
	n, err := pebblestore.ReadNote(c.String("d"))
	var w atWork
	if err == nil {
		err = json.Unmarshal(n.Text, &w)
	}
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			return lockedError{errors.Join(locked, err)}
		}
		return lockedError{fmt.Errorf("%w; status can report on a running crawl or fetch only, and this is neither", locked)}
	}
	s := &w.Status
	if c.Bool("json") {
		j := struct {
			AtWork atWorkJSON `json:"at_work"`
			*freshnessJSON
		}{AtWork: atWorkJSON{
			Verb: w.Verb, Process: n.Process, Began: w.Began, AsOf: n.Time.UTC(), Stage: s.Stage, StageSince: timePtr(s.Since), Segment: s.Segment,
			Rounds: s.Rounds, Visits: s.Visited(), Outcomes: outcomes(s.Visits), PerSecond: w.PerSecond, Bytes: s.Bytes,
			Listed: s.Fetch.Listed, Done: s.Fetch.Done, Followed: s.Fetch.Followed, InFlight: s.Fetch.InFlight, Hosts: s.Fetch.Hosts, NextDue: timePtr(s.NextDue),
		}}
		if s.Freshness != nil {
			s.Freshness.Hosts = nil // the plan has only some of them, and they are old
			j.freshnessJSON = jsonOfFreshness(s.Freshness, wants)
		}
		return a.printJSON(j)
	}
	out := bufio.NewWriter(a.out)
	fmt.Fprintf(out, "at work:\t%s, process %d, since %s; as of %s\n", w.Verb, n.Process, stamp(w.Began), stamp(n.Time))
	if s.Stage != "" {
		fmt.Fprintf(out, "stage:\t%s", s.Stage)
		if s.Segment != "" {
			fmt.Fprintf(out, " of %s", s.Segment)
		}
		fmt.Fprintf(out, ", since %s", stamp(s.Since))
		fmt.Fprintf(out, "; %d rounds done\n", s.Rounds)
	}
	fmt.Fprintf(out, "visits:\t%d, %.0f a second, %s\n", s.Visited(), w.PerSecond, size(s.Bytes))
	printOutcomes(out, s.Visits)
	if s.Fetch != (fetch.Progress{}) {
		fmt.Fprintf(out, "list:\t%d of at least %d pages done, and %d others; %d under way, %d hosts active\n", s.Fetch.Done, s.Fetch.Listed, s.Fetch.Followed, s.Fetch.InFlight, s.Fetch.Hosts)
	}
	if !s.NextDue.IsZero() {
		fmt.Fprintf(out, "next due:\t%s\n", stamp(s.NextDue))
	}
	if s.Freshness != nil {
		fmt.Fprintf(out, "The copies, when the crawl last planned, on %s:\n", stamp(s.Freshness.At))
		printFreshness(out, s.Freshness, wants)
	}
	return out.Flush()
}
