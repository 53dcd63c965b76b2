package update

import (
	"slices"
	"strconv"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/segment"
)

// SitemapOptions say how to treat sitemaps and what they say.
type SitemapOptions struct {
	// Interval is how often a sitemap is read again; zero means every day, negative
	// that the schedule decides, as for a page. A seed may give a sitemap a different
	// interval (schedule.FixedKey). What sitemaps say of how often a page changes
	// never makes its interval shorter than this, or than a day if it is negative.
	Interval time.Duration
	// Overwrite gives a known page the interval that a sitemap asks for, as if it were
	// new; with NutchCompat also its score and the time of the last change. (Nutch:
	// sitemap.url.overwrite.existing.)
	Overwrite bool
	// Bounds are the least and the greatest interval that NutchCompat takes from a
	// sitemap; zero means a minute and 365 days. (Nutch:
	// db.fetch.schedule.adaptive.min_interval, max_interval.)
	Bounds schedule.Bounds
}

func (o SitemapOptions) interval() time.Duration {
	if o.Interval == 0 {
		return 24 * time.Hour
	}
	return o.Interval
}

// SitemapReport counts the effects of what the sitemaps of a segment say. A
// resumed run counts only the rest.
type SitemapReport struct {
	// New and Known count the pages that sitemaps name, by whether there was a
	// record; Due those Known that are due at once, or sooner, because their
	// sitemap says that they have changed; Untrusted those said to have changed by
	// a host that is not believed.
	New, Known, Due, Untrusted int
	// Sitemaps counts the records that became sitemaps.
	Sitemaps int
}

// Add adds another report.
func (r *SitemapReport) Add(o SitemapReport) {
	r.New += o.New
	r.Known += o.Known
	r.Due += o.Due
	r.Untrusted += o.Untrusted
	r.Sitemaps += o.Sitemaps
}

// change is what the links of sitemaps did to one record.
type change struct{ page, fresh, due, untrusted, sitemap bool }

func (r *SitemapReport) count(c change) {
	for _, n := range []struct {
		n  *int
		on bool
	}{
		{&r.New, c.page && c.fresh}, {&r.Known, c.page && !c.fresh}, {&r.Due, c.due}, {&r.Untrusted, c.untrusted}, {&r.Sitemaps, c.sitemap},
	} {
		if n.on {
			*n.n++
		}
	}
}

// changed compares a record before and after.
func changed(old, d *crawldb.Datum, in *Input, o *Options) (c change) {
	if in.Sitemap == nil && in.SitemapEntry == nil || d == nil {
		return c
	}
	c.page, c.fresh = in.SitemapEntry != nil, old == nil
	if _, is := crawldb.SitemapOf(d.Meta); is {
		c.sitemap = old == nil
		if old != nil {
			_, was := crawldb.SitemapOf(old.Meta)
			c.sitemap = !was
		}
	}
	if in.SitemapEntry != nil && old != nil && !o.NutchCompat {
		_, says := saysChanged(d, *in.SitemapEntry)
		c.due, c.untrusted = says && in.Trusted && d.FetchTime.Before(old.FetchTime), says && !in.Trusted
	}
	return c
}

// addSitemapMeta adds the Meta of a link if it comes from a sitemap, and reports whether
// it does. The order of the links makes no difference.
func (in *Input) addSitemapMeta(m crawldb.Meta) bool {
	if m == (crawldb.Meta{}) {
		return false
	}
	mark, marked := crawldb.SitemapOf(m)
	if marked {
		if in.Sitemap != nil {
			mark = in.Sitemap.With(mark)
		}
		in.Sitemap = &mark
	}
	entry, some := crawldb.SitemapEntryOf(m)
	if some {
		if in.SitemapEntry != nil {
			entry = in.SitemapEntry.With(entry)
		}
		in.SitemapEntry = &entry
	}
	return marked || some
}

// page reports whether a link says that the URL is a page.
func (in *Input) page() bool {
	return slices.ContainsFunc(in.Links, func(l scoring.Link) bool {
		_, marked := crawldb.SitemapOf(l.Meta)
		return !marked
	})
}

// priority orders a record among those that are due. Sitemaps have no share of
// importance, and go before most of the pages they are about.
func (o *Options) priority(d *crawldb.Datum) float32 { return priority(o.Schedule, o.Scoring, d) }

func priority(s schedule.FetchSchedule, f scoring.Filter, d *crawldb.Datum) float32 {
	p := f.Priority(d, d.Score)
	if _, ok := crawldb.SitemapOf(d.Meta); ok {
		p = max(p, 1)
	}
	return schedule.Priority(s, d, p)
}

// born prepares a new record for the schedule: a sitemap has its own interval. If
// its host is trusted, a page has the interval of its changefreq, but
// not a shorter one than sitemaps have, nor a longer one than it would have
// otherwise.
func born(d *crawldb.Datum, in *Input, o *Options) {
	sitemap := in.Sitemap
	if mark, ok := crawldb.SitemapOf(d.Meta); ok && sitemap == nil {
		sitemap = &mark
	}
	crawldb.ClearSitemap(&d.Meta)
	crawldb.ClearSitemapEntry(&d.Meta)
	if sitemap != nil {
		mark := *sitemap
		mark.Page = in.page()
		mark.Set(&d.Meta)
		if i := o.Sitemaps.interval(); i > 0 && !mark.Page {
			d.Interval = i
		}
		return
	}
	setEntryInterval(d, in, o)
}

// setEntryInterval sets the interval that the sitemap of a page asks for.
func setEntryInterval(d *crawldb.Datum, in *Input, o *Options) {
	if in.SitemapEntry == nil || in.SitemapEntry.Every == 0 || !in.Trusted {
		return
	}
	least := o.Sitemaps.interval()
	if least < 0 {
		least = 24 * time.Hour
	}
	d.Interval = min(max(in.SitemapEntry.Every, least), o.Schedule.Init(crawldb.Datum{URL: d.URL}, o.now).Interval)
}

// applySitemapEntry applies to a record, as the visit left it, what the segment says about
// it as a sitemap or in sitemaps. It reports whether that changes anything.
func applySitemapEntry(d *crawldb.Datum, in *Input, o *Options) bool {
	meta, interval, due := d.Meta, d.Interval, d.FetchTime
	mark, marked := crawldb.SitemapOf(d.Meta)
	switch {
	case marked && (in.Sitemap != nil || !mark.Page && in.page()):
		all := mark
		if in.Sitemap != nil {
			all = mark.With(*in.Sitemap)
		}
		all.Page = mark.Page || in.page()
		all.Set(&d.Meta)
		if all.Page && !mark.Page && (d.Status == crawldb.Unfetched || d.Status == crawldb.ParseFailed) {
			// As a sitemap it was gone, or not fetched yet: as a page it starts
			// over.
			d.Status, d.Interval = crawldb.Unfetched, 0
			*d = o.Schedule.Init(*d, o.now)
		}
	case in.Sitemap != nil && mayMark(d.URL, in.Sitemap):
		// What was read as a page must be read again.
		all := *in.Sitemap
		all.Page = true
		all.Set(&d.Meta)
		forget(d)
		if d.Status != crawldb.Unfetched && o.now.Before(d.FetchTime) {
			d.FetchTime = o.now
		}
	}
	if o.Sitemaps.Overwrite && !marked {
		setEntryInterval(d, in, o)
	}
	if in.SitemapEntry != nil && !in.SitemapEntry.Modified.IsZero() {
		entry, ok := crawldb.SitemapEntryOf(d.Meta)
		isNew := !ok || entry != *in.SitemapEntry
		if isNew {
			in.SitemapEntry.Set(&d.Meta)
		}
		if at, says := saysChanged(d, *in.SitemapEntry); says {
			if at.Before(o.now) {
				at = o.now
			}
			sign := schedule.Signal{Time: at, Precision: in.Signals.Precision(), Recall: in.Signals.Recall()}
			if sooner, ok := schedule.Signalled(o.Schedule, *d, sign); ok {
				if isNew && (in.Trusted || !in.Signals.Trusted()) {
					*d = sooner
				}
			} else if in.Trusted && at.Before(d.FetchTime) {
				plan(d)
				d.FetchTime = at
			}
		}
	}
	return d.Meta != meta || d.Interval != interval || !d.FetchTime.Equal(due)
}

// Signal returns the record of a page that somebody says changed at the given time,
// as a sitemap might; d itself if that is not news. l is what is known of the host.
// It uses the options Schedule, Scoring and Now.
func Signal(d *crawldb.Datum, at time.Time, l hostdb.SignalStats, o Options) *crawldb.Datum {
	o = o.withDefaults()
	if entry, ok := crawldb.SitemapEntryOf(d.Meta); ok && !at.After(entry.Modified) || at.After(o.now) {
		return d
	}
	in := Input{URL: d.URL, SitemapEntry: &crawldb.SitemapEntry{Modified: at, Span: time.Second}, Trusted: l.Trusted(), Signals: l}
	if old, ok := crawldb.SitemapEntryOf(d.Meta); ok {
		in.SitemapEntry.Every, in.SitemapEntry.Priority, in.SitemapEntry.HasPriority = old.Every, old.Priority, old.HasPriority
	}
	next := *d
	if !applySitemapEntry(&next, &in, &o) {
		return d
	}
	next.Priority = o.priority(&next)
	return &next
}

// MarkSitemap returns the record of a sitemap that somebody asks for: marked, due
// at once, and to be read even if it is not modified. old is nil if there is none.
// It uses the options that apply to new records.
func MarkSitemap(old *crawldb.Datum, url string, mark crawldb.Sitemap, o Options) *crawldb.Datum {
	o = o.withDefaults()
	if old == nil {
		d := crawldb.Datum{URL: url, Status: crawldb.Unfetched}
		mark.Set(&d.Meta)
		if i := o.Sitemaps.interval(); i > 0 {
			d.Interval = i
		}
		d = o.Schedule.Init(d, o.now)
		d.Priority = o.priority(&d)
		return &d
	}
	d := *old
	if was, marked := crawldb.SitemapOf(d.Meta); marked {
		mark = was.With(mark)
	} else {
		mark.Page = true
	}
	mark.Set(&d.Meta)
	forget(&d)
	if d.FetchTime.After(o.now) {
		d.FetchTime = o.now
	}
	d.Priority = o.priority(&d)
	return &d
}

// mayMark reports whether a known page becomes a sitemap: if its own site says
// so. Otherwise other sites could have any page read as something it is not.
func mayMark(url string, s *crawldb.Sitemap) bool {
	return s.Depth > 0 || slices.Contains(s.Origins, crawldb.Origin(url))
}

// saysChanged reports whether an entry says that a page has changed since its last
// visit, and from when on a visit would show it. If only the day, or the month,
// of the change is known, and the visit was made during it, that is when the
// day is over. A page that waits to be tried for the first time, or again,
// keeps waiting.
func saysChanged(d *crawldb.Datum, h crawldb.SitemapEntry) (time.Time, bool) {
	switch {
	case d.Status == crawldb.Unfetched || d.LastFetch.IsZero() || !h.Modified.Add(h.Span).After(d.LastFetch):
		return time.Time{}, false
	case h.Modified.After(d.LastFetch):
		return h.Modified, true
	}
	return h.Modified.Add(h.Span), true
}

// plannedKey is where a record that is due because of a signal keeps when it
// would have been due, in milliseconds since 1970.
const plannedKey = "sitemap.planned"

// plan records when the record was to be fetched before a signal.
func plan(d *crawldb.Datum) {
	if _, ok := d.Meta.Get(plannedKey); !ok {
		d.Meta.Set(plannedKey, strconv.FormatInt(d.FetchTime.UnixMilli(), 36))
	}
}

// planned returns what plan recorded, and removes it.
func planned(d *crawldb.Datum) (at time.Time) {
	text, ok := d.Meta.Get(plannedKey)
	if !ok {
		return at
	}
	d.Meta.Delete(plannedKey)
	if ms, err := strconv.ParseInt(text, 36, 64); err == nil {
		at = time.UnixMilli(ms).UTC()
	}
	return at
}

// setSitemapInterval sets the interval of a sitemap that was read, and removes it from a
// page that was taken for one.
func setSitemapInterval(d *crawldb.Datum, p *segment.Parse, o *Options) {
	i := o.Sitemaps.interval()
	if _, marked := crawldb.SitemapOf(d.Meta); !marked || p == nil || i < 0 {
		return
	}
	ours := strconv.FormatInt(int64(max(i, time.Second)/time.Second), 10)
	fixed, has := d.Meta.Get(schedule.FixedKey)
	switch {
	case p.Sitemap && p.Error == "" && !has:
		d.Meta.Set(schedule.FixedKey, ours)
	case !p.Sitemap && has && fixed == ours:
		d.Meta.Delete(schedule.FixedKey)
	}
}

// applySitemapEntryCompat does what Nutch's sitemap job does with a record, given what the
// rest of a segment made of it. Values that a sitemap does not give are left as
// they are, where Nutch sets them to zero.
func applySitemapEntryCompat(old, made *crawldb.Datum, in *Input, o *Options) *crawldb.Datum {
	if in.Sitemap == nil && in.SitemapEntry == nil {
		return made
	}
	var d crawldb.Datum
	known := made != nil
	switch {
	case known && in.Sitemap == nil && !o.Sitemaps.Overwrite:
		return made
	case known:
		d = *made
	case old != nil || o.NoAdditions:
		return made
	default:
		d = crawldb.Datum{URL: in.URL, Status: crawldb.Unfetched}
	}
	if in.Sitemap != nil {
		mark := *in.Sitemap
		if was, ok := crawldb.SitemapOf(d.Meta); ok {
			mark = was.With(mark)
		} else if mark.Page = known; known && !mayMark(d.URL, &mark) {
			return made
		}
		mark.Set(&d.Meta)
		if i := o.Sitemaps.interval(); !known && i > 0 {
			d.Interval = i
		}
	}
	if h := in.SitemapEntry; h != nil && (!known || o.Sitemaps.Overwrite) {
		switch {
		case h.HasPriority && h.Priority > 0:
			d.Score = h.Priority
		case !known:
			d.Score = 0.5
		}
		if h.Every > 0 {
			d.Interval = o.Sitemaps.clamp(h.Every)
		}
		if !h.Modified.IsZero() {
			d.Modified = h.Modified
		}
	}
	if !known {
		d = o.Schedule.Init(d, o.now)
	}
	d.Priority = o.priority(&d)
	return &d
}

// clamp limits an interval to the bounds.
func (o SitemapOptions) clamp(every time.Duration) time.Duration {
	least, most := o.Bounds.Min, o.Bounds.Max
	if least == 0 {
		least = time.Minute
	}
	if most == 0 {
		most = 365 * 24 * time.Hour
	}
	return max(least, min(every, most))
}
