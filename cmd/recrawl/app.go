package main

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/nutch/nutchconf"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/httpproto"
	"github.com/recrawl/recrawl/stores/pebblestore"
	"github.com/recrawl/recrawl/urlfilter"
)

// app is what all verbs share.
type app struct{ out, err io.Writer }

// The groups of flags in a help text.
const (
	toNetwork = "The network"
	toSelect  = "Which pages"
	toReport  = "Clock and output"
)

// The flags. Each verb lists those it heeds.

func dirFlag() cli.Flag {
	return &cli.StringFlag{Name: "d", Usage: "the directory `DIR` of the crawl (required)"}
}

func seedsFlag() cli.Flag {
	return &cli.StringFlag{Name: "seeds", Usage: "inject the URLs in `FILE`, one a line, or in every file of a directory; - is standard input"}
}

// reporting returns the flags that every verb with a directory has.
func reporting() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "now", Category: toReport, Usage: "use this RFC 3339 `TIME` as the current time, for example 2026-01-31T08:00:00Z, so that two runs can be compared"},
		&cli.BoolFlag{Name: "json", Category: toReport, Usage: "print JSON instead of text"},
		&cli.BoolFlag{Name: "v", Category: toReport, Usage: "report anything unusual on standard error"},
	}
}

func networking() []cli.Flag {
	return append([]cli.Flag{
		&cli.StringFlag{Name: "agent", Category: toNetwork, Usage: "the `NAME` of the crawler: letters, digits, '-' and '_'; sent with every request and looked up in robots.txt (required)"},
		&cli.DurationFlag{Name: "delay", Category: toNetwork, Usage: "pause for `TIME` between requests to a host, or longer if its robots.txt asks for it; 0 for none (default 5s)", Value: 5 * time.Second},
		&cli.IntFlag{Name: "threads", Category: toNetwork, Usage: "make at most `N` visits at once (0: 50)"},
		&cli.StringSliceFlag{Name: "connect-to", Category: toNetwork, Usage: "like curl's: `HOST:PORT:HOST2:PORT2` connects to HOST2:PORT2 instead of HOST:PORT. An empty HOST or PORT matches any, an empty HOST2 or PORT2 keeps it. May be repeated; connections that no entry maps are then refused"},
		&cli.StringFlag{Name: "cacert", Category: toNetwork, Usage: "trust the certificates in this PEM `FILE` instead of the system's"},
		&cli.StringFlag{Name: "proxy", Category: toNetwork, Usage: "connect through the HTTP proxy at this `URL`, such as http://localhost:3128; empty for none"},
		&cli.BoolFlag{Name: "allow-private", Category: toNetwork, Usage: "connect to loopback, private and link-local addresses too, but not to the metadata services of clouds"},
	}, requesting()...)
}

func stayFlag() cli.Flag {
	return &cli.BoolFlag{Name: "ignore-external", Category: toSelect, Usage: "follow no links to other hosts"}
}

// share makes every verb with a directory accept all the flags that verbs share, so
// that a script can pass the same list to each. The help omits a flag where it has
// no effect.
func share(root *cli.Command) {
	for _, verb := range root.Commands {
		has := map[string]bool{}
		for _, f := range verb.Flags {
			has[f.Names()[0]] = true
		}
		if !has["d"] {
			continue
		}
		for _, f := range confFlags() {
			if !has[f.Names()[0]] {
				verb.Flags = append(verb.Flags, f)
			}
		}
		for _, f := range flags(networking(), sparing(), limiting(), selecting(), bounding(), urlRulesFlag(), scoringFlag(), scheduling(), memoryFlag(), minFreeFlag(), reporting()) {
			if has[f.Names()[0]] {
				continue
			}
			switch f := f.(type) {
			case *cli.StringFlag:
				f.Hidden = true
			case *cli.BoolFlag:
				f.Hidden = true
			case *cli.IntFlag:
				f.Hidden = true
			case *cli.Float64Flag:
				f.Hidden = true
			case *cli.DurationFlag:
				f.Hidden = true
			case *cli.StringSliceFlag:
				f.Hidden = true
			}
			verb.Flags = append(verb.Flags, f)
		}
	}
}

func flags(lists ...any) []cli.Flag {
	var all []cli.Flag
	for _, l := range lists {
		switch l := l.(type) {
		case cli.Flag:
			all = append(all, l)
		case []cli.Flag:
			all = append(all, l...)
		}
	}
	return all
}

// clock returns the time to record.
func clock(c *cli.Command) (func() time.Time, error) {
	s := c.String("now")
	if s == "" {
		return time.Now, nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return nil, usagef("-now: %q is not an RFC 3339 time such as 2026-01-31T08:00:00Z", s)
	}
	return func() time.Time { return t }, nil
}

func (a *app) logger(c *cli.Command) *slog.Logger { return a.loggerIf(c.Bool("v")) }

func (a *app) loggerIf(verbose bool) *slog.Logger {
	if !verbose {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(a.err, nil))
}

// crawlIn returns an error if a directory does not exist or is empty.
func crawlIn(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return fmt.Errorf("there is no crawl in %s", dir)
	}
	return nil
}

// open opens the directory of the crawl, which must exist for verbs that read.
func (a *app) open(c *cli.Command, mustExist bool, adjust ...func(*pebblestore.Options)) (*pebblestore.DB, error) {
	dir := c.String("d")
	if dir == "" {
		return nil, usagef("-d DIR is required: the directory of the crawl")
	}
	if mustExist {
		if err := crawlIn(dir); err != nil {
			if c.Name == "crawl" {
				return nil, fmt.Errorf("%w, and no seed to start one; give URLs or -seeds FILE", err)
			}
			return nil, fmt.Errorf("%w; inject or crawl creates one", err)
		}
	}
	o := pebblestore.Options{Logger: a.logger(c), OnRoom: tellRoom(a.err)}
	m, err := memoryOf(c)
	if err != nil {
		return nil, err
	}
	m.boundStore(&o)
	if o.MinFree, err = minFree(c); err != nil {
		return nil, err
	}
	for _, f := range adjust {
		f(&o)
	}
	return pebblestore.Open(dir, o)
}

// patience is how long a verb waits for another that is soon done.
const patience = time.Minute

// untilFree opens a directory, and waits a little while another process has it: a crawl is
// not to fail because a monitor has just asked for its status. Only verbs that may go on
// for days leave a note, and for those nobody waits.
func (a *app) untilFree(ctx context.Context, dir string, open func() error) error {
	for began, told := time.Now(), false; ; {
		err := open()
		if !errors.Is(err, pebblestore.ErrLocked) || time.Since(began) > patience {
			return err
		}
		if _, e := pebblestore.ReadNote(dir); !errors.Is(e, fs.ErrNotExist) {
			return err
		}
		if !told && time.Since(began) > time.Second {
			fmt.Fprintf(a.err, "recrawl: %v; waiting for it to end\n", err)
			told = true
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// openToChange opens the directory as soon as there is room for it, and nobody has it who
// is soon done.
func (a *app) openToChange(ctx context.Context, c *cli.Command, mustExist bool) (db *pebblestore.DB, err error) {
	open := func() error {
		return a.untilFree(ctx, c.String("d"), func() error { db, err = a.open(c, mustExist); return err })
	}
	if n, bad := minFree(c); n < 0 || bad != nil {
		err = open()
	} else {
		err = a.untilRoom(ctx, open)
	}
	return db, err
}

// openToRead opens the directory, which others may be reading, as soon as nobody changes
// it who is soon done. It changes nothing there: what a crash has left in a log is replayed
// in memory. cache is the size of the engine's, zero for its default.
func (a *app) openToRead(ctx context.Context, c *cli.Command, cache int64) (db *pebblestore.DB, err error) {
	err = a.untilFree(ctx, c.String("d"), func() error {
		db, err = a.open(c, true, func(o *pebblestore.Options) { o.ReadOnly, o.CacheSize = true, cache })
		return err
	})
	return db, err
}

// session is an open crawl.
type session struct {
	db      *pebblestore.DB
	crawler *recrawl.Crawler
	client  *httpproto.Client
	conf    *nutchconf.Options // nil without -conf
	now     func() time.Time
	trouble trouble
	damaged int // how many of Crawler.Damaged were reported
}

// access is what a verb needs beside an existing crawl.
type access struct {
	network bool // it makes requests
	create  bool // it creates the crawl if there is none
}

// begin opens the crawl and makes a crawler from the flags.
func (a *app) begin(ctx context.Context, c *cli.Command, needs access, adjust ...func(*recrawl.Options)) (*session, error) {
	s := &session{}
	if err := a.openSession(ctx, c, s, needs, adjust); err != nil {
		s.end()
		return nil, err
	}
	s.tellDamage(a.err)
	return s, nil
}

// openSession fills a session in. What it opened before an error is left to end.
func (a *app) openSession(ctx context.Context, c *cli.Command, s *session, needs access, adjust []func(*recrawl.Options)) error {
	o, err := a.sessionOptions(c, s, needs.network)
	if err != nil {
		return err
	}
	if c.Category == looking {
		o.ReadOnly = true
		s.db, err = a.openToRead(ctx, c, onceCache)
	} else {
		s.db, err = a.openToChange(ctx, c, !needs.create)
	}
	if err != nil {
		return err
	}
	if err := s.decide(ctx, a, c, &o); err != nil {
		return err
	}
	for _, f := range adjust {
		f(&o)
	}
	s.crawler, err = recrawl.New(recrawl.Stores{
		Crawl: s.db.Crawl(), Hosts: s.db.Hosts(), Links: s.db.Links(), Segments: s.db.Segments(),
	}, o)
	return err
}

// sessionOptions makes the options of a crawler from the configuration, if there is one, and
// from the flags, before anything is opened. The session gets what else they decide.
func (a *app) sessionOptions(c *cli.Command, s *session, network bool) (o recrawl.Options, err error) {
	if s.now, err = clock(c); err != nil {
		return o, err
	}
	if s.conf, err = a.configured(c); err != nil {
		return o, err
	}
	if s.conf != nil {
		a.tellNotes(c, s.conf)
	}
	o = optionsOf(c, s.conf)
	o.Now, o.Logger = s.now, a.logger(c)
	m, err := memoryOf(c)
	if err != nil {
		return o, err
	}
	m.bound(&o)
	if err := selection(c, &o.Generate); err != nil {
		return o, err
	}
	if err := bounds(c, &o); err != nil {
		return o, err
	}
	if o.Rules, err = ruled(c, o.Rules); err != nil {
		return o, err
	}
	if err := checkKept(c); err != nil {
		return o, err
	}
	if err := checkNumbers(c); err != nil {
		return o, err
	}
	if err := hostRules(c, &o.Fetch); err != nil { // explain reads them, though it makes no requests
		return o, err
	}
	o.Fetch.OnVisit = s.trouble.note
	o.Protocol = offline{}
	if !network {
		return o, nil
	}
	if err := spare(c, &o.Fetch); err != nil {
		return o, err
	}
	o.HTTP.Ascending = o.Fetch.Politeness.By == hostdb.ByIP
	if s.client, err = a.client(c, o.HTTP, s.now); err != nil {
		return o, err
	}
	o.Protocol = s.client
	if err := delay(c, s.conf, &o.Fetch.Politeness.Delay); err != nil {
		return o, err
	}
	return o, limits(c, &o.Fetch)
}

// checkNumbers refuses numbers that no crawl can have.
func checkNumbers(c *cli.Command) error {
	for _, n := range []string{"topN", "max-per-host", "adddays", "threads", "rounds", "keep-segments"} {
		if c.Int(n) < 0 {
			return usagef("-%s: %d is negative", n, c.Int(n))
		}
	}
	if t := c.Duration("round-time"); t < 0 {
		return usagef("-round-time: %v is negative", t)
	}
	if n := c.Int("adddays"); n > maxDays {
		return usagef("-adddays: %d is more than a hundred years", n)
	}
	return nil
}

// tellDamage reports segments that were found damaged since its last call.
func (s *session) tellDamage(w io.Writer) {
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
	if s.client != nil {
		keep(s.client.Close())
	}
	if s.db != nil {
		keep(s.db.Close())
	}
	return first
}

// client makes the HTTP client that the flags describe.
func (a *app) client(c *cli.Command, o httpproto.Options, now func() time.Time) (*httpproto.Client, error) {
	if c.IsSet("agent") || o.Agent == "" {
		o.Agent = c.String("agent")
	}
	if c.IsSet("proxy") {
		o.Proxy = c.String("proxy")
	}
	o.Guard.AllowPrivate, o.Now = c.Bool("allow-private"), now
	if o.Agent == "" {
		or := ""
		if c.String("conf") != "" {
			or = ", or http.agent.name in the configuration"
		}
		return nil, usagef("-agent NAME is required%s: servers want to know who asks", or)
	}
	for _, s := range c.StringSlice("connect-to") {
		ct, err := httpproto.ParseConnectTo(s)
		if err != nil {
			return nil, usagef("-connect-to: %w", err)
		}
		o.ConnectTo = append(o.ConnectTo, ct)
	}
	if file := c.String("cacert"); file != "" {
		pem, err := os.ReadFile(file)
		if err != nil {
			return nil, usagef("-cacert: %w", err)
		}
		o.RootCAs = x509.NewCertPool()
		o.InsecureSkipVerify = false
		if !o.RootCAs.AppendCertsFromPEM(pem) {
			return nil, usagef("-cacert: no certificate in %s", file)
		}
	}
	if c.IsSet("agent") && strings.ContainsFunc(o.Agent, func(r rune) bool {
		return !('a' <= r|0x20 && r|0x20 <= 'z' || '0' <= r && r <= '9' || r == '-' || r == '_')
	}) {
		return nil, usagef("-agent: %q is not a valid crawler name; use letters, digits, '-' and '_'", o.Agent)
	}
	if err := requests(c, &o, a.err); err != nil {
		return nil, err
	}
	cl, err := httpproto.New(o)
	if err != nil {
		return nil, usageError{err}
	}
	tellAnonymous(c, cl, a.err)
	return cl, nil
}

// with runs a verb on an open crawl.
func (a *app) with(ctx context.Context, c *cli.Command, needs access, verb func(*session) error, adjust ...func(*recrawl.Options)) error {
	return whenRoom(ctx, a, c, verb, func(verb func(*session) error) error {
		return a.withOnce(ctx, c, needs, verb, adjust...)
	})
}

func (a *app) withOnce(ctx context.Context, c *cli.Command, needs access, verb func(*session) error, adjust ...func(*recrawl.Options)) error {
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

// printJSON prints one object.
func (a *app) printJSON(v any) error {
	e := json.NewEncoder(a.out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// listed returns what JSON has as a list even if it is empty: null is nothing to iterate over.
func listed[T any](all []T) []T {
	if all == nil {
		return []T{}
	}
	return all
}

// normal returns the form of a URL that the stores use.
func normal(url string) string {
	if n, err := urlfilter.Default().Apply(urlfilter.Inject, url); err == nil {
		return n
	}
	return url
}

// noArgs refuses arguments for a verb that takes none.
func noArgs(c *cli.Command) error {
	if c.Args().Present() {
		return usagef("%s takes no argument %q", c.Name, c.Args().First())
	}
	return nil
}

// segmentArg returns the one argument of a stage: a segment, by default the
// newest.
func segmentArg(ctx context.Context, c *cli.Command, s *session) (string, error) {
	if c.Args().Len() > 1 {
		return "", usagef("%s takes one segment, not %q too", c.Name, c.Args().Get(1))
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
