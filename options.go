package recrawl

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"time"

	"github.com/recrawl/recrawl/crawldb/dedup"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/generate"
	"github.com/recrawl/recrawl/linkdb"
	"github.com/recrawl/recrawl/parse"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/httpproto"
	"github.com/recrawl/recrawl/protocol/robots"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/scoring/rank"
	"github.com/recrawl/recrawl/signature"
	"github.com/recrawl/recrawl/update"
	"github.com/recrawl/recrawl/urlfilter"
)

// Options say how to crawl. Only Agent is required, and not even that with a
// Protocol; the zero value of the rest is polite and recrawls on an adaptive
// schedule.
type Options struct {
	// Agent is the name of the crawler, a product token of letters, digits, '-'
	// and '_'.
	// It is sent with every request, and robots.txt is obeyed under it. (Nutch:
	// http.agent.name.)
	Agent string
	// Robots says what else in a robots.txt is meant for the crawler, and for which
	// hosts robots.txt is ignored. To replace the whole cache of robots.txt, set
	// Fetch.Robots instead.
	Robots robots.Policy
	// Protocol makes the requests. Nil means HTTP as httpproto does it by
	// default, which refuses to connect to private addresses. The caller closes a
	// Protocol that it provides. One for schemes other than http and https needs
	// Rules that let them in: see urlfilter.Basic.Schemes.
	Protocol protocol.Protocol
	// HTTP says how requests are made if Protocol is nil. Its Agent and Now are those
	// above and below.
	HTTP httpproto.Options
	// Parser reads pages. Nil means HTML and plain text by parse/htmlparse.
	Parser parse.Parser
	// Schedule says when a page is fetched again. Nil means schedule.Adaptive
	// with its defaults. (Nutch: db.fetch.schedule.class.)
	//
	// With a schedule.Planner, such as schedule.Learned, the crawler keeps its plan: see Crawler.Plan. A Budget above
	// zero is a limit: no round selects more than is left of it, and while nothing is left
	// Run treats no page as due. It accrues evenly; what is not used within a day is lost,
	// or, below one visit a day, once a whole visit has accrued. The plan gives a host no
	// more visits than its pauses and Fetch.Politeness.HostRule allow: see
	// [fetch.Politeness.PerDay]. The same goes for every other schedule.Planner.
	Schedule schedule.FetchSchedule
	// Scoring orders the due pages. Nil means scoring.OPIC with its defaults;
	// scoring.PageRank finds what matters earlier, see Rank.
	Scoring scoring.Filter
	// Rules say which URLs belong to the crawl and how they are spelled. Nil
	// means urlfilter.Default. Their files are read again at the start of each
	// round if they have changed; if one has become invalid, that is logged and
	// the old rules stay.
	Rules *urlfilter.Rules
	// Reload lists what else is read again at the start of each round, such as
	// the file behind Fetch.Links.Exempt.
	Reload []urlfilter.Reloader
	// Signature says whether content has changed. Nil means
	// signature.TextMD5: a page has changed when its text has. (Nutch:
	// db.signature.class, MD5 of the bytes.)
	Signature signature.Signature

	// Generate, Fetch, Update, Invert and Rank hold what only one stage needs: limits,
	// delays, threads. Their stores, policies, clocks and loggers are those of the
	// crawler: New returns an error if one of them is set here. A zero TopN in Generate
	// means 50,000, so that a fetch list fits into memory; a negative one means no limit.
	// A pause in Fetch.Politeness of less than 100 µs, such as 5, is an error.
	Generate generate.Options
	Fetch    fetch.Options
	Update   update.Options
	Invert   linkdb.InvertOptions
	// Rank says when the ranks are computed if Scoring is scoring.PageRank or has it
	// in its chain.
	Rank rank.Options

	// ParseLater makes a round parse its pages when all are fetched, instead of
	// each as it comes. It takes longer and leads to the same result, with two
	// exceptions: what a parsing fetch would visit at once (FollowDepth, and
	// redirects of pages with MaxRedirects) waits for a later round; and with
	// NutchCompat in Fetch, a link is not always worth the same either way. (Nutch:
	// fetcher.parse, false by default.)
	ParseLater bool

	// Dedup, if not nil, makes each round mark duplicates, after the link db is
	// written and before OnPage is called. It reads the whole crawl db. (Nutch's
	// bin/crawl runs dedup at this point, before indexing.)
	Dedup *dedup.Options

	// OnPage, if not nil, is called for every page that was visited, once its
	// update has been committed: see [PageEvent]. It is called by one goroutine
	// at a time, at least once for each page, and again for the pages of a block
	// of 500 if the process ends among them. ctx is that of Round or Run. An error
	// ends the round, and Run with it; the next one resumes with that page, or in
	// another Crawler with its block. What OnPage has returned from is not reported
	// again otherwise, so it must be durable by then. It is for this process, and the round
	// waits for it; whatever is slow, commits in batches or may be down reads the change
	// feed instead: see [Consumer].
	// OnPage may use the crawler, but not call
	// what waits for the round: Round, Run and ReadSitemaps.
	OnPage func(ctx context.Context, e PageEvent) error
	// EveryVisit makes OnPage hear of every visit, and not only of changes: a page that
	// is as it was (PageUnchanged), a redirect that still leads elsewhere (PageMoved) and
	// a page that is still missing (PageGone) are then reported each time. An index of
	// pages needs it: a page with the same text may have begun to ask not to be indexed,
	// and a redirect may lead elsewhere than before.
	EveryVisit bool
	// Hooks are called as rounds go on, for metrics and traces.
	Hooks Hooks

	// Run says how rounds follow each other.
	Run RunOptions
	// Retention says how long done segments are kept; the zero value keeps all.
	Retention Retention

	// ReadOnly is for stores that cannot be changed: New leaves alone what a process
	// that died left half done, and methods that write return the error of the store.
	// Status, Freshness and Explain work.
	ReadOnly bool
	// Now is the time to record; nil means time.Now. Pauses do not depend on it.
	Now func() time.Time
	// Logger receives anything unusual at the levels Info, Warn and Error, each round at Info, and
	// each stage at Debug; nil means no logging. The keys are the same in all records: stage,
	// segment, host, url, consumer, elapsed, error, and numbers by what they count, such as pages.
	Logger *slog.Logger
}

// RunOptions say how rounds follow each other in Crawler.Run.
type RunOptions struct {
	// Rounds ends Run after so many rounds, those of an interrupted Run
	// included; zero means no limit.
	Rounds int
	// RoundTime is roughly how long the visits of a round should take: a round selects no
	// more of a host, or of what Fetch.Politeness.By says, than there is time for with the pauses
	// between its requests. So following the links of a large host, telling OnPage of its
	// pages, and fetching what has become urgent need not wait until everything is done
	// that was due at the start. Zero means an hour, negative no limit. A host that is
	// slow or fails takes longer: see Fetch.Limits.TimeLimit.
	//
	// It has no effect if Generate has a MaxPerHost, a HostLimit, Ahead or NutchCompat,
	// nor on the methods Generate and GenerateFree.
	RoundTime time.Duration
	// Wait makes Run wait when nothing is due, until something is due or injected,
	// instead of returning. Once a minute it checks whether somebody else has written
	// to the store, which takes a full scan unless that is a crawldb.DueStore.
	//
	// What is urgent does not wait for the end of a long round: URLs of GenerateFree, new
	// URLs of Inject, and a page that Signal makes due. Such a Run then ends the visits of the round
	// after two seconds, or ten times the time that its selection took; those that are under way
	// are completed, and the pages that are left are due as before. A round of GenerateFree, or one that
	// was interrupted before, is not ended.
	Wait bool
	// Gather is how long before it is due a Run that Waits may visit a page, so that pages
	// that fall due one after the other share a round: this long, or a hundredth of the time
	// since its last visit if that is more (but at most 23 hours). For a page that is visited
	// again after less than four times Gather it is a quarter of that time; for one that was
	// put off, or never visited, at most a minute. Zero means a minute, negative that each page waits until it
	// is due.
	//
	// A round begins when a page is due, at once, and never waits for others. What is due soon
	// joins it in the order of the times, up to the first page that must not be visited so early, or
	// for whose host RoundTime has no room; so what joins a round makes no other page late.
	//
	// It has no effect on a selection with Ahead or NutchCompat in Generate, and none with
	// a schedule that is not a schedule.HorizonSchedule.
	Gather time.Duration
}

// leastDelay is the shortest pause between requests that can be meant. A Delay of 5 is five
// nanoseconds, which neither the compiler nor vet says, and the servers of others pay.
const leastDelay = 100 * time.Microsecond

// check returns an error for options that can only be a mistake.
func (o *Options) check() error {
	if err := o.checkOnePlace(); err != nil {
		return err
	}
	for _, r := range o.Agent {
		if !('a' <= r|0x20 && r|0x20 <= 'z' || '0' <= r && r <= '9' || r == '-' || r == '_') {
			return fmt.Errorf("recrawl: Options.Agent %q is not a product token: letters, digits, '-' and '_'", o.Agent)
		}
	}
	for _, d := range []time.Duration{o.Fetch.Politeness.Delay, o.Fetch.Politeness.MinDelay} {
		if 0 < d && d < leastDelay {
			return fmt.Errorf("recrawl: a pause of %v (Options.Fetch.Politeness.Delay or MinDelay) is none: if it is a number without a unit, say 5*time.Second; a negative one means no pause", d)
		}
	}
	if o.Protocol == nil && o.Agent == "" {
		return errors.New("recrawl: Options.Agent is required: the name that the crawler sends and obeys in robots.txt")
	}
	return nil
}

// checkOnePlace returns an error for an option that is set in two places, or in one that only a
// caller of a single stage needs. It names both fields.
func (o *Options) checkOnePlace() error {
	stage := "is set, but a crawler takes it from"
	for _, f := range []struct {
		set        bool
		field, why string
		instead    string
	}{
		{o.Protocol != nil && !isZero(o.HTTP), "HTTP", "has no effect with", "Protocol"},
		{o.Fetch.Robots != nil && !isZero(o.Robots), "Robots", "has no effect with", "Fetch.Robots"},
		{o.Fetch.Robots != nil && o.Fetch.Politeness.NoRobots, "Fetch.Robots", "has no effect with", "Fetch.Politeness.NoRobots"},
		{!isZero(o.Robots) && o.Fetch.Politeness.NoRobots, "Robots", "has no effect with", "Fetch.Politeness.NoRobots"},
		{o.EveryVisit && o.OnPage == nil, "EveryVisit", "has no effect without", "OnPage"},
		{o.HTTP.Agent != "", "HTTP.Agent", stage, "Agent"},
		{o.HTTP.Now != nil, "HTTP.Now", stage, "Now"},
		{o.Generate.Hosts != nil, "Generate.Hosts", stage, "Stores.Hosts"},
		{o.Generate.Known != nil, "Generate.Known", stage, "Stores.Crawl"},
		{o.Generate.Taken != nil, "Generate.Taken", stage, "Stores.Crawl"},
		{o.Generate.Lists.Lookup != nil, "Generate.Lists.Lookup", stage, "Fetch.Politeness.Lookup"},
		{o.Generate.Rules != nil, "Generate.Rules", stage, "Rules"},
		{o.Generate.Schedule != nil, "Generate.Schedule", stage, "Schedule"},
		{o.Generate.Scoring != nil, "Generate.Scoring", stage, "Scoring"},
		{o.Generate.Now != nil, "Generate.Now", stage, "Now"},
		{o.Fetch.Protocol != nil, "Fetch.Protocol", stage, "Protocol"},
		{o.Fetch.Hosts != nil, "Fetch.Hosts", stage, "Stores.Hosts"},
		{o.Fetch.Parser != nil, "Fetch.Parser", stage, "Parser"},
		{o.Fetch.Rules != nil, "Fetch.Rules", stage, "Rules"},
		{o.Fetch.Scoring != nil, "Fetch.Scoring", stage, "Scoring"},
		{o.Fetch.Signature != nil, "Fetch.Signature", stage, "Signature"},
		{o.Fetch.Now != nil, "Fetch.Now", stage, "Now"},
		{o.Fetch.Logger != nil, "Fetch.Logger", stage, "Logger"},
		{o.Update.Hosts != nil, "Update.Hosts", stage, "Stores.Hosts"},
		{o.Update.Schedule != nil, "Update.Schedule", stage, "Schedule"},
		{o.Update.Scoring != nil, "Update.Scoring", stage, "Scoring"},
		{o.Update.Now != nil, "Update.Now", stage, "Now"},
		{o.Update.Sweep.Rules != nil, "Update.Sweep.Rules", stage, "Rules"},
		{o.Update.Sweep.Schedule != nil, "Update.Sweep.Schedule", stage, "Schedule"},
		{o.Update.Sweep.Scoring != nil, "Update.Sweep.Scoring", stage, "Scoring"},
		{o.Update.Sweep.Now != nil, "Update.Sweep.Now", stage, "Now"},
		{o.Rank.Scoring != nil, "Rank.Scoring", stage, "Scoring"},
		{o.Rank.Schedule != nil, "Rank.Schedule", stage, "Schedule"},
	} {
		if f.set {
			instead := f.instead
			if !strings.HasPrefix(instead, "Stores.") {
				instead = "Options." + instead
			}
			return fmt.Errorf("recrawl: Options.%s %s %s", f.field, f.why, instead)
		}
	}
	return nil
}

func isZero[T any](v T) bool { return reflect.ValueOf(v).IsZero() }

// setNil gives a pointer that is nil a value; setDefault does so for an
// interface. It looks at the interface alone: what is in it may not be comparable.
func setNil[T any](p **T, value *T) {
	if *p == nil {
		*p = value
	}
}

func setDefault[T any](p *T, value T) {
	if any(*p) == nil {
		*p = value
	}
}
