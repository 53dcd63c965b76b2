package crawls

import (
	"context"
	"errors"
	"log/slog"
	"net/url"

	"github.com/recrawl/recrawl/cmd/recrawl/internal/flags"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/stores/s3store"
)

// elsewhere is a crawl whose segments are not in its database.
type elsewhere struct {
	DB
	segments *s3store.Store
}

func (e *elsewhere) Segments() segment.Store { return e.segments }

func (e *elsewhere) Close() error { return errors.Join(e.segments.Close(), e.DB.Close()) }

// Engine returns the database of a crawl, which may have further methods.
func Engine(db DB) DB {
	if e, ok := db.(*elsewhere); ok {
		return e.DB
	}
	return db
}

// SegmentOptions say where the segments of a crawl are kept.
type SegmentOptions struct {
	Place    string // the URL that the caller gives; empty if there is none
	ReadOnly bool
	Logger   *slog.Logger
}

// WithSegments returns a crawl with the segments in an object store, if the caller or the crawl says
// so. A crawl remembers the place without a secret, and keeps it.
func WithSegments(ctx context.Context, db DB, o SegmentOptions) (DB, error) {
	saved, err := flags.ReadSavedFlags(ctx, db.Crawl())
	if err != nil {
		return nil, err
	}
	place := o.Place
	if place == "" {
		if place = saved.Segments; place == "" {
			return db, nil
		}
	}
	options, err := s3store.ParseURL(place)
	if err != nil {
		return nil, flags.Usagef("-segments: %w", err)
	}
	if err := checkPlace(ctx, db, saved.Segments, options); err != nil {
		return nil, err
	}
	options.ReadOnly, options.Logger = o.ReadOnly, o.Logger
	segments, err := s3store.Open(ctx, options)
	if err != nil {
		return nil, err
	}
	if shown := withoutUser(place); shown != saved.Segments && !o.ReadOnly {
		saved.Segments = shown
		if err := saved.Save(ctx, db.Crawl()); err != nil {
			return nil, errors.Join(err, segments.Close())
		}
	}
	return &elsewhere{db, segments}, nil
}

// checkPlace returns an error if the segments of a crawl are in another place.
func checkPlace(ctx context.Context, db DB, saved string, o s3store.Options) error {
	if saved != "" {
		old, err := s3store.ParseURL(saved)
		if err == nil && (old.Bucket != o.Bucket || old.Prefix != o.Prefix) {
			err = flags.Usagef("-segments: this crawl keeps its segments in s3://%s/%s", old.Bucket, old.Prefix)
		}
		return err
	}
	for name, err := range db.Segments().List(ctx) {
		if err != nil {
			return err
		}
		return flags.Usagef("-segments: this crawl keeps its segments in its directory or database, as %s; recrawl move takes them elsewhere", name)
	}
	return nil
}

// withoutUser returns a URL without user and password.
func withoutUser(place string) string {
	u, err := url.Parse(place)
	if err != nil {
		return ""
	}
	u.User = nil
	return u.String()
}
