package simulate

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/recrawl/recrawl/crawldb"
)

// The names under which a history says what package signature would compute for its
// pages: signature.MD5, of the bytes, signature.TextMD5 and signature.TextProfile.
const (
	MD5         = "md5"
	TextMD5     = "textmd5"
	TextProfile = "textprofile"
)

// BySignature returns the pages as a crawl with the given signature sees them: the schedule
// learns of what that detects, while a copy is fresh as long as the signature truth is the
// same. An empty signature means TextMD5, as in a crawl, and an empty truth what the crawl
// sees, or TextMD5. A history that lacks the signature is an error, unless it has none at all:
// then all signatures see its events.
func BySignature(pages []Page, signature, truth string) ([]Page, error) {
	sees, matters, err := SignatureAndTruth(pages, signature, truth)
	if err != nil {
		return nil, err
	}
	if sees == "" {
		return pages, nil
	}
	out := slices.Clone(pages)
	for i := range out {
		p := &out[i]
		p.Events, p.Seen = p.events(matters), p.events(sees)
		p.SignatureAlwaysDiffers = slices.Contains(p.AlwaysDiffer, sees) && !slices.Contains(p.AlwaysDiffer, matters)
	}
	return out, nil
}

// SignatureAndTruth returns the names of the signatures that [BySignature] uses if asked for these; empty
// ones if the history has none.
func SignatureAndTruth(pages []Page, signature, truth string) (sees, matters string, err error) {
	names := signatures(pages)
	if len(names) == 0 {
		if signature != "" || truth != "" {
			return "", "", errors.New("simulate: the history has only one kind of change, and no signatures")
		}
		return "", "", nil
	}
	pick := func(name string) (string, error) {
		switch {
		case name == "" && slices.Contains(names, TextMD5):
			return TextMD5, nil
		case name == "":
			return names[0], nil
		case slices.Contains(names, name):
			return name, nil
		}
		return "", fmt.Errorf("simulate: the history has no signature %q; it has %s", name, strings.Join(names, ", "))
	}
	if sees, err = pick(strings.ToLower(signature)); err != nil {
		return "", "", err
	}
	if matters, err = pick(strings.ToLower(truth)); err != nil {
		return "", "", err
	}
	return sees, matters, nil
}

// signatures returns the signatures in a history.
func signatures(pages []Page) []string {
	names := map[string]bool{}
	for i := range pages {
		for name := range pages[i].Signatures {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// events returns the events that a signature sees; not nil.
func (p *Page) events(signature string) []Event {
	if of := p.Signatures[signature]; of != nil {
		return of
	}
	return []Event{}
}

// bySignature lists events by signature, if there are any that not all signatures see.
func bySignature(pages []Page) {
	if !slices.ContainsFunc(pages, func(p Page) bool {
		return slices.ContainsFunc(p.Events, func(e Event) bool { return e.Kind == BytesModified || e.Kind == WordsModified })
	}) {
		return
	}
	for i := range pages {
		p := &pages[i]
		p.Signatures = map[string][]Event{}
		for _, e := range p.Events {
			of := []string{MD5, TextMD5, TextProfile}
			switch e.Kind {
			case BytesModified:
				of = of[:1]
			case WordsModified:
				of = of[:2]
			}
			if e.Kind == BytesModified || e.Kind == WordsModified {
				e.Kind = Modified
			}
			for _, name := range of {
				p.Signatures[name] = append(p.Signatures[name], e)
			}
		}
	}
}

// observation is the state in which a page was found at a time, or an event.
type observation struct {
	at     time.Time
	event  Kind // zero if it was found
	gone   bool
	same   bool // unchanged, whatever the content was
	sums   []string
	line   int
	page   string
	typ    string
	weight float64
}

// observations reads lines under a header.
type observations struct {
	columns []string
	flags   []bool // which columns say only whether something has changed
	sums    []int  // which columns are signatures
	byPage  map[string][]observation
	order   []string
	comma   rune // the separator of columns; a blank stands for any white space
	dates   span
}

// The columns that are not signatures.
const (
	urlColumn    = "url"
	timeColumn   = "time"
	statusColumn = "status"
	typeColumn   = "type"
	weightColumn = "weight"
	eventColumn  = "event"
	noColumn     = "" // ignored
)

// columnOf returns the meaning of a column by its name, and whether it is a flag for changes.
func columnOf(header string) (name string, flag bool) {
	header = strings.ToLower(strings.Trim(strings.TrimSpace(header), `"`))
	name, flag = strings.CutSuffix(header, "changed")
	name = strings.TrimRight(name, "_- ")
	switch strings.ReplaceAll(name, "_", "") {
	case "page", "path", "original", "uri":
		name = urlColumn
	case "date", "timestamp", "datetime", "fetched", "at":
		name = timeColumn
	case "statuscode", "code", "httpstatus":
		name = statusColumn
	case "mimetype", "mime", "contenttype", "content-type":
		name = typeColumn
	case "importance":
		name = weightColumn
	case "bytes", "digest", "hash", "sha1", "checksum":
		name = MD5
	case "text":
		name = TextMD5
	case "profile":
		name = TextProfile
	case "":
		if flag {
			name = "content"
		}
	}
	return name, flag
}

// ignored lists columns in the indexes of web archives that say nothing about a page.
func ignored(name string) bool {
	return slices.Contains([]string{"urlkey", "length", "offset", "filename"}, name)
}

// archived lists the columns in an index of a web archive.
func archived() []string {
	return []string{noColumn, timeColumn, urlColumn, typeColumn, statusColumn, MD5, noColumn}
}

// newObservations reads the first line, which may be a header, or the first line of an index of a
// web archive without a header; otherwise o is nil. names reports whether it is a header.
func newObservations(line string) (o *observations, names bool, err error) {
	if cells := strings.Fields(line); len(cells) == len(archived()) && len(cells[1]) == len("20060102150405") && strings.Contains(cells[2], "://") {
		if _, ok := parseTime(cells[1]); ok {
			return &observations{columns: archived(), flags: make([]bool, len(cells)), sums: []int{5}, byPage: map[string][]observation{}, comma: ' '}, false, nil
		}
	}
	for _, comma := range "\t,; " {
		o = &observations{byPage: map[string][]observation{}, comma: comma}
		header, err := o.split(line)
		if err != nil {
			continue
		}
		for _, cell := range header {
			name, flag := columnOf(cell)
			o.columns, o.flags = append(o.columns, name), append(o.flags, flag)
		}
		if slices.Contains(o.columns, urlColumn) && slices.Contains(o.columns, timeColumn) {
			return o, true, o.sort()
		}
	}
	return nil, false, nil
}

// sort finds the columns that are signatures.
func (o *observations) sort() error {
	seen := map[string]bool{}
	for i, name := range o.columns {
		if name == noColumn || seen[name] {
			return fmt.Errorf("the header has an empty or repeated name in column %d", i+1)
		}
		seen[name] = true
		switch {
		case ignored(name):
			o.columns[i] = noColumn
		case !slices.Contains([]string{urlColumn, timeColumn, statusColumn, typeColumn, weightColumn, eventColumn}, name):
			o.sums = append(o.sums, i)
		}
	}
	switch {
	case seen[eventColumn] && len(o.sums) > 0:
		return fmt.Errorf("the header has both events and the signature %s; a history has one or the other", o.columns[o.sums[0]])
	case seen[eventColumn] || len(o.sums) > 0:
		return nil
	}
	return errors.New("the header has neither a column with a signature, such as md5, textmd5 or textprofile, nor one with events")
}

func (o *observations) split(line string) ([]string, error) {
	switch {
	case o.comma == ' ':
		return strings.Fields(line), nil
	case o.comma == '\t' || !strings.Contains(line, `"`):
		return strings.Split(line, string(o.comma)), nil
	}
	cells := csv.NewReader(strings.NewReader(line))
	cells.Comma = o.comma
	return cells.Read()
}

// add reads a line.
func (o *observations) add(line string, n int) error {
	cells, err := o.split(line)
	if err != nil {
		return err
	}
	if len(cells) != len(o.columns) {
		return fmt.Errorf("%d columns; the header has %d", len(cells), len(o.columns))
	}
	x := observation{line: n}
	for i, cell := range cells {
		cell = strings.TrimSpace(cell)
		if cell == "-" {
			cell = ""
		}
		switch o.columns[i] {
		case urlColumn:
			if x.page = cell; cell == "" {
				return errors.New("no URL")
			}
		case timeColumn:
			var ok bool
			if x.at, ok = parseTime(cell); !ok {
				return fmt.Errorf("%q is not a time: %s", cell, timeForms)
			}
			if err := o.dates.add(x.at); err != nil {
				return fmt.Errorf("%s %w", cell, err)
			}
		case statusColumn:
			switch code, err := strconv.Atoi(cell); {
			case cell == "":
			case err != nil || code < 100 || code > 599:
				return fmt.Errorf("%q is not an HTTP status", cell)
			case code == 404 || code == 410:
				x.gone = true
			case code == 304:
				x.same = true
			case code < 200 || code > 299:
				return nil // the content is unknown
			}
		case typeColumn:
			x.typ = strings.ToLower(cell)
		case weightColumn:
			if cell == "" {
				continue
			}
			w, err := strconv.ParseFloat(cell, 64)
			if err != nil || !(w > 0 && w <= 1e12) {
				return fmt.Errorf("%q is not a weight above zero", cell)
			}
			x.weight = w
		case eventColumn:
			var ok bool
			if x.event, ok = kindOf(cell); !ok {
				return fmt.Errorf("%q is not an event; want A (appeared), M (modified), D (deleted), B or T", cell)
			}
		case noColumn:
		default:
			if o.flags[i] && cell != "" && cell != "0" && cell != "1" {
				return fmt.Errorf("%q is neither 0 nor 1", cell)
			}
			x.sums = append(x.sums, cell)
		}
	}
	if x.event == 0 && !x.gone && !x.same && !slices.ContainsFunc(x.sums, func(s string) bool { return s != "" }) {
		return errors.New("no signature")
	}
	if _, ok := o.byPage[x.page]; !ok {
		o.order = append(o.order, x.page)
	}
	o.byPage[x.page] = append(o.byPage[x.page], x)
	return nil
}

// kindOf reads an event.
func kindOf(text string) (Kind, bool) {
	switch strings.ToLower(text) {
	case "a", "added", "appeared", "created", "new":
		return Appears, true
	case "", "m", "modified", "changed", "updated":
		return Modified, true
	case "d", "deleted", "removed", "gone":
		return Deleted, true
	case "b":
		return BytesModified, true
	case "t":
		return WordsModified, true
	}
	return 0, false
}

// beginning returns when pages were first looked at, and when the second look began: until then
// at most a few in a hundred were looked at twice.
func (o *observations) beginning() (from, to time.Time) {
	var again []time.Time
	for _, all := range o.byPage {
		if at := all[0].at; from.IsZero() || at.Before(from) {
			from = at
		}
		if i := slices.IndexFunc(all, func(x observation) bool { return x.at.After(all[0].at) }); i > 0 {
			again = append(again, all[i].at)
		}
	}
	if to = from; len(again) > 0 {
		slices.SortFunc(again, time.Time.Compare)
		to = again[len(again)/100]
	}
	return from, to
}

// pages makes histories of the observations. fail names the line.
func (o *observations) pages(fail func(line int, err error) error) ([]Page, error) {
	for _, all := range o.byPage {
		slices.SortStableFunc(all, func(a, b observation) int { return a.at.Compare(b.at) })
	}
	var pages []Page
	from, to := o.beginning()
	for _, url := range o.order {
		all := o.byPage[url]
		p := Page{URL: url, Until: all[len(all)-1].at}
		for i := range all {
			x := &all[i]
			if x.weight > 0 {
				p.Weight = x.weight
			}
			p.ContentType = cmp.Or(x.typ, p.ContentType)
			if x.event != 0 {
				p.Events = append(p.Events, Event{x.at, x.event})
				continue
			}
			if i > 0 && x.at.Equal(all[i-1].at) && (x.gone != all[i-1].gone || !slices.Equal(x.sums, all[i-1].sums)) {
				return nil, fail(x.line, fmt.Errorf("line %d has another result for %s at that time", all[i-1].line, url))
			}
		}
		if len(p.Events) > 0 {
			pages = append(pages, p)
			continue
		}
		p.Signatures = map[string][]Event{}
		// A page that was found in the first look at all pages existed before.
		first := all[0].at
		if first.Before(to) && !all[0].gone {
			first = from
		}
		for k, column := range o.sums {
			p.Signatures[o.columns[column]] = changes(all, k, first, o.flags[column])
		}
		pages = append(pages, p)
	}
	o.markAlwaysDiffering(pages)
	return pages, nil
}

// A signature that is different nearly every time somebody looks sees the time, or tokens, and not
// the page. alwaysDiffersShare says what nearly means, alwaysDiffersPage how often one page must have been
// looked at to say so, and alwaysDiffersHost how often all pages of a host.
const (
	alwaysDiffersShare = 0.95
	alwaysDiffersPage  = 10
	alwaysDiffersHost  = 100
)

// looks counts how often a signature was looked at again, and how often it was different.
type looks struct{ again, others int }

func (l looks) alwaysDiffers(least int) bool {
	return l.others >= least && float64(l.others) >= alwaysDiffersShare*float64(l.again)
}

// looks returns the counts for each signature of a page.
func (o *observations) looks(all []observation) []looks {
	of := make([]looks, len(o.sums))
	for k, column := range o.sums {
		first, last := true, ""
		for i := range all {
			sum := all[i].sums[k]
			if sum == "" && !all[i].same {
				continue
			}
			if !first {
				of[k].again++
				if o.flags[column] && sum == "1" || !o.flags[column] && sum != "" && sum != last {
					of[k].others++
				}
			}
			first, last = false, sum
		}
	}
	return of
}

// markAlwaysDiffering finds the signatures that differ at every look, on pages where another does not.
func (o *observations) markAlwaysDiffering(pages []Page) {
	type column struct {
		host string
		k    int
	}
	hosts := map[column]looks{}
	all := make([][]looks, len(pages))
	for i := range pages {
		all[i] = o.looks(o.byPage[pages[i].URL])
		for k, l := range all[i] {
			at := column{crawldb.Host(pages[i].URL), k}
			h := hosts[at]
			hosts[at] = looks{h.again + l.again, h.others + l.others}
		}
	}
	for i := range pages {
		calm := func(l looks) bool { return l.again > 0 && !l.alwaysDiffers(1) }
		if !slices.ContainsFunc(all[i], calm) {
			continue
		}
		for k, l := range all[i] {
			host := hosts[column{crawldb.Host(pages[i].URL), k}]
			if l.alwaysDiffers(alwaysDiffersPage) || l.alwaysDiffers(1) && host.alwaysDiffers(alwaysDiffersHost) {
				pages[i].AlwaysDiffer = append(pages[i].AlwaysDiffer, o.columns[o.sums[k]])
			}
		}
	}
}

// changes lists when signature k of a page changed; first is when the page appeared, if the first
// observation finds it. A change is only known to lie between two observations. Its moment is
// drawn, from the page and the times, so that it is the same for all signatures.
func changes(all []observation, k int, first time.Time, flag bool) (events []Event) {
	last, there := "", false
	var before time.Time
	for i := range all {
		x := &all[i]
		sum := x.sums[k]
		switch {
		case x.same:
			sum = last
		case flag && sum == "1":
			sum = strconv.Itoa(i) // different from all before
		case flag && sum == "0":
			sum = last
			if !there {
				sum = "-" // the first
			}
		}
		if !x.gone && sum == "" {
			continue // nothing was observed
		}
		switch {
		case len(events) == 0 && x.gone: // it has not existed yet
			continue
		case len(events) == 0 && i == 0:
			events = append(events, Event{first, Appears})
		case len(events) == 0:
			events = append(events, Event{x.at, Appears})
		case x.gone && there:
			events = append(events, Event{between(x.page, before, x.at), Deleted})
		case !x.gone && !there:
			events = append(events, Event{between(x.page, before, x.at), Appears})
		case !x.gone && sum != last:
			events = append(events, Event{between(x.page, before, x.at), Modified})
		}
		if there, before = !x.gone, x.at; there {
			last = sum
		}
	}
	return events
}

// between returns a moment after one time and not after another.
func between(page string, from, to time.Time) time.Time {
	part := drawn("%s %d %d", page, from.Unix(), to.Unix())
	return to.Add(-time.Duration(part * float64(to.Sub(from)))).Truncate(time.Second).UTC()
}

// drawn returns a number from 0 to 1 that depends on a text alone.
func drawn(format string, args ...any) float64 {
	h := fnv.New64a()
	fmt.Fprintf(h, format, args...)
	x := h.Sum64()
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	return float64((x^x>>33)>>11) / (1 << 53)
}
