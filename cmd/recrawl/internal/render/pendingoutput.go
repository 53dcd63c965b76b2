package render

import (
	"context"
	"encoding/json"

	"github.com/recrawl/recrawl/crawldb"
)

// PendingOutput is a note about segments whose names are not printed yet. A verb that makes
// segments may be killed before it has printed their names, and is then run again. So it
// saves this note in the crawl before it makes them, and clears it after printing. A verb
// that finds its own note prints what was made, and makes no more.
type PendingOutput struct {
	Verb string `json:"verb"`
	// After is the newest segment that existed before.
	After string `json:"after,omitempty"`
	// Of says what freegen makes a segment of: of anything else it makes another.
	Of string `json:"of,omitempty"`
	// Sources are the segments that mergesegs merges, Made those it has made of them,
	// and Whole says that these are all.
	Sources []string `json:"sources,omitempty"`
	Made    []string `json:"made,omitempty"`
	Whole   bool     `json:"whole,omitempty"`
}

// pendingOutputMark is the mark of the crawl db that holds the note; stores have it by this
// name.
const pendingOutputMark = "command/untold"

// ReadPendingOutput returns the note of a verb, or a zero PendingOutput if it has none.
func ReadPendingOutput(ctx context.Context, db crawldb.Store, verb string) (p PendingOutput, err error) {
	mark, err := db.Mark(ctx, pendingOutputMark)
	if err != nil || mark == "" {
		return p, err
	}
	if err := json.Unmarshal([]byte(mark), &p); err != nil || p.Verb != verb {
		return PendingOutput{}, nil
	}
	return p, nil
}

// Save stores the note durably.
func (p PendingOutput) Save(ctx context.Context, db crawldb.Store) error {
	b, err := json.Marshal(p)
	if err == nil {
		err = db.Update(ctx, crawldb.Batch{Marks: crawldb.Mark(pendingOutputMark, string(b))})
	}
	if err == nil {
		err = db.Sync(ctx)
	}
	return err
}

// ClearPendingOutput removes the note.
func ClearPendingOutput(ctx context.Context, db crawldb.Store) error {
	return db.Update(ctx, crawldb.Batch{Marks: crawldb.Mark(pendingOutputMark, "")})
}
