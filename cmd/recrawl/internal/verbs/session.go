package verbs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/control"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/crawls"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/flags"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/render"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/nutch/nutchconf"
	"github.com/recrawl/recrawl/parse/documents"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/chromeproto"
	"github.com/recrawl/recrawl/protocol/httpproto"
	"github.com/recrawl/recrawl/protocol/robots"
	"github.com/recrawl/recrawl/stores/pebblestore"
	"github.com/recrawl/recrawl/warc"
)

// session is an open crawl.
type session struct {
	db         crawls.DB
	crawler    *recrawl.Crawler
	client     *httpproto.Client
	conf       *nutchconf.Options // nil without -conf
	now        func() time.Time
	warc       *warc.Writer          // nil without -warc
	archive    *warc.Archive         // nil without -replay
	docs       *documents.Parser     // nil without -documents
	renderer   *chromeproto.Protocol // nil without -render
	pageRobots *robots.Cache         // for what rendered pages request; nil without -render
	failures   render.Failures
	damaged    int // how many of Crawler.Damaged were reported
}

// access is what a verb needs beside an existing crawl.
type access struct {
	network bool // it makes requests
	create  bool // it creates the crawl if there is none
	change  bool // it changes the crawl, though most uses of the verb read it
}

// begin opens the crawl and makes a crawler from the flags.
func (a *app) begin(ctx context.Context, c *cli.Command, needs access, adjust ...func(*recrawl.Options)) (*session, error) {
	s := &session{}
	if err := a.openSession(ctx, c, s, needs, adjust); err != nil {
		s.end()
		return nil, err
	}
	s.reportDamage(a.err)
	return s, nil
}

// openSession fills in a session. After an error, session.end closes what was opened.
func (a *app) openSession(ctx context.Context, c *cli.Command, s *session, needs access, adjust []func(*recrawl.Options)) error {
	o, err := a.sessionOptions(ctx, c, s, needs.network)
	if err != nil {
		return err
	}
	if c.Category == flags.ReadVerbs && !needs.change {
		o.ReadOnly = true
		s.db, err = a.openToRead(ctx, c, onceCache)
	} else {
		s.db, err = a.openToChange(ctx, c, !needs.create)
	}
	if err != nil {
		return err
	}
	if s.pageRobots != nil {
		s.pageRobots.Hosts = s.db.Hosts()
	}
	if err := flags.ApplySaved(ctx, s.db.Crawl(), c, &o, a.err); err != nil {
		return err
	}
	for _, f := range adjust {
		f(&o)
	}
	s.readDocuments(c, &o)
	s.crawler, err = recrawl.New(recrawl.Stores{
		Crawl: s.db.Crawl(), Hosts: s.db.Hosts(), Links: s.db.Links(), Segments: s.db.Segments(),
	}, o)
	return err
}

// readDocuments makes the crawler read documents too, if -documents says so.
func (s *session) readDocuments(c *cli.Command, o *recrawl.Options) {
	if c.Bool("documents") {
		s.docs = &documents.Parser{Timeout: o.Fetch.Parsing.Timeout}
		o.Parser = s.docs.With(flags.PageParser(o))
	}
}

// sessionOptions makes the options of a crawler from the configuration, if there is one, and
// from the flags, before anything is opened. It also sets the clock, the client and the
// configuration of the session.
func (a *app) sessionOptions(ctx context.Context, c *cli.Command, s *session, network bool) (o recrawl.Options, err error) {
	if s.now, err = flags.Clock(c); err != nil {
		return o, err
	}
	if s.conf, err = flags.ReadNutchConf(c); err != nil {
		return o, err
	}
	if s.conf != nil {
		a.reportNotes(c, s.conf)
	}
	o = flags.CrawlerOptions(c, s.conf)
	o.Now, o.Logger = s.now, a.logger(c)
	o.Robots.Purposes = c.StringSlice("purpose")
	m, err := flags.ReadMemory(c)
	if err != nil {
		return o, err
	}
	m.BoundSorting(&o)
	if err := flags.ApplySelection(c, &o.Generate); err != nil {
		return o, err
	}
	if err := flags.ApplyEndlessSites(c, &o); err != nil {
		return o, err
	}
	if o.Rules, err = flags.WithURLRules(c, o.Rules); err != nil {
		return o, err
	}
	if err := flags.CheckSaved(c); err != nil {
		return o, err
	}
	if err := flags.CheckNumbers(c); err != nil {
		return o, err
	}
	if err := flags.ApplyHostRules(c, &o.Fetch); err != nil { // explain reads them, though it makes no requests
		return o, err
	}
	o.Fetch.OnVisit = s.failures.Add
	client := o.HTTP
	o.Protocol, o.HTTP = offline{}, httpproto.Options{}
	if !network {
		return o, nil
	}
	if err := flags.ApplyPoliteness(c, &o.Fetch); err != nil {
		return o, err
	}
	client.Ascending = o.Fetch.Politeness.By == hostdb.ByIP
	files, err := flags.ReplayFiles(c)
	if err != nil {
		return o, err
	}
	if len(files) > 0 {
		if err := s.openReplay(ctx, c, files, &o, client); err != nil {
			return o, err
		}
		return o, flags.ApplyFetchLimits(c, &o.Fetch)
	}
	if err := s.captureTo(c.String("warc"), &client); err != nil {
		return o, err
	}
	if s.client, err = flags.NewClient(c, client, s.now, a.err); err != nil {
		return o, err
	}
	o.Protocol = s.client
	rendering, err := flags.ReadRendering(c, a.err)
	if err != nil {
		return o, err
	}
	if rendering != nil {
		rendering.Client, rendering.IgnoreRobots = s.client, o.Fetch.Politeness.NoRobots
		s.pageRobots = &robots.Cache{Protocol: s.client, Product: s.client.Options().Agent, Policy: o.Robots, Now: s.now}
		rendering.Robots = s.pageRobots
		if s.renderer, err = chromeproto.New(*rendering); err != nil {
			return o, flags.Usagef("-render: %w", err)
		}
		o.Protocol = s.renderer
	}
	if err := flags.ApplyDelay(c, s.conf, &o.Fetch.Politeness.Delay); err != nil {
		return o, err
	}
	return o, flags.ApplyFetchLimits(c, &o.Fetch)
}

// reportDamage reports segments that were found damaged since its last call.
func (s *session) reportDamage(w io.Writer) {
	damaged := s.crawler.Damaged()
	for _, err := range damaged[s.damaged:] {
		fmt.Fprintf(w, "recrawl: left as it is: %v\n", err)
	}
	s.damaged = len(damaged)
}

// offline is the protocol of verbs that make no request.
type offline struct{}

func (offline) Fetch(context.Context, protocol.Request) (protocol.Response, error) {
	return protocol.Response{Outcome: protocol.Outcome{Code: protocol.Refused, Reason: "this verb makes no requests"}}, nil
}

// end closes what begin opened; the first error counts.
func (s *session) end() error {
	var first error
	keep := func(err error) {
		if first == nil {
			first = err
		}
	}
	if s.crawler != nil {
		keep(s.crawler.Close())
	}
	if s.renderer != nil {
		keep(s.renderer.Close())
	}
	if s.client != nil {
		keep(s.client.Close())
	}
	if s.warc != nil {
		keep(s.warc.Close())
	}
	if s.archive != nil {
		keep(s.archive.Close())
	}
	if s.docs != nil {
		keep(s.docs.Close())
	}
	if s.db != nil {
		keep(s.db.Close())
	}
	return first
}

// withCrawl runs a verb on an open crawl.
func (a *app) withCrawl(ctx context.Context, c *cli.Command, needs access, verb func(*session) error, adjust ...func(*recrawl.Options)) error {
	return retryVerbWhileFull(ctx, a, c, verb, func(verb func(*session) error) error {
		return a.withCrawlOnce(ctx, c, needs, verb, adjust...)
	})
}

func (a *app) withCrawlOnce(ctx context.Context, c *cli.Command, needs access, verb func(*session) error, adjust ...func(*recrawl.Options)) error {
	s, err := a.begin(ctx, c, needs, adjust...)
	if err != nil {
		return err
	}
	err = verb(s)
	// That the crawl could not be closed says more than that it was interrupted.
	if e := s.end(); err == nil || e != nil && errors.Is(err, context.Canceled) {
		err = e
	}
	return err
}

// segmentArg returns the one argument of a stage: a segment, by default the
// newest.
func segmentArg(ctx context.Context, c *cli.Command, s *session) (string, error) {
	if c.Args().Len() > 1 {
		return "", flags.Usagef("%s takes one segment, not %q too", c.Name, c.Args().Get(1))
	}
	name := c.Args().First()
	found := false
	newest := ""
	for n, err := range s.db.Segments().List(ctx) {
		if err != nil {
			return "", err
		}
		found = found || n == name
		newest = n
	}
	switch {
	case name != "" && !found:
		return "", fmt.Errorf("no segment %q", name)
	case name != "":
		return name, nil
	case newest == "":
		return "", fmt.Errorf("no segment; generate makes one")
	}
	return newest, nil
}

// watched shows progress, and announces the run to other processes, until stop is called.
func (a *app) watched(c *cli.Command, s *session) (stop func()) {
	hide := func() {}
	if !c.Bool("json") {
		hide = render.ShowProgress(a.err, s.crawler)
	}
	quiet := func() {}
	if db, ok := crawls.Engine(s.db).(*pebblestore.DB); ok { // others find a directory locked, and ask in it
		quiet = control.Announce(db, s.crawler, c.Name)
	}
	return func() { quiet(); hide() }
}

// reportNotes reports on standard error which settings of a configuration have no
// effect: the unknown names, and the number of the others.
func (a *app) reportNotes(c *cli.Command, o *nutchconf.Options) {
	rest := 0
	for _, n := range o.Notes {
		if n.Unknown || c.Bool("v") {
			fmt.Fprintf(a.err, "recrawl: %v\n", n)
		} else {
			rest++
		}
	}
	if rest > 0 {
		fmt.Fprintf(a.err, "recrawl: %d properties are not honoured, or only in part; recrawl check conf -conf %s lists them\n", rest, c.String("conf"))
	}
}

// readStore opens the crawl for a verb that makes no crawler, and closes it.
func (a *app) readStore(ctx context.Context, c *cli.Command, verb func(crawls.DB, func() time.Time) error) error {
	if err := oneArgAtMost(c); err != nil {
		return err
	}
	now, err := flags.Clock(c)
	if err != nil {
		return err
	}
	return a.readStoreWithCache(ctx, c, onceCache, func(db crawls.DB) error { return verb(db, now) })
}

// readStoreWithCache is readStore for a verb with any arguments and with a cache of its own
// size: see openToRead.
func (a *app) readStoreWithCache(ctx context.Context, c *cli.Command, cache int64, verb func(crawls.DB) error) error {
	if _, err := flags.Clock(c); err != nil {
		return err
	}
	db, err := a.openToRead(ctx, c, cache)
	if err != nil {
		return err
	}
	return closeAfter(db, verb)
}

// changeStore opens the crawl for a verb that makes no crawler and takes no argument.
func (a *app) changeStore(ctx context.Context, c *cli.Command, verb func(crawls.DB, func() time.Time) error) error {
	if err := flags.NoArgs(c); err != nil {
		return err
	}
	now, err := flags.Clock(c)
	if err != nil {
		return err
	}
	return retryVerbWhileFull(ctx, a, c, func(db crawls.DB) error { return verb(db, now) }, func(verb func(crawls.DB) error) error {
		db, err := a.openToChange(ctx, c, true)
		if err != nil {
			return err
		}
		return closeAfter(db, verb)
	})
}

// closeAfter runs a verb and closes the store.
func closeAfter(db crawls.DB, verb func(crawls.DB) error) error {
	err := verb(db)
	if e := db.Close(); err == nil {
		err = e
	}
	return err
}

// oneArgAtMost refuses arguments, except for the verbs that take one.
func oneArgAtMost(c *cli.Command) error {
	if c.ArgsUsage != "" {
		if c.Args().Len() > 1 {
			return flags.Usagef("%s takes one argument, not %q too", c.Name, c.Args().Get(1))
		}
		return nil
	}
	return flags.NoArgs(c)
}
