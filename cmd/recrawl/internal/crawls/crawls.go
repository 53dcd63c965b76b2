// Package crawls opens the crawls that -d names: a directory of pebblestore, or a database by
// the scheme of its URL. It decides nothing about a crawl. A new engine is a line in engines.
package crawls

import (
	"context"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/recrawl/recrawl/cmd/recrawl/internal/flags"
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/linkdb"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/stores/pgstore"
)

// DB is an open crawl of any engine.
type DB interface {
	Crawl() crawldb.Store
	Hosts() hostdb.Store
	Links() linkdb.Store
	Segments() segment.Store
	Close() error
}

// Options say how a crawl is opened.
type Options struct {
	ReadOnly  bool
	MustExist bool // a crawl that does not exist is an error, and is not made
	Logger    *slog.Logger
}

// engines are the engines other than that of a directory, by the schemes of their URLs.
func engines() map[string]func(ctx context.Context, dsn string, o Options) (DB, error) {
	return map[string]func(context.Context, string, Options) (DB, error){"postgres": openPostgres, "postgresql": openPostgres}
}

func openPostgres(ctx context.Context, dsn string, o Options) (DB, error) {
	db, err := pgstore.Open(ctx, dsn, pgstore.Options{ReadOnly: o.ReadOnly, MustExist: o.MustExist, Logger: o.Logger})
	if err != nil {
		return nil, err
	}
	return db, nil
}

// IsURL reports whether a crawl is named by a URL, and is no directory.
func IsURL(name string) bool { return strings.Contains(name, "://") }

// WithoutPassword returns the name of a crawl as it may be shown.
func WithoutPassword(name string) string {
	if u, err := url.Parse(name); err == nil && u.User != nil {
		return u.Redacted()
	}
	return name
}

// OpenURL opens the crawl that a URL names.
func OpenURL(ctx context.Context, name string, o Options) (DB, error) {
	scheme, _, _ := strings.Cut(name, "://")
	open := engines()[scheme]
	if open == nil {
		return nil, flags.Usagef("%s://: no engine has this scheme; there are directories, and URLs that begin with %s://", scheme, strings.Join(slices.Sorted(maps.Keys(engines())), ":// or "))
	}
	return open(ctx, name, o)
}

// NeedDirectory returns an error if a verb that works on files is given a URL.
func NeedDirectory(verb, name string) error {
	if IsURL(name) {
		return flags.Usagef("%s works on the files of a crawl in a directory; for a crawl in a database, use the means of the database", verb)
	}
	return nil
}
