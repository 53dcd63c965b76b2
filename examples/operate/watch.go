package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/update"
	"github.com/recrawl/recrawl/urlfilter"
)

// watch keeps an index of the sites that a file names. Its methods may be called
// beside a Run.
type watch struct {
	crawler *recrawl.Crawler
	stores  recrawl.Stores
	rules   *urlfilter.Rules
	sites   string // the file, a host a line

	mu     sync.Mutex
	paused map[string]bool
	index  map[string]string // title by URL
}

// open returns a watch over the sites that a file names. The file also decides which
// pages belong to it.
func open(stores recrawl.Stores, sites string, o recrawl.Options) (*watch, error) {
	wanted, err := urlfilter.OpenFilter(sites, urlfilter.ParseDomain, urlfilter.Options{})
	if err != nil {
		return nil, err
	}
	w := &watch{stores: stores, rules: urlfilter.Default(), sites: sites, paused: map[string]bool{}, index: map[string]string{}}
	w.rules.Filters = append(w.rules.Filters, wanted)
	o.Rules, o.OnPage, o.Fetch.Politeness.HostRule = w.rules, w.onPage, w.hostRule
	w.crawler, err = recrawl.New(stores, o)
	return w, err
}

// onPage may be called again for a page if the process dies, so it sets values and never
// adds up.
func (w *watch) onPage(ctx context.Context, e recrawl.PageEvent) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := w.rules.Apply(urlfilter.Indexer, e.URL)
	switch {
	case err != nil, e.Kind == recrawl.PageGone, e.Kind == recrawl.PageMoved:
		delete(w.index, e.URL) // err: the site was removed while the round was under way
	case e.Kind == recrawl.PageNew, e.Kind == recrawl.PageChanged:
		p, err := e.Parsed(ctx)
		if err != nil {
			return err
		}
		w.index[e.URL] = p.Title
	}
	return nil
}

// hostRule is asked before each request.
func (w *watch) hostRule(queue string) fetch.HostRule {
	w.mu.Lock()
	defer w.mu.Unlock()
	return fetch.HostRule{Requests: 5000, Closed: w.paused[queue]} // a day
}

func (w *watch) pause(host string, paused bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.paused[hostdb.ByHost.Key("http://"+host+"/")] = paused
}

// fetchNow has pages fetched by the next round, whatever schedule and budget say.
func (w *watch) fetchNow(ctx context.Context, urls ...string) error {
	r, err := w.crawler.GenerateFree(ctx, func(yield func(string, error) bool) {
		for _, url := range urls {
			if !yield(url, nil) {
				return
			}
		}
	})
	if err == nil && r.Selected != len(urls) {
		err = fmt.Errorf("operate: %d of %d pages are not URLs of the sites", len(urls)-r.Selected, len(urls))
	}
	return err
}

// reload applies the file as it is now: new sites are started, and all that is known
// about sites no longer in it is removed for good.
func (w *watch) reload(ctx context.Context) error {
	text, err := os.ReadFile(w.sites)
	if err != nil {
		return err
	}
	if _, err := w.rules.Reload(); err != nil {
		return err
	}
	hosts := strings.Fields(string(text))
	for _, host := range hosts {
		r, err := w.crawler.Inject(ctx, "http://"+host+"/") // one that is known already changes nothing
		if err == nil && len(r.Bad) > 0 {
			err = r.Bad[0]
		}
		if err != nil {
			return err
		}
	}
	return w.drop(ctx, func(host string) bool { return !slices.Contains(hosts, host) })
}

// drop removes hosts from the index, the crawl db and the host db. Pages of a round in
// progress stay in the crawl db until the next time, but are never selected again. The
// link db keeps their links: recrawl mergelinkdb -filter makes one without them.
func (w *watch) drop(ctx context.Context, gone func(host string) bool) error {
	var names []string
	for h, err := range w.stores.Hosts.Scan(ctx) {
		if err != nil {
			return err
		}
		if gone(h.Name) {
			names = append(names, h.Name)
		}
	}
	for _, name := range names {
		for d, err := range w.stores.Crawl.Scan(ctx, crawldb.HostRange(name)) {
			if err != nil {
				return err
			}
			w.mu.Lock()
			delete(w.index, d.URL)
			w.mu.Unlock()
		}
	}
	_, err := w.crawler.Sweep(ctx, update.SweepOptions{Filter: true})
	for _, name := range names {
		err = errors.Join(err, w.stores.Hosts.Update(ctx, name, func(*hostdb.Host) (*hostdb.Host, error) { return nil, nil }))
	}
	return err
}
