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
	if err := checkPlace(ctx, db, saved.Segments, place); err != nil {
		return nil, err
	}
	o.Place = place
	segments, err := OpenSegments(ctx, o)
	if err != nil {
		return nil, err
	}
	if !o.ReadOnly {
		if err := KeepPlace(ctx, db, place); err != nil {
			return nil, errors.Join(err, segments.Close())
		}
	}
	return &elsewhere{db, segments}, nil
}

// OpenSegments opens the object store at a place.
func OpenSegments(ctx context.Context, o SegmentOptions) (*s3store.Store, error) {
	options, err := s3store.ParseURL(o.Place)
	if err != nil {
		return nil, flags.Usagef("-segments: %w", err)
	}
	options.ReadOnly, options.Logger = o.ReadOnly, o.Logger
	return s3store.Open(ctx, options)
}

// KeepPlace makes a crawl remember the place of its segments.
func KeepPlace(ctx context.Context, db DB, place string) error {
	saved, err := flags.ReadSavedFlags(ctx, db.Crawl())
	if err != nil || saved.Segments == WithoutUser(place) {
		return err
	}
	saved.Segments = WithoutUser(place)
	return saved.Save(ctx, db.Crawl())
}

// checkPlace returns an error if the segments of a crawl are in another place.
func checkPlace(ctx context.Context, db DB, saved, place string) error {
	o, err := s3store.ParseURL(place)
	if err != nil {
		return flags.Usagef("-segments: %w", err)
	}
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

// WithoutUser returns a URL without user and password.
func WithoutUser(place string) string {
	u, err := url.Parse(place)
	if err != nil {
		return ""
	}
	u.User = nil
	return u.String()
}
