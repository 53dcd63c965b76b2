// Package control is how processes of the command talk about a crawl that one of them has
// open: what a running one reports of itself, and what others ask of it. It does not open
// crawls. Announce is the side of the running process.
package control

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/render"
	"github.com/recrawl/recrawl/stores/pebblestore"
)

// A running crawl locks its directory. So that status can still report on it, it
// leaves a note beside its store every few seconds.

// RunStatus is such a note.
type RunStatus struct {
	Verb      string
	Began     time.Time
	PerSecond float64 // visits, over the last ten seconds
	Status    recrawl.Status
}

// statusInterval is how often a note is written: rarely enough to cost nothing, and often
// enough for a reader.
const statusInterval = 2 * time.Second

// Announce writes the status of a run beside its store, and answers requests for backups,
// until stop is called. A status that cannot be written is no reason to stop a crawl.
func Announce(db *pebblestore.DB, crawler *recrawl.Crawler, verb string) (stop func()) {
	quit := make(chan struct{})
	var wg sync.WaitGroup
	answering, quiet := context.WithCancel(context.Background())
	wg.Go(func() { db.AnswerBackups(answering) })
	wg.Go(func() {
		tick := time.NewTicker(statusInterval)
		defer tick.Stop()
		w := RunStatus{Verb: verb, Began: time.Now().UTC()}
		var rate render.Meter
		for at := w.Began; ; {
			w.Status = crawler.Status()
			w.PerSecond = rate.PerSecond(at, w.Status.Visited())
			if text, err := json.Marshal(&w); err == nil {
				_ = db.WriteNote(text)
			}
			select {
			case at = <-tick.C:
			case <-quit:
				return
			}
		}
	})
	return func() { close(quit); quiet(); wg.Wait() }
}

// ReadRunStatus reads the last status of the process that has the directory open. The error
// is fs.ErrNotExist if it has left none.
func ReadRunStatus(dir string) (w RunStatus, process int, asOf time.Time, err error) {
	n, err := pebblestore.ReadNote(dir)
	if err == nil {
		err = json.Unmarshal(n.Text, &w)
	}
	return w, n.Process, n.Time, err
}
