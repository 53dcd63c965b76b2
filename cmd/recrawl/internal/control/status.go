package control

import (
	"context"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/render"
	"github.com/recrawl/recrawl/stores/pebblestore"
)

// A RunStatus is what the process that runs a crawl says of it, for others that find the
// directory locked.
type RunStatus struct {
	Process   int
	Verb      string
	Began     time.Time
	PerSecond float64 // visits, over the last ten seconds
	Status    recrawl.Status
	Consumers []recrawl.ConsumerStatus `json:",omitempty"`
}

// statusInterval is how often a status is written: rarely enough to cost nothing, and often
// enough for a reader.
const statusInterval = 2 * time.Second

// Announce writes the status of a run beside its store, makes the backups that other
// processes request, reads them the change feed, and serves them its pages, until stop is called. Call stop before the store is closed. A status
// that cannot be written does not stop a crawl.
func Announce(db *pebblestore.DB, crawler *recrawl.Crawler, verb string) (stop func()) {
	run := pebblestore.RunDir(db.Dir())
	_ = os.MkdirAll(run, 0o755)
	ctx, cancel := context.WithCancel(context.Background())
	var tasks sync.WaitGroup
	tasks.Go(func() { answerBackups(ctx, db, run) })
	tasks.Go(func() { answerFeeds(ctx, crawler, run) })
	tasks.Go(func() { servePages(ctx, db, crawler, run) })
	tasks.Go(func() {
		tick := time.NewTicker(statusInterval)
		defer tick.Stop()
		w := RunStatus{Process: os.Getpid(), Verb: verb, Began: time.Now().UTC()}
		var rate render.Meter
		for at := w.Began; ; {
			w.Status = crawler.Status()
			if consumers, err := crawler.Consumers(ctx); err == nil {
				w.Consumers = consumers
			}
			w.PerSecond = rate.PerSecond(at, w.Status.Visited())
			_ = writeJSON(run, statusFile, &w)
			select {
			case at = <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	})
	return func() { cancel(); tasks.Wait() }
}

// ReadRunStatus returns the last status of the process that has the directory open, and when
// it was written. The error is fs.ErrNotExist if no process has the directory open for
// writing, or if the one that has did not write any.
func ReadRunStatus(dir string) (w RunStatus, asOf time.Time, err error) {
	if used, err := pebblestore.InUse(dir); err != nil {
		return w, asOf, err
	} else if !used { // a process that was killed may have left a status
		return w, asOf, fs.ErrNotExist
	}
	asOf, err = readJSON(pebblestore.RunDir(dir), statusFile, &w)
	return w, asOf, err
}
