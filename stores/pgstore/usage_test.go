//go:build servers

package pgstore

import (
	"testing"

	"github.com/recrawl/recrawl/crawldb"
)

// Usage has the tables of the crawl, and grows with them.
func checkUsage(t *testing.T, r *rig) {
	db, err := r.open()
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	before, free, err := db.Usage(t.Context())
	if err != nil || before["page"] == 0 || before["block"] == 0 || free >= 0 {
		t.Fatalf("%v, %d bytes free, %v", before, free, err)
	}
	mark := string(make([]byte, 1<<20))
	if err := db.Crawl().Update(t.Context(), crawldb.Batch{Marks: func() map[string]string { return map[string]string{"large": mark} }}); err != nil {
		t.Fatal(err)
	}
	if after, _, err := db.Usage(t.Context()); err != nil || after["mark"] <= before["mark"] {
		t.Errorf("%v after a large mark, %v before, %v", after, before, err)
	}
}
