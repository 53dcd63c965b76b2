package verbs

import (
	"context"
	"testing"
	"time"

	"github.com/recrawl/recrawl/stores/pebblestore"
)

// changes -follow looks for more after another process had the crawl open, however short that was.
func TestFollowNoticesAShortRun(t *testing.T) {
	dir := t.TempDir()
	open := func() {
		db, err := pebblestore.Open(dir, pebblestore.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	open()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	f := feedOfCrawl{dir: dir, here: true}
	ended := make(chan error, 1)
	go func() { ended <- f.wait(ctx) }()
	time.Sleep(210 * time.Millisecond)
	select {
	case err := <-ended:
		t.Fatalf("it looked when nothing had happened: %v", err)
	default:
	}
	open()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
