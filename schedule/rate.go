package schedule

import (
	"encoding/binary"
	"math"
	"strings"
	"time"

	"github.com/recrawl/recrawl/crawldb"
)

// Rate is what is known of how often a page changes, on the assumption that it
// changes at random with a constant rate (a Poisson process): a Gamma distribution
// of that rate with the shape Shape, which grows with the changes seen, and the
// inverse scale Days, which grows with the time watched. The zero value knows
// nothing.
//
// A visit tells whether there was a change since the one before, not how many.
// After one that found a change the distribution is no longer Gamma; it is replaced
// by the Gamma distribution with the same mean and variance. All else is exact.
type Rate struct{ Shape, Days float64 }

// PerDay returns the expected number of changes a day. Like Deviation it is NaN if
// nothing is known: see Known.
func (r Rate) PerDay() float64 { return r.Shape / r.Days }

// Deviation returns the standard deviation of PerDay.
func (r Rate) Deviation() float64 { return math.Sqrt(r.Shape) / r.Days }

// Known reports whether anything is known.
func (r Rate) Known() bool {
	return r.Shape > 0 && r.Days > 0 && !math.IsInf(r.Shape, 0) && !math.IsInf(r.Days, 0)
}

// Unchanged returns what is known after a time without a change.
func (r Rate) Unchanged(after time.Duration) Rate {
	r.Days += max(days(after), 0)
	return r
}

// Changed returns what is known after a time in which the page has changed,
// once or more.
func (r Rate) Changed(after time.Duration) Rate {
	t := days(after)
	if t <= 0 {
		return r
	}
	a, b := r.Shape, r.Days
	if t < 1e-4*b { // where the differences below have no digits left
		return Rate{a + 1, b + t/2}
	}
	// The density has the factor 1 - exp(-rate·t), so its moments are differences of
	// those for b and b+t.
	log := math.Log1p(t / b)
	z := func(k float64) float64 { return -math.Expm1(-(a + k) * log) } // 1 - (b/(b+t))^(a+k)
	z0 := z(0)
	mean := a / b * z(1) / z0
	square := a * (a + 1) / (b * b) * z(2) / z0
	variance := square - mean*mean
	next := Rate{mean * mean / variance, mean / variance}
	if !next.Known() {
		return r
	}
	return next
}

// ChangedAgo returns what is known after a visit that learned from a credible
// Last-Modified how long ago the page last changed: looking back from a moment,
// the time to the last change is distributed like the time between two.
func (r Rate) ChangedAgo(ago time.Duration) Rate {
	return Rate{r.Shape + 1, r.Days + max(days(ago), 0)}
}

// forget gives less weight to what is known, without changing the expected rate,
// so that a rate that changes can be followed: at 0.98 a visit about the last
// fifty count.
func (r Rate) forget(keep float64) Rate { return Rate{r.Shape * keep, r.Days * keep} }

// rateKey is the Meta entry in which Learned keeps what it knows of a page: the two
// numbers of a Rate as 32-bit floats, a byte with the kind of content, whether
// Last-Modified is believed and how many visits that came soon found a change, one with
// the level of the Plan's drift, one with what the last visit found and what had been
// expected, and one with how long it came after the one before. Records of 11 bytes are
// of versions that did not keep that.
const rateKey = "schedule.rate"

// sinceKey is the Meta entry with the time, in milliseconds since 1970, of the last
// visit that brought content, if others have failed since.
const sinceKey = "schedule.since"

// learned is what is kept about a page.
type learned struct {
	Rate
	kind  kind
	lying bool    // a Last-Modified was false
	level int8    // level of the Plan's drift to which the rate belongs
	last  outcome // of the last visit
	// noiseState is zero if nothing is known, trusted after a visit that found no change, and grows with the evidence
	// of each visit since that found a change soon. From doubted on visits do not tell how often the page changes.
	noiseState uint8
}

// The other bits of the byte with the kind.
const (
	lyingFlag  = 0x80
	noiseShift = 3
	noiseMost  = 15
	kindMask   = 1<<noiseShift - 1
)

// learnedOf reads a record. ok is false if nothing was learned of the page yet.
func learnedOf(d *crawldb.Datum) (l learned, ok bool) {
	s, ok := d.Meta.Get(rateKey)
	if !ok || len(s) != 11 && len(s) != 12 {
		return learned{}, false
	}
	l.Shape = float64(math.Float32frombits(littleEndian(s[:4])))
	l.Days = float64(math.Float32frombits(littleEndian(s[4:8])))
	l.kind, l.lying, l.noiseState = min(kind(s[8]&kindMask), kinds-1), s[8]&lyingFlag != 0, s[8]>>noiseShift&noiseMost
	l.level = int8(s[9])
	after := byte(0)
	if len(s) == 12 {
		after = s[11]
	}
	l.last = decodeOutcome(s[10], after, l.Rate)
	return l, l.Known()
}

func littleEndian(s string) uint32 {
	return uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16 | uint32(s[3])<<24
}

// keep writes what was learned to a record.
func (l learned) keep(d *crawldb.Datum) {
	var b [12]byte
	binary.LittleEndian.PutUint32(b[:4], math.Float32bits(float32(l.Shape)))
	binary.LittleEndian.PutUint32(b[4:8], math.Float32bits(float32(l.Days)))
	if b[8] = byte(l.kind) | l.noiseState<<noiseShift; l.lying {
		b[8] |= lyingFlag
	}
	b[9] = byte(l.level)
	b[10], b[11] = l.last.encode()
	d.Meta.Set(rateKey, string(b[:]))
}

// RateOf returns what a [Learned] schedule has learned of a page, as of its last visit;
// [Learned.Explain] also includes what the plan has since seen of all pages. ok is false
// if nothing was learned yet.
func RateOf(d *crawldb.Datum) (r Rate, ok bool) {
	l, ok := learnedOf(d)
	return l.Rate, ok
}

// kind is a kind of content, whose pages change alike. The numbers are stored: never
// renumber.
type kind uint8

const (
	kindUnknown  kind = 0
	kindPage     kind = 1 // HTML
	kindFeed     kind = 2 // XML, JSON and the like
	kindText     kind = 3
	kindDocument kind = 4 // PDF and office documents
	kindMedia    kind = 5
	kindOther    kind = 6
	kinds             = 7
)

// String returns the name that Plan.KindPrior has.
func (k kind) String() string {
	return [kinds]string{"unknown", "page", "feed", "text", "document", "media", "other"}[min(k, kinds-1)]
}

// kindOf returns the kind of a media type.
func kindOf(contentType string) kind {
	top, sub, _ := strings.Cut(contentType, "/")
	switch {
	case contentType == "":
		return kindUnknown
	case sub == "html", sub == "xhtml+xml":
		return kindPage
	case sub == "xml", sub == "json", strings.HasSuffix(sub, "+xml") && top != "image", strings.HasSuffix(sub, "+json"):
		return kindFeed
	case top == "text":
		return kindText
	case top == "image", top == "audio", top == "video", top == "font":
		return kindMedia
	case sub == "pdf", sub == "msword", sub == "rtf", strings.HasPrefix(sub, "vnd."):
		return kindDocument
	}
	return kindOther
}

func days(d time.Duration) float64 { return d.Hours() / 24 }
