package simulate

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The names under which a history tells what package signature would make of its pages:
// signature.MD5, of the bytes, signature.TextMD5 and signature.TextProfile.
const (
	MD5         = "md5"
	TextMD5     = "textmd5"
	TextProfile = "textprofile"
)

// BySignature returns the pages as a crawl with a signature sees them: the schedule is told of
// what that sees, while a copy is fresh as long as truth is the same. An empty signature is
// TextMD5, as in a crawl, an empty truth what the crawl sees, or TextMD5. A history that does
// not tell of a signature is an error, unless it tells of none: then its events are what all
// see.
func BySignature(pages []Page, signature, truth string) ([]Page, error) {
	names := signatures(pages)
	if len(names) == 0 {
		if signature != "" || truth != "" {
			return nil, errors.New("simulate: the history has one kind of change only: it tells nothing of signatures")
		}
		return pages, nil
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
		return "", fmt.Errorf("simulate: the history does not tell of the signature %q, but of %s", name, strings.Join(names, ", "))
	}
	sees, err := pick(strings.ToLower(signature))
	if err != nil {
		return nil, err
	}
	matters, err := pick(strings.ToLower(truth))
	if err != nil {
		return nil, err
	}
	out := slices.Clone(pages)
	for i := range out {
		p := &out[i]
		p.Events, p.Seen = p.events(matters), p.events(sees)
		p.EachVisit = slices.Contains(p.Restless, sees) && !slices.Contains(p.Restless, matters)
	}
	return out, nil
}

// signatures are those of which a history tells.
func signatures(pages []Page) []string {
	names := map[string]bool{}
	for i := range pages {
		for name := range pages[i].Signatures {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// events are those of which a signature tells; not nil.
func (p *Page) events(signature string) []Event {
	if of := p.Signatures[signature]; of != nil {
		return of
	}
	return []Event{}
}

// bySignature lists events by signature, if some page has one of which not all tell.
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

// observation is what a page was found to be at a time.
type observation struct {
	at     time.Time
	gone   bool
	same   bool // as before, whatever that was
	sums   []string
	line   int
	page   string
	typ    string
	weight float64
}

// observations reads lines under a header.
type observations struct {
	columns []string
	flags   []bool // which columns say whether something has changed
	sums    []int  // which columns are signatures
	of      map[string][]observation
	order   []string
	tabs    bool
	dates   span
}

// newObservations reads a header; ok is false if the line is none.
func newObservations(line string) (o *observations, ok bool, err error) {
	o = &observations{of: map[string][]observation{}, tabs: strings.Contains(line, "\t")}
	for _, name := range o.split(line) {
		name, flag := strings.CutSuffix(strings.ToLower(strings.TrimSpace(name)), "changed")
		switch name = strings.TrimRight(name, "_- "); name {
		case "page", "path":
			name = "url"
		case "date", "timestamp":
			name = "time"
		case "bytes", "digest", "hash":
			name = MD5
		case "text":
			name = TextMD5
		case "profile":
			name = TextProfile
		}
		o.columns, o.flags = append(o.columns, name), append(o.flags, flag)
	}
	if len(o.columns) == 1 {
		if names := strings.Split(o.columns[0], ","); slices.Contains(names, "url") && slices.Contains(names, "time") {
			return nil, true, errors.New("columns are separated by tabs or blanks, not by commas")
		}
	}
	if !slices.Contains(o.columns, "url") || !slices.Contains(o.columns, "time") {
		return nil, false, nil
	}
	seen := map[string]bool{}
	for i, name := range o.columns {
		if name == "" || seen[name] {
			return nil, true, fmt.Errorf("the header has no name, or the same twice, in column %d", i+1)
		}
		seen[name] = true
		if !slices.Contains([]string{"url", "time", "status", "type", "weight"}, name) {
			o.sums = append(o.sums, i)
		}
	}
	if len(o.sums) == 0 {
		return nil, true, errors.New("the header has no column with a signature, such as md5, textmd5 or textprofile")
	}
	return o, true, nil
}

func (o *observations) split(line string) []string {
	if o.tabs {
		return strings.Split(line, "\t")
	}
	return strings.Fields(line)
}

// add reads a line.
func (o *observations) add(line string, n int) error {
	cells := o.split(line)
	if len(cells) != len(o.columns) {
		return fmt.Errorf("%d columns, where the header has %d", len(cells), len(o.columns))
	}
	x := observation{line: n}
	for i, cell := range cells {
		cell = strings.TrimSpace(cell)
		if cell == "-" {
			cell = ""
		}
		switch o.columns[i] {
		case "url":
			if x.page = cell; cell == "" {
				return errors.New("there is no URL")
			}
		case "time":
			var ok bool
			if x.at, ok = parseTime(cell); !ok {
				return fmt.Errorf("%q is no time: %s", cell, timeForms)
			}
			if err := o.dates.add(x.at); err != nil {
				return fmt.Errorf("%s %w", cell, err)
			}
		case "status":
			switch code, err := strconv.Atoi(cell); {
			case cell == "":
			case err != nil || code < 100 || code > 599:
				return fmt.Errorf("%q is no status of HTTP", cell)
			case code == 404 || code == 410:
				x.gone = true
			case code == 304:
				x.same = true
			case code < 200 || code > 299:
				return nil // nothing is known of the content
			}
		case "type":
			x.typ = strings.ToLower(cell)
		case "weight":
			if cell == "" {
				continue
			}
			w, err := strconv.ParseFloat(cell, 64)
			if err != nil || !(w > 0 && w <= 1e12) {
				return fmt.Errorf("%q is no weight above zero", cell)
			}
			x.weight = w
		default:
			if o.flags[i] && cell != "" && cell != "0" && cell != "1" {
				return fmt.Errorf("%q is neither 0 nor 1", cell)
			}
			x.sums = append(x.sums, cell)
		}
	}
	if !x.gone && !x.same && !slices.ContainsFunc(x.sums, func(s string) bool { return s != "" }) {
		return errors.New("there is no signature")
	}
	if _, ok := o.of[x.page]; !ok {
		o.order = append(o.order, x.page)
	}
	o.of[x.page] = append(o.of[x.page], x)
	return nil
}

// beginning is when pages were first looked at, and until when none was for the second time, but
// for some in a hundred.
func (o *observations) beginning() (from, to time.Time) {
	var again []time.Time
	for _, all := range o.of {
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

// pages makes histories of what was observed. fail names the line.
func (o *observations) pages(fail func(line int, err error) error) ([]Page, error) {
	for _, all := range o.of {
		slices.SortStableFunc(all, func(a, b observation) int { return a.at.Compare(b.at) })
	}
	var pages []Page
	from, to := o.beginning()
	for _, url := range o.order {
		all := o.of[url]
		p := Page{URL: url, Signatures: map[string][]Event{}, Until: all[len(all)-1].at}
		for i := range all {
			x := &all[i]
			if x.weight > 0 {
				p.Weight = x.weight
			}
			p.ContentType = cmp.Or(x.typ, p.ContentType)
			if i > 0 && x.at.Equal(all[i-1].at) && (x.gone != all[i-1].gone || !slices.Equal(x.sums, all[i-1].sums)) {
				return nil, fail(x.line, fmt.Errorf("%s is another page at that time in line %d", url, all[i-1].line))
			}
		}
		// What was found there when all pages were looked at for the first time was there before.
		first := all[0].at
		if first.Before(to) && !all[0].gone {
			first = from
		}
		for k, column := range o.sums {
			p.Signatures[o.columns[column]] = changes(all, k, first, o.flags[column])
		}
		p.Restless = o.restless(all)
		pages = append(pages, p)
	}
	return pages, nil
}

// restless are the signatures that were others each time that a page was looked at, ten times
// and more, where another was not: they see when that was, or tokens, and not the page.
func (o *observations) restless(all []observation) (names []string) {
	calm := false
	for k, column := range o.sums {
		looks, others, last := 0, 0, ""
		for i := range all {
			sum := all[i].sums[k]
			if sum == "" && !all[i].same {
				continue
			}
			if looks++; looks > 1 && (o.flags[column] && sum == "1" || !o.flags[column] && sum != "" && sum != last) {
				others++
			}
			last = sum
		}
		switch {
		case looks > 1 && others < looks-1:
			calm = true
		case others >= 10:
			names = append(names, o.columns[column])
		}
	}
	if !calm {
		return nil
	}
	return names
}

// changes lists when a signature changed of a page that was there from a time on, if the first
// observation says so. All that is known is that it did between two
// observations; when is drawn, from the page and the times, so that it is the same for all
// of its signatures.
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
			sum = strconv.Itoa(i) // another than any before
		case flag && sum == "0":
			sum = last
			if !there {
				sum = "-" // the first
			}
		}
		if !x.gone && sum == "" {
			continue // it was not looked at
		}
		switch {
		case len(events) == 0 && x.gone: // it was never there yet
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

// between is a moment after one and not after another.
func between(page string, from, to time.Time) time.Time {
	part := drawn("%s %d %d", page, from.Unix(), to.Unix())
	return to.Add(-time.Duration(part * float64(to.Sub(from)))).Truncate(time.Second).UTC()
}

// drawn is a number from 0 to 1 that depends on a text alone.
func drawn(format string, args ...any) float64 {
	h := fnv.New64a()
	fmt.Fprintf(h, format, args...)
	x := h.Sum64()
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	return float64((x^x>>33)>>11) / (1 << 53)
}
