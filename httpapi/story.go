package httpapi

import (
	"bytes"
	"context"
	"encoding/hex"
	"net/url"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/page/diff"
	"github.com/recrawl/recrawl/segment"
)

// story is all that is known of a URL.
type story struct {
	URL     string `json:"url"`
	Normal  string `json:"normal"`
	Verdict string `json:"verdict"` // why it is or is not fetched next
	// Rejected says which rule keeps it out of the crawl; empty if none does.
	Rejected string     `json:"rejected,omitempty"`
	Record   *urlState  `json:"record,omitempty"`
	Meta     []property `json:"metadata"`
	Host     *hostState `json:"host,omitempty"`
	Worth    *worth     `json:"worth,omitempty"`
	Robots   string     `json:"robots"` // allowed, forbidden, unavailable or unknown
	Signal   string     `json:"signal,omitempty"`
	// Visits are those of the newest segments, the latest first. Before is the query of older ones.
	Visits []visit `json:"visits"`
	Before string  `json:"before,omitempty"`
	// Title, Text and Outlinks are those of the last of Visits with content. NoArchive says that the page asks
	// that no copy of it be shown, which is why Text and Diff are empty.
	Title     string     `json:"title,omitempty"`
	Text      string     `json:"text,omitempty"`
	Markdown  string     `json:"markdown,omitempty"` // if it was asked for
	TextBytes int        `json:"text_bytes"`
	TextTime  time.Time  `json:"text_time,omitzero"`
	NoArchive bool       `json:"no_archive"`
	Outlinks  []pageLink `json:"outlinks"`
	Inlinks   []pageLink `json:"inlinks"`
	// Diff is how Text differs from the one before.
	Diff     []diff.Part `json:"diff,omitempty"`
	DiffTime time.Time   `json:"diff_time,omitzero"` // of the text before
	content  contentPlace
	MayFetch bool `json:"-"`
	MayPause bool `json:"-"`
}

// contentPlace is where the content of the newest visit with content is stored.
type contentPlace struct {
	found   bool
	segment string
	block   int
}

// addMarkdown adds the content as Markdown, if it is kept and can be read.
func (h *Handler) addMarkdown(ctx context.Context, s *story) error {
	if !s.content.found || s.NoArchive {
		return nil
	}
	c, ok, err := recordOf[page.Content](ctx, h.o.Stores.Segments, s.content.segment, s.content.block, func(c *page.Content) bool { return c.URL == s.Normal })
	if err != nil || !ok {
		return err
	}
	text, err := h.o.Markdown(ctx, &c)
	if err != nil {
		h.o.Logger.Debug("httpapi: a page cannot be read as Markdown", "url", s.Normal, "error", err)
		return ctx.Err()
	}
	s.Markdown = text
	return nil
}

// maxLinks limits the links that are shown.
const maxLinks = 50

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type pageLink struct {
	URL    string `json:"url"`
	Anchor string `json:"anchor,omitempty"`
}

// worth is how a schedule that learns arrived at the interval.
type worth struct {
	ChangesPerDay float64 `json:"changes_per_day"`
	Learned       bool    `json:"learned"` // from this page, and not only from others like it
	Weight        float64 `json:"weight"`
	Interval      float64 `json:"interval_seconds"`
	Least         float64 `json:"least_seconds"`
	Most          float64 `json:"most_seconds"`
	Fresh         float64 `json:"fresh"` // the probability that the copy matches the page
	Elapsed       float64 `json:"copy_age_seconds"`
}

type visit struct {
	Segment   string    `json:"segment"`
	Time      time.Time `json:"time"`
	Outcome   string    `json:"outcome"`
	Status    int       `json:"status,omitempty"`
	Reason    string    `json:"reason,omitempty"`
	Location  string    `json:"location,omitempty"`
	Kind      string    `json:"kind,omitempty"` // what it found, compared with the state before
	Type      string    `json:"content_type,omitempty"`
	Bytes     int64     `json:"bytes"`
	Elapsed   float64   `json:"seconds"`
	Signature string    `json:"signature,omitempty"`
}

func (h *Handler) story(q *request) (any, error) {
	given := q.URL.Query()
	if given.Get("u") == "" {
		return nil, badRequestf("u is empty: it is the URL")
	}
	e, err := h.o.Crawler.Explain(q.Context(), given.Get("u"))
	if err != nil {
		return nil, err
	}
	s := story{
		URL: e.URL, Normal: e.Normal, Verdict: e.Verdict, Robots: robotsWord(&e), Signal: e.SignalVerdict,
		Meta: []property{}, Visits: []visit{}, Outlinks: []pageLink{}, Inlinks: []pageLink{},
		MayFetch: q.may(ActionFetch), MayPause: q.may(ActionPauseHost),
	}
	if e.Rejected != nil {
		s.Rejected = e.Rejected.Error()
	}
	if e.Host != nil {
		state := newHostState(e.Host.Name, e.Host, time.Now())
		s.Host = &state
	}
	if links := h.o.Stores.Links; links != nil {
		in, err := links.Get(q.Context(), e.Normal)
		if err != nil {
			return nil, err
		}
		for _, l := range in[:min(len(in), maxLinks)] {
			s.Inlinks = append(s.Inlinks, pageLink{l.From, l.Anchor})
		}
	}
	if e.Record == nil {
		return s, nil
	}
	record := newURLState(e.Record, q.now)
	s.Record = &record
	for name, value := range e.Record.Meta.All() {
		s.Meta = append(s.Meta, property{name, printable(cut(value, 500))})
	}
	if w := e.Worth; w != nil {
		s.Worth = &worth{w.Pace, w.Learned, w.Weight, w.Interval.Seconds(), w.Least.Seconds(), w.Most.Seconds(), e.Fresh, e.Elapsed.Seconds()}
	}
	err = h.addVisits(q.Context(), &s, e.Record.LastFetch, given.Get("before"), given.Get("text") == "1")
	if err == nil && given.Get("markdown") == "1" && h.o.Markdown != nil {
		err = h.addMarkdown(q.Context(), &s)
	}
	return s, err
}

// printable returns a value, or its bytes in hexadecimal if it is not text.
func printable(value string) string {
	if !utf8.ValidString(value) || strings.ContainsFunc(value, unicode.IsControl) {
		return "0x" + hex.EncodeToString([]byte(value))
	}
	return value
}

func robotsWord(e *recrawl.Explanation) string {
	switch {
	case !e.RobotsKnown:
		return "unknown"
	case e.RobotsUnavailable:
		return "unavailable"
	case e.RobotsAllowed:
		return "allowed"
	}
	return "forbidden"
}

// addVisits adds the visits that the segments have, from the last one on backwards, as far as it finds them
// within a second and a half.
func (h *Handler) addVisits(ctx context.Context, s *story, last time.Time, before string, wholeText bool) error {
	if last.IsZero() {
		return nil
	}
	names, err := h.newestSegments(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	var texts []segmentText // the newest two of different contents, the newest first
	for i, name := range names {
		if at := segment.TimeOf(name); before != "" && name >= before || at.After(last) {
			continue
		}
		if i > 0 && (time.Since(began) > 1500*time.Millisecond || len(s.Visits) >= 50) {
			s.Before = "?" + url.Values{"u": {s.URL}, "before": {names[i-1]}}.Encode()
			break
		}
		v, block, err := h.findVisit(ctx, name, s.Normal)
		if err != nil {
			return err
		}
		if v == nil {
			continue
		}
		shown, text, err := h.readVisit(ctx, name, block, v, s, len(texts) < 2)
		if err != nil {
			return err
		}
		s.Visits = append(s.Visits, shown)
		if text.signature != "" && (len(texts) == 0 || texts[len(texts)-1].signature != text.signature) {
			texts = append(texts, text)
		}
	}
	s.showTexts(texts, wholeText)
	return nil
}

// segmentText is a text of the page, with the signature and the time of its visit.
type segmentText struct {
	signature, text string
	time            time.Time
}

func (s *story) showTexts(texts []segmentText, whole bool) {
	if len(texts) == 0 {
		return
	}
	s.TextBytes, s.TextTime = len(texts[0].text), texts[0].time
	if s.NoArchive {
		return
	}
	if s.Text = texts[0].text; !whole {
		s.Text = cut(s.Text, 1000)
	}
	if len(texts) > 1 {
		s.Diff, s.DiffTime = diff.Words(texts[1].text, texts[0].text, 12), texts[1].time
	}
}

// findVisit returns the visit to a URL in a segment, nil if there is none, and the number of its block.
func (h *Handler) findVisit(ctx context.Context, name, url string) (*segment.Visit, int, error) {
	at := 0
	for block, err := range segment.Partial[segment.Visit](ctx, h.o.Stores.Segments, name, 0) {
		if skip, err := unreadable(ctx, err); skip || err != nil {
			return nil, 0, err
		}
		for i := range block {
			if block[i].URL == url {
				return &block[i], at, nil
			}
		}
		at++
	}
	return nil, 0, nil
}

// readVisit reads what a segment has of a visit and, if withText is true, the text it brought. It sets the
// title and the links of the page, if no later visit has.
func (h *Handler) readVisit(ctx context.Context, name string, block int, v *segment.Visit, s *story, withText bool) (visit, segmentText, error) {
	shown := visit{
		Segment: name, Time: v.Time, Outcome: v.Outcome.Code.String(), Status: v.Outcome.Status, Reason: cut(v.Outcome.Reason, 500), Location: v.Outcome.Location,
		Type: v.ContentType, Bytes: v.Bytes, Elapsed: v.Elapsed.Seconds(),
	}
	if e, ok, err := recordOf[segment.Event](ctx, h.o.Stores.Segments, name, block, func(e *segment.Event) bool { return e.URL == v.URL }); err != nil {
		return shown, segmentText{}, err
	} else if ok {
		shown.Kind, shown.Signature = recrawl.PageKind(e.Kind).String(), hex.EncodeToString(e.Signature)
	}
	d, ok, err := recordOf[segment.Data](ctx, h.o.Stores.Segments, name, block, func(d *segment.Data) bool { return d.URL == v.URL })
	if err != nil || !ok {
		return shown, segmentText{}, err
	}
	s.NoArchive = s.NoArchive || d.Parsed.NoArchive
	if !s.content.found {
		s.setPage(&d.Parsed)
		s.content = contentPlace{true, name, block}
	}
	if shown.Signature == "" {
		p, ok, err := recordOf[segment.Parse](ctx, h.o.Stores.Segments, name, block, func(p *segment.Parse) bool { return p.URL == v.URL })
		if err != nil {
			return shown, segmentText{}, err
		} else if ok {
			shown.Signature = hex.EncodeToString(p.Signature)
		}
	}
	if !withText {
		return shown, segmentText{}, nil
	}
	t, ok, err := recordOf[segment.Text](ctx, h.o.Stores.Segments, name, block, func(t *segment.Text) bool { return t.URL == v.URL })
	if err != nil || !ok {
		return shown, segmentText{}, err
	}
	return shown, segmentText{shown.Signature, t.Text, v.Time}, nil
}

func (s *story) setPage(p *page.Parsed) {
	s.Title = p.Title
	for _, l := range p.Outlinks[:min(len(p.Outlinks), maxLinks)] {
		s.Outlinks = append(s.Outlinks, pageLink{l.URL, l.Anchor})
	}
}

// recordOf returns a record of a block of a segment, if it is there.
func recordOf[T segment.Record](ctx context.Context, store segment.Store, name string, block int, is func(*T) bool) (rec T, ok bool, err error) {
	for records, err := range segment.Partial[T](ctx, store, name, block) {
		if skip, err := unreadable(ctx, err); skip || err != nil {
			return rec, false, err
		}
		for i := range records {
			if is(&records[i]) {
				return records[i], true, nil
			}
		}
		break
	}
	return rec, false, nil
}

// cut shortens a text to n bytes, between characters.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	b := []byte(text[:n])
	for i := 0; i < 4 && len(b) > 0 && !utf8.RuneStart(text[len(b)]); i++ {
		b = b[:len(b)-1]
	}
	return string(bytes.TrimSpace(b)) + " …"
}
