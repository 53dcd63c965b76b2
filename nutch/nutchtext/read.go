package nutchtext

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/internal/textlines"
)

// RecordError says that a record of a dump cannot be used. Later records can
// still be read.
type RecordError struct {
	// Line is where the record begins, from line 1.
	Line int
	Err  error
}

// Error names the line.
func (e *RecordError) Error() string { return fmt.Sprintf("nutchtext: line %d: %v", e.Line, e.Err) }

// Unwrap returns Err.
func (e *RecordError) Unwrap() error { return e.Err }

// ZoneError says that a date has the short name of a time zone that is not known: the zone
// passed to [ReadDump] is not that of the machine that wrote the dump.
type ZoneError struct{ Zone, Date string }

// Error names zone and date.
func (e *ZoneError) Error() string {
	return fmt.Sprintf("the time zone %s of %q is not known; name the place of the machine that wrote the dump", e.Zone, e.Date)
}

// maxLine limits a line of a dump; the record of a longer one is unusable.
const maxLine = 16 << 20

// ReadDump reads the records of a dump of Nutch's crawl db: readdb -dump, as text
// (-format normal, its default) or as JSON. Its CSV is ambiguous
// about where a field ends.
//
// Dates in a dump are in the time zone of the machine that wrote it, with the short
// name of the zone. The names known are that of UTC, and those of zone, which may be
// nil; any other makes a record unusable, with a *[ZoneError].
//
// A record has what [AppendRecord] prints, metadata under this module's names, and as the
// time of its last visit the one that Nutch assumes: that of the next less the interval. A
// lease (_ngt_) and the cash of Nutch's OPIC are left out. An unusable record yields a
// *RecordError and does not affect the others; any other error ends the sequence.
func ReadDump(r io.Reader, zone *time.Location) iter.Seq2[crawldb.Datum, error] {
	return func(yield func(crawldb.Datum, error) bool) {
		sc := textlines.NewScanner(r, maxLine)
		p := reader{zone: zone}
		for sc.Scan() {
			n, line := sc.Number(), sc.Bytes()
			if n == 1 {
				line = bytes.TrimPrefix(line, []byte("\ufeff"))
			}
			var more bool
			if err := sc.LineErr(); err != nil {
				more = p.long(n, line, err, yield)
			} else if url, rest, ok := bytes.Cut(line, []byte("\tVersion: ")); ok && len(rest) > 0 && line[0] != ' ' && line[0] != '\t' {
				more = p.end(yield)
				p.begin(n, string(url))
			} else if len(line) > 0 && line[0] == '{' && !p.inside {
				more = p.object(n, line, yield)
			} else {
				more = p.field(n, string(line), yield)
			}
			if !more {
				return
			}
		}
		if !p.end(yield) {
			return
		}
		if err := sc.Err(); err != nil {
			yield(crawldb.Datum{}, fmt.Errorf("nutchtext: line %d: %w", sc.Number(), err))
		}
	}
}

// reader is the record that is being read.
type reader struct {
	zone   *time.Location
	inside bool
	line   int
	d      crawldb.Datum
	pairs  []string // of metadata
	seen   int      // fields that every record has
	meta   bool
	err    error
}

func (p *reader) begin(line int, url string) {
	*p = reader{zone: p.zone, inside: true, line: line, d: crawldb.Datum{URL: url}}
}

var (
	errCSV      = errors.New("nutchtext: a dump in CSV does not say where a field ends; readdb -dump writes text, or -format json")
	errNoRecord = errors.New("not a record of a crawl db")
	errCut      = errors.New("the record is cut short")
)

// end yields the record, if there is one.
func (p *reader) end(yield func(crawldb.Datum, error) bool) bool {
	if !p.inside {
		return true
	}
	p.inside = false
	if p.err == nil && p.seen < 7 {
		p.err = errCut
	}
	return p.give(yield)
}

func (p *reader) give(yield func(crawldb.Datum, error) bool) bool {
	if p.err == nil {
		p.err = p.finish()
	}
	if p.err != nil {
		return yield(crawldb.Datum{}, &RecordError{p.line, p.err})
	}
	return yield(p.d, nil)
}

// long takes note of a line that is too long, whose first bytes are given: a line of the
// current record if it is indented, as metadata are, otherwise a record that begins.
func (p *reader) long(line int, head []byte, err error, yield func(crawldb.Datum, error) bool) bool {
	if p.inside && (head[0] == ' ' || head[0] == '\t') {
		p.fail("line %d: %w", line, err)
		return true
	}
	if !p.end(yield) {
		return false
	}
	p.begin(line, "")
	p.err = err
	return true
}

// field reads a line of a record in text.
func (p *reader) field(line int, text string, yield func(crawldb.Datum, error) bool) bool {
	switch {
	case strings.TrimSpace(text) == "":
		return true
	case !p.inside && line == 1 && strings.HasPrefix(text, "Url,Status code,"):
		yield(crawldb.Datum{}, errCSV)
		return false
	case !p.inside:
		return yield(crawldb.Datum{}, &RecordError{line, errNoRecord})
	case p.err != nil:
		return true
	case p.meta:
		// A line that is no pair belongs to the value before it, and is left out.
		if pair, ok := strings.CutPrefix(strings.TrimPrefix(text, " "), "\t"); ok {
			if name, value, ok := strings.Cut(pair, "="); ok {
				p.pair(name, value)
			}
		}
		return true
	}
	name, value, _ := strings.Cut(text, ":")
	value = strings.TrimSpace(value)
	first, _, _ := strings.Cut(value, " ")
	p.seen++
	switch name {
	case "Status":
		p.status(first)
	case "Fetch time":
		p.d.FetchTime = p.date(value)
	case "Modified time":
		p.d.Modified = p.date(value)
	case "Retries since fetch":
		p.d.Retries = int(p.number(first, 0, math.MaxInt8))
	case "Retry interval":
		p.d.Interval = time.Duration(p.number(first, 0, math.MaxInt32)) * time.Second
	case "Score":
		p.score(value)
	case "Signature":
		p.signature(value)
	case "Metadata":
		p.meta = true
		p.seen--
	default:
		p.seen--
	}
	return true
}

// object reads a record in JSON.
func (p *reader) object(line int, text []byte, yield func(crawldb.Datum, error) bool) bool {
	var o struct {
		URL       *string     `json:"url"`
		Status    json.Number `json:"statusCode"`
		FetchTime string      `json:"fetchTime"`
		Modified  string      `json:"modifiedTime"`
		Retries   json.Number `json:"retriesSinceFetch"`
		Interval  json.Number `json:"retryIntervalSeconds"`
		Score     json.Number `json:"score"`
		Signature string      `json:"signature"`
		Metadata  map[string]any
	}
	p.begin(line, "")
	p.inside = false
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if p.err = d.Decode(&o); p.err == nil && o.URL == nil {
		p.err = errNoRecord
	}
	if p.err == nil {
		p.d.URL = *o.URL
		p.status(o.Status.String())
		p.d.FetchTime, p.d.Modified = p.date(o.FetchTime), p.date(o.Modified)
		p.d.Retries = int(p.number(o.Retries.String(), 0, math.MaxInt8))
		p.d.Interval = time.Duration(p.number(o.Interval.String(), 0, math.MaxInt32)) * time.Second
		p.score(o.Score.String())
		p.signature(o.Signature)
		// In order: two names of Nutch's and ours may be one here.
		for _, name := range slices.Sorted(maps.Keys(o.Metadata)) {
			if value := o.Metadata[name]; value != nil {
				p.pair(name, fmt.Sprint(value))
			}
		}
	}
	return p.give(yield)
}

func (p *reader) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
}

func (p *reader) status(text string) {
	p.d.Status = crawldb.Status(p.number(text, 0, math.MaxUint8))
	for _, s := range crawldb.Statuses() {
		if s == p.d.Status {
			return
		}
	}
	p.fail("status %s is not that of a page", clip(text))
}

func (p *reader) number(text string, least, most int64) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < least || n > most {
		p.fail("%q is not a number from %d to %d", clip(text), least, most)
	}
	return n
}

func (p *reader) score(text string) {
	f, err := strconv.ParseFloat(text, 32)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		p.fail("score %q is not a number", clip(text))
	}
	p.d.Score = float32(f)
}

func (p *reader) signature(text string) {
	if text == "null" || text == "" {
		return
	}
	b, err := hex.DecodeString(text)
	if err != nil {
		p.fail("signature %q: %w", clip(text), err)
	}
	p.d.Signature = b
}

// date reads what Java's Date.toString prints. The beginning of 1970 is no time at all.
func (p *reader) date(text string) time.Time {
	const layout = "Mon Jan 02 15:04:05 MST 2006"
	zone := p.zone
	if zone == nil {
		zone = time.UTC
	}
	t, err := time.ParseInLocation(layout, text, zone)
	if err != nil {
		p.fail("%q is not a time as Java prints it", clip(text))
		return time.Time{}
	}
	if name, offset := t.Zone(); offset == 0 && t.Location() != zone && name != "UTC" && name != "GMT" {
		p.fail("%w", &ZoneError{Zone: name, Date: text})
	}
	if t.UnixMilli() == 0 {
		return time.Time{}
	}
	return t.UTC()
}

// pair sets an entry of metadata under the name that it has here.
func (p *reader) pair(name, value string) {
	switch name {
	case "_ngt_", "_csh_":
		return
	case "fixedInterval":
		f, err := strconv.ParseFloat(value, 64)
		if err != nil || !(f > 0 && f <= math.MaxInt32) {
			return // not a valid interval
		}
		name, value = "schedule.fixed", strconv.Itoa(int(f))
	case "_depth_":
		name = "depth.depth"
	case "_maxdepth_":
		name = "depth.max"
	case "_orphan_":
		name = "orphan.seen"
	}
	p.pairs = append(p.pairs, name, value)
}

// finish checks the record, and says when its page was visited last.
func (p *reader) finish() error {
	if p.d.URL == "" {
		return errors.New("a record without a URL")
	}
	p.d.Meta.SetAll(p.pairs...)
	if p.d.Status != crawldb.Unfetched && !p.d.FetchTime.IsZero() {
		p.d.LastFetch = p.d.FetchTime.Add(-p.d.Interval)
	}
	return nil
}

// clip shortens what is quoted in an error.
func clip(s string) string {
	if len(s) > 80 {
		return s[:80]
	}
	return s
}
