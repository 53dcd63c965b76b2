package render

import (
	"context"
	"encoding/json"

	"github.com/recrawl/recrawl/crawldb"
)

// A verb that prints the names of the segments it makes may be killed after making
// them and before printing: its caller knows nothing of them, and runs it again. So
// it notes in the crawl what it is about to make, and removes the note after printing;
// a verb that finds its own note resumes from there.
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

// pendingOutputMark is the progress mark that holds the note.
const pendingOutputMark = "command/untold"

// ReadPendingOutput returns the note of a verb, or the zero untold.
func ReadPendingOutput(ctx context.Context, db crawldb.Store, verb string) (u PendingOutput, err error) {
	mark, err := db.Mark(ctx, pendingOutputMark)
	if err != nil || mark == "" {
		return u, err
	}
	if err := json.Unmarshal([]byte(mark), &u); err != nil || u.Verb != verb {
		return PendingOutput{}, nil
	}
	return u, nil
}

// Save stores the note durably.
func (u PendingOutput) Save(ctx context.Context, db crawldb.Store) error {
	b, err := json.Marshal(u)
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
