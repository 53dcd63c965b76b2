package feed

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Letter is a webhook that the receiver did not accept.
type Letter struct {
	ID       string          `json:"id"`
	Position string          `json:"position"`
	URL      string          `json:"url,omitempty"` // of the page
	Time     time.Time       `json:"time"`          // of the last attempt
	Attempts int             `json:"attempts"`
	Error    string          `json:"error"` // of the last attempt
	Body     json.RawMessage `json:"body"`
}

// Letters keeps dead letters in a directory, a file each. Several processes may use the directory at a
// time.
type Letters struct{ dir string }

const letterSuffix = ".json"

// OpenLetters returns the letters in a directory, which is made when there is a first one.
func OpenLetters(dir string) *Letters { return &Letters{dir} }

// Add keeps a letter, durably. One with the same ID is replaced.
func (l *Letters) Add(_ context.Context, letter Letter) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("feed: keep dead letter %s: %w", letter.ID, err)
		}
	}()
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return err
	}
	text, err := json.Marshal(&letter)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(l.dir, "new-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), l.path(letter.ID)); err != nil {
		return err
	}
	d, err := os.Open(l.dir)
	if err != nil {
		return err
	}
	defer d.Close()
	_ = d.Sync() // some systems have no such thing
	return nil
}

func (l *Letters) path(id string) string { return filepath.Join(l.dir, id+letterSuffix) }

// All returns the letters, oldest first.
func (l *Letters) All() (all []Letter, err error) {
	entries, err := os.ReadDir(l.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("feed: %w", err)
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), letterSuffix) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(l.dir, e.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var letter Letter
		if err == nil {
			err = json.Unmarshal(text, &letter)
		}
		if err == nil && letter.ID+letterSuffix != e.Name() {
			err = fmt.Errorf("it has the id %q", letter.ID)
		}
		if err != nil {
			return nil, fmt.Errorf("feed: dead letter %s: %w", e.Name(), err)
		}
		all = append(all, letter)
	}
	slices.SortFunc(all, func(a, b Letter) int { return cmp.Or(a.Time.Compare(b.Time), strings.Compare(a.ID, b.ID)) })
	return all, nil
}

// Remove removes a letter.
func (l *Letters) Remove(id string) error {
	if err := os.Remove(l.path(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("feed: %w", err)
	}
	return nil
}

// Resend posts each letter once, oldest first, and removes those that are accepted. A letter that is refused
// stays, with the new error. The error says that one could not be posted at all, such as because there is
// no connection; the others stay then. A receiver compares the time of the visit in the data with that of
// the last event of the page, to see whether it has already got a later one.
func (l *Letters) Resend(ctx context.Context, w *Webhook) (sent, refused int, err error) {
	s, err := w.newSender()
	if err != nil {
		return 0, 0, err
	}
	all, err := l.All()
	if err != nil {
		return 0, 0, err
	}
	for _, letter := range all {
		var failed *attemptError
		switch err := s.attempt(ctx, letter.ID, letter.Body); {
		case err == nil:
			if err := l.Remove(letter.ID); err != nil {
				return sent, refused, err
			}
			sent++
		case errors.As(err, &failed) && failed.refused:
			refused++
			letter.Time, letter.Attempts, letter.Error = time.Now().UTC(), letter.Attempts+1, err.Error()
			if err := l.Add(ctx, letter); err != nil {
				return sent, refused, err
			}
		default:
			return sent, refused, err
		}
	}
	return sent, refused, nil
}
