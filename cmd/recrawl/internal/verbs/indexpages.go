package verbs

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/control"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/flags"
	"github.com/recrawl/recrawl/httpapi"
	"github.com/recrawl/recrawl/index/bleve"
	"github.com/recrawl/recrawl/stores/memstore"
)

// indexPages is the search page of an index. Its crawl is empty: a search needs the index alone, so that it works
// whichever process has the crawl open.
type indexPages struct {
	http.Handler
	index   *bleve.Index
	crawler *recrawl.Crawler
	db      memstore.DB
}

func searchIndexFlag() cli.Flag {
	return &cli.StringFlag{Name: "index", Usage: "search in the index bleve:`DIR` that recrawl index makes; otherwise a search reads the newest segments for a second"}
}

// openIndexPages opens the index that -index names, nil if it names none.
func openIndexPages(c *cli.Command) (*indexPages, error) {
	given := c.String("index")
	if given == "" {
		return nil, nil
	}
	dir, ok := strings.CutPrefix(given, "bleve:")
	if !ok {
		return nil, flags.Usagef("-index: %q does not begin with bleve:", given)
	}
	x, err := bleve.Open(dir, bleve.Options{ReadOnly: true})
	if errors.Is(err, bleve.ErrNoIndex) {
		err = fmt.Errorf("%w; recrawl index -d CRAWL -to %s makes one", err, given)
	}
	if err != nil {
		return nil, err
	}
	p := &indexPages{index: x}
	stores := recrawl.Stores{Crawl: p.db.Crawl(), Hosts: p.db.Hosts(), Links: p.db.Links(), Segments: p.db.Segments()}
	if p.crawler, err = recrawl.New(stores, recrawl.Options{Agent: "recrawl", Protocol: offline{}}); err == nil {
		p.Handler, err = control.NewPages(p.crawler, stores, c.String("d"), nil, p)
	}
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// Search implements httpapi.Searcher.
func (p *indexPages) Search(ctx context.Context, query string, limit int) (hits []httpapi.Hit, err error) {
	r, err := p.index.Search(ctx, bleve.Query{Text: query, Limit: limit})
	for _, found := range r.Results {
		hit := httpapi.Hit{URL: found.Document.URL, Title: found.Document.Title, Score: found.Score}
		if !found.Document.NoArchive {
			hit.Snippet = found.Snippet
		}
		hits = append(hits, hit)
	}
	if errors.Is(err, bleve.ErrQuery) {
		err = fmt.Errorf("%w: %w", httpapi.ErrQuery, err)
	}
	return hits, err
}

// serves reports whether a request is a search.
func (p *indexPages) serves(r *http.Request) bool {
	return p != nil && (r.URL.Path == "/search" || r.URL.Path == "/search.json")
}

// Close closes the index.
func (p *indexPages) Close() error {
	if p == nil {
		return nil
	}
	errs := []error{p.index.Close()}
	if p.crawler != nil {
		errs = append(errs, p.crawler.Close())
	}
	return errors.Join(append(errs, p.db.Close())...)
}
