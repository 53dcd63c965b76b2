// Package targets opens the indexes that -to names: one of bleve in a directory, or a search engine
// by the scheme of its URL. It decides nothing about what is indexed. A new engine is a line in engines.
package targets

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/recrawl/recrawl/cmd/recrawl/internal/flags"
	"github.com/recrawl/recrawl/index"
	"github.com/recrawl/recrawl/index/bleve"
	"github.com/recrawl/recrawl/index/opensearch"
)

// Writer is an open index.
type Writer interface {
	index.Lister
	io.Closer
}

// Target is an index that may be opened.
type Target struct {
	engine string
	at     string // a directory, or a URL without the engine
	o      Options
}

// Options say how an index is opened.
type Options struct {
	// OnReject is called for a document that the engine does not take; err says why.
	OnReject func(url string, err error)
	// OnRetry is called before a request is made again, after a pause.
	OnRetry func(err error, pause time.Duration)
	// Patience is how long one is; less than zero means forever.
	Patience time.Duration
}

// engine is a kind of index.
type engine struct {
	// exists reports whether there is an index: one that is lost is filled again.
	exists func(ctx context.Context, at string) (bool, error)
	open   func(ctx context.Context, at string, o Options) (Writer, error)
}

// engines are the engines by the names before the first colon, or the first plus of a URL.
func engines() map[string]engine {
	bulk := engine{
		exists: func(ctx context.Context, at string) (bool, error) {
			return opensearch.Exists(ctx, at, opensearch.Options{})
		},
		open: func(ctx context.Context, at string, o Options) (Writer, error) {
			w, err := opensearch.Open(ctx, at, opensearch.Options{OnRetry: o.OnRetry, Patience: o.Patience, OnReject: func(url string, err error) error {
				o.OnReject(url, err)
				return nil
			}})
			if err != nil {
				return nil, err
			}
			return w, nil
		},
	}
	return map[string]engine{
		"opensearch": bulk, "elasticsearch": bulk,
		"bleve": {
			exists: func(_ context.Context, at string) (bool, error) { return bleve.Exists(at), nil },
			open: func(_ context.Context, at string, _ Options) (Writer, error) {
				x, err := bleve.Open(at, bleve.Options{})
				if err != nil {
					return nil, err
				}
				return x, nil
			},
		},
	}
}

// Parse reads the value of -to.
func Parse(text string, o Options) (Target, error) {
	engine, at, ok := strings.Cut(text, ":")
	if scheme, transport, two := strings.Cut(engine, "+"); two { // opensearch+https://…
		engine, at = scheme, transport+":"+at
	}
	if _, is := engines()[engine]; !ok || !is {
		return Target{}, flags.Usagef("-to: %q names no index; known are %s, as bleve:DIR or opensearch+http://localhost:9200/NAME", text, strings.Join(slices.Sorted(maps.Keys(engines())), ", "))
	}
	if strings.Trim(at, "/:") == "" {
		return Target{}, flags.Usagef("-to: %q does not say where the index is", text)
	}
	return Target{engine, at, o}, nil
}

// String returns the target without a password.
func (t Target) String() string {
	if u, err := url.Parse(t.at); err == nil && u.Host != "" {
		return t.engine + "+" + u.Redacted()
	}
	return t.engine + ":" + t.at
}

// Consumer returns the name of the consumer for the target, the same for the same index.
func (t Target) Consumer() string {
	at := t.at
	if u, err := url.Parse(at); err == nil && u.Host != "" {
		u.User = nil
		at = u.String()
	} else if abs, err := filepath.Abs(at); err == nil {
		at = abs
	}
	sum := sha256.Sum256([]byte(at))
	return "index-" + t.engine + "-" + hex.EncodeToString(sum[:4])
}

// Exists reports whether there is an index at the target.
func (t Target) Exists(ctx context.Context) (bool, error) {
	return engines()[t.engine].exists(ctx, t.at)
}

// Open opens the index, and makes one if there is none.
func (t Target) Open(ctx context.Context) (Writer, error) {
	return engines()[t.engine].open(ctx, t.at, t.o)
}
