// Package crawls opens the crawls that -d names: a directory of pebblestore, or a database by
// the scheme of its URL. It decides nothing about a crawl. A new engine is a line in engines.
package crawls

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/recrawl/recrawl/cmd/recrawl/internal/flags"
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/crawldb/groups"
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
	options := pgstore.Options{ReadOnly: o.ReadOnly, MustExist: o.MustExist, Logger: o.Logger}
	db, err := pgstore.Open(ctx, dsn, options)
	if errors.Is(err, pgstore.ErrDivided) && o.ReadOnly {
		return openDivided(ctx, dsn, options)
	}
	if errors.Is(err, pgstore.ErrDivided) {
		err = fmt.Errorf("%w: of the verbs that change a crawl, only crawl works on it", err)
	}
	if err != nil {
		return nil, err
	}
	return db, nil
}

// divided shows a crawl that is divided among groups as one, for reading.
type divided struct {
	engine *pgstore.Groups
	stores groups.Stores
}

func openDivided(ctx context.Context, dsn string, o pgstore.Options) (DB, error) {
	engine, err := pgstore.OpenGroups(ctx, dsn, groups.Table{}, o)
	if err != nil {
		return nil, err
	}
	stores, err := groups.Merged(ctx, engine)
	if err != nil {
		return nil, errors.Join(err, engine.Close())
	}
	return &divided{engine, stores}, nil
}

func (d *divided) Crawl() crawldb.Store    { return d.stores.Crawl }
func (d *divided) Hosts() hostdb.Store     { return d.stores.Hosts }
func (d *divided) Links() linkdb.Store     { return d.stores.Links }
func (d *divided) Segments() segment.Store { return d.stores.Segments }
func (d *divided) Close() error            { return d.engine.Close() }

// OpenGroups opens a crawl that is divided among groups, or divides it into n, with the hosts of hot
// domains apart; nil if it is not divided and n is zero.
func OpenGroups(ctx context.Context, dsn string, n int, hot []string, logger *slog.Logger) (groups.Engine, error) {
	if scheme, _, _ := strings.Cut(dsn, "://"); engines()[scheme] == nil {
		return nil, nil
	}
	o := pgstore.Options{Logger: logger}
	if n == 0 {
		db, err := pgstore.Open(ctx, dsn, pgstore.Options{ReadOnly: true, Logger: logger})
		switch {
		case err == nil:
			return nil, db.Close()
		case !errors.Is(err, pgstore.ErrDivided):
			return nil, nil // the verb itself will find out
		}
		n = 1 // is not used
	}
	routing := groups.DefaultRouting()
	routing.Hot = hot
	first, err := groups.Divide(n, routing)
	if err != nil {
		return nil, flags.Usagef("-groups: %w", err)
	}
	engine, err := pgstore.OpenGroups(ctx, dsn, first, o)
	if err != nil {
		return nil, err
	}
	return engine, nil
}

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
	if flags.IsURL(name) {
		return flags.Usagef("%s works on the files of a crawl in a directory; for a crawl in a database, use the means of the database", verb)
	}
	return nil
}
