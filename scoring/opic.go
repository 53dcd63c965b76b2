package scoring

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/recrawl/recrawl/crawldb"
)

// OPIC computes the importance of pages while they are crawled, from the cash
// that flows along their links (Abiteboul, Preda, Cobena: Adaptive On-Line Page
// Importance Computation, WWW 2003). The zero value is ready to use; a value
// must not be changed while it is in use.
//
// A seed starts with cash equal to its score. A page that is fetched gives all
// of its cash to the pages it links to, and no longer has it: the total stays
// what the seeds brought, however often pages are crawled. A redirect passes
// its cash on.
//
// A page that has no link to follow, or is gone, gives its cash too. In the
// paper it gives to a virtual page, which links to all pages, but a crawler
// that writes only what it has visited cannot write every record. So the
// virtual page is read once per segment and gives to the pages visited in that
// segment, in equal parts. Every page gets its share as often as it is visited,
// the account of the virtual page is empty between segments, and what it gives
// is a function of the segment. Otherwise all cash would soon sit in pages
// without links, where it does no good. Cash is lost only with links that
// exceed update.Options.MaxInlinks, with records that an update may not add,
// and with records that are deleted.
//
// The score is what the page receives along links in a Window, estimated from
// what it has received so far: the interpolation of the paper's adaptive
// variant, applied when cash comes in. So a page that gives its cash away keeps
// its score, and the score follows the web as it changes and does not grow with
// the number of visits. It excludes what comes from the virtual page, which is
// the same for all.
//
// The state of a page is in its Meta, under "opic.cash" and "opic.history". In
// a record that has none, from before OPIC was used, the score counts as cash.
type OPIC struct {
	// Base leaves the order of due pages to the score.
	Base
	// InternalFactor and ExternalFactor are the weights of a link within the
	// host and of one to another host when cash is divided; zero means 1,
	// negative that such links get nothing. With NutchCompat each share is
	// multiplied by its factor instead, which creates or destroys cash. (Nutch:
	// db.score.link.internal, db.score.link.external.)
	InternalFactor, ExternalFactor float64
	// CountFiltered divides the cash among all links that were found. The
	// shares of links that the crawl does not follow go to the virtual page;
	// they count as links to other hosts. With NutchCompat these shares are
	// lost, and CountFiltered has no effect when the fetcher parses. (Nutch:
	// db.score.count.filtered.)
	CountFiltered bool
	// ScorePower is the exponent of the score in the weight of a page in an
	// index; zero means 0.5, negative that the score makes no difference.
	// (Nutch: indexer.score.power.)
	ScorePower float64
	// Window is the period over which what a page receives is added up; zero or
	// less means 30 days. A good window is the time in which most pages are
	// fetched once.
	Window time.Duration
	// NutchCompat computes Nutch's scores bit for bit: in 32-bit floats, and
	// without taking from a page what it gives, so that the sum of the scores
	// doubles with every crawl of all pages. The target of a redirect gets
	// nothing. Scores stop at the greatest float, where Nutch's become infinite.
	NutchCompat bool
}

var _ Filter = OPIC{}

const (
	cashKey    = "opic.cash"
	historyKey = "opic.history"
)

// Cash returns the cash that [OPIC] keeps in a record. The sum over a crawl db
// is constant except for seeds, deletions and links that were dropped.
func Cash(d *crawldb.Datum) float64 {
	if v, ok := d.Meta.Get(cashKey); ok && len(v) == 8 {
		return amount(math.Float64frombits(binary.BigEndian.Uint64([]byte(v))))
	}
	return amount(float64(d.Score))
}

// amount returns f if it can be an amount of cash, and zero otherwise.
func amount(f float64) float64 {
	if !(f > 0) {
		return 0
	}
	return min(f, math.MaxFloat64)
}

// SetScore gives a record a score from outside, such as one set by an operator.
// [OPIC] continues from it as if the page had received it in the last Window;
// the cash is unchanged. [PageRank] takes it as the score a seed has of its
// own; a page that is not a seed has it until it is ranked again.
func SetScore(d *crawldb.Datum, score float32) {
	d.Score = score
	if _, ok := d.Meta.Get(seedKey); ok {
		setSeedRank(d, score)
	}
	if _, ok := d.Meta.Get(historyKey); ok {
		history{sum: amount(float64(score))}.store(d)
	}
}

func cashText(cash float64) string {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], math.Float64bits(cash))
	return string(b[:])
}

// history is what a page received in a window.
type history struct {
	sum float64
	at  time.Time // when it last received something; zero if unknown
}

func historyOf(d *crawldb.Datum) history {
	v, ok := d.Meta.Get(historyKey)
	if !ok || len(v) != 16 {
		return history{sum: amount(float64(d.Score))}
	}
	h := history{sum: amount(math.Float64frombits(binary.BigEndian.Uint64([]byte(v))))}
	if ms := int64(binary.BigEndian.Uint64([]byte(v[8:]))); ms != 0 {
		h.at = time.UnixMilli(ms)
	}
	return h
}

func (h history) store(d *crawldb.Datum) { d.Meta.Set(historyKey, h.text()) }

func (h history) text() string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:], math.Float64bits(h.sum))
	if !h.at.IsZero() {
		binary.BigEndian.PutUint64(b[8:], uint64(h.at.UnixMilli()))
	}
	return string(b[:])
}

// receive adds what came in at now. Amounts older than the window leave it: the previous
// sum counts for the part of the window that it still covers, and an amount that came in
// over more than a window counts for a window's share. If no time has passed, or now is in
// the past, it is plain addition: segments need not be updated in order. But a last time
// that is a window or more ahead comes from a wrong clock, and is replaced by now: until it
// was reached, everything would be plain addition.
func (h history) receive(in float64, now time.Time, window time.Duration) history {
	if h.at.IsZero() {
		return history{amount(h.sum + in), now}
	}
	gap := now.Sub(h.at)
	switch {
	case gap <= -window:
		return history{amount(h.sum + in), now}
	case gap <= 0:
		return history{amount(h.sum + in), h.at}
	case gap < window:
		return history{amount(float64(h.sum*(float64(window-gap)/float64(window))) + in), now}
	}
	return history{amount(in * (float64(window) / float64(gap))), now}
}

// estimate is the score at now. If nothing came in for longer than a window, it
// falls with time.
func (h history) estimate(now time.Time, window time.Duration) float32 {
	sum := h.sum
	if gap := now.Sub(h.at); !h.at.IsZero() && gap > window {
		sum *= float64(window) / float64(gap)
	}
	return float32(min(sum, math.MaxFloat32))
}

func (o OPIC) window() time.Duration {
	if o.Window <= 0 {
		return 30 * 24 * time.Hour
	}
	return o.Window
}

// Injected turns the score of a seed into cash. A record that already has cash
// is left alone: injecting a seed again creates none.
func (o OPIC) Injected(d *crawldb.Datum) {
	if o.NutchCompat {
		return
	}
	if _, ok := d.Meta.Get(cashKey); ok {
		return
	}
	h := history{sum: amount(float64(d.Score))}
	d.Meta.SetAll(cashKey, cashText(h.sum), historyKey, h.text())
	d.Score = h.estimate(time.Time{}, o.window())
}

// Discovered sets the score to zero: a new page has what its links bring.
func (o OPIC) Discovered(d *crawldb.Datum) {
	d.Score = 0
	if !o.NutchCompat { // in case the Meta that came along a link is another page's
		d.Meta.Delete(cashKey)
		d.Meta.Delete(historyKey)
	}
}

// Distribute divides the cash that the page had when it was selected among its
// links, or gives it to the virtual page if there are none.
func (o OPIC) Distribute(p Page, links []Link) (gave float64) {
	if o.NutchCompat {
		o.nutchDistribute(p, links)
		return 0
	}
	whole, accepted := 0.0, 0
	for i := range links {
		links[i].Score = 0
		if links[i].Drop {
			continue
		}
		accepted++
		links[i].Score = factor(o.ExternalFactor)
		if sameHost(p.Datum.URL, links[i].URL) {
			links[i].Score = factor(o.InternalFactor)
		}
		whole += links[i].Score
	}
	to := whole
	if o.CountFiltered && p.Found > accepted {
		whole += float64(p.Found-accepted) * factor(o.ExternalFactor)
	}
	cash := Cash(p.Datum)
	var total sum
	for i := range links {
		if w := links[i].Score; w > 0 {
			links[i].Score = cash * (w / whole)
			total.add(links[i].Score)
		}
	}
	if to == 0 || to < whole {
		return cash // the rest is for the virtual page
	}
	return total.value()
}

func sameHost(a, b string) bool {
	host := crawldb.Host(a)
	return host != "" && crawldb.Host(b) == host
}

// Boost returns the boost times a power of the score.
func (o OPIC) Boost(d *crawldb.Datum, boost float32) float32 {
	if d == nil || o.ScorePower < 0 {
		return boost
	}
	power := o.ScorePower
	if power == 0 {
		power = 0.5
	}
	return finite(finite(float32(math.Pow(amount(float64(d.Score)), power))) * boost)
}

// factor reads an option. The bound keeps the sum of many of them finite.
func factor(f float64) float64 {
	switch {
	case f == 0:
		return 1
	case f > 0:
		return min(f, 1e100)
	}
	return 0
}

// Updated takes from the page what it gave and adds what it received. It uses
// the current record: cash that came in since the page was selected is kept.
func (o OPIC) Updated(old, d *crawldb.Datum, f Flow) {
	if old == nil {
		old = d
	}
	if o.NutchCompat {
		nutchUpdated(old, d, f)
		return
	}
	if !f.Visited && len(f.In) == 0 && f.Gave == 0 && f.Shared == 0 {
		return
	}
	var in, cash sum
	for _, l := range f.In {
		in.add(amount(l.Score))
	}
	cash.add(Cash(old))
	cash.add(-amount(f.Gave))
	cash.add(in.value())
	cash.add(amount(f.Shared))

	h := historyOf(old)
	if got := in.value(); got > 0 || h.at.IsZero() {
		h = h.receive(amount(got), f.Time, o.window())
	}
	d.Meta.SetAll(cashKey, cashText(amount(cash.value())), historyKey, h.text())
	d.Score = h.estimate(f.Time, o.window())
}

// sum adds up numbers with compensation for rounding (Neumaier 1974), so that
// cash does not erode. The zero value is zero.
type sum struct{ s, c float64 }

func (s *sum) add(x float64) {
	t := s.s + x
	if math.Abs(s.s) >= math.Abs(x) {
		s.c += (s.s - t) + x
	} else {
		s.c += (x - t) + s.s
	}
	s.s = t
}

func (s *sum) value() float64 {
	v := s.s + s.c
	if math.IsNaN(v) { // the sum overflowed, and with it the error
		return math.MaxFloat64
	}
	return max(-math.MaxFloat64, min(v, math.MaxFloat64))
}

func (o OPIC) nutchDistribute(p Page, links []Link) {
	n := 0
	for i := range links {
		links[i].Score = 0
		if !links[i].Drop {
			n++
		}
	}
	if o.CountFiltered {
		n = p.Found
	}
	if n <= 0 || p.Content == nil { // the target of a redirect begins with nothing
		return
	}
	share := finite(p.Datum.Score) / float32(n)
	internal := finite(share * float32(factor(o.InternalFactor)))
	external := finite(share * float32(factor(o.ExternalFactor)))
	for i := range links {
		switch {
		case links[i].Drop:
		case sameHost(p.Datum.URL, links[i].URL):
			links[i].Score = float64(internal)
		default:
			links[i].Score = float64(external)
		}
	}
}

func nutchUpdated(old, d *crawldb.Datum, f Flow) {
	var sum float32
	for _, l := range f.In {
		sum = finite(sum + finite(float32(l.Score)))
	}
	d.Score = finite(finite(old.Score) + sum)
}

func finite(f float32) float32 {
	if f != f {
		return 0
	}
	return max(-math.MaxFloat32, min(f, math.MaxFloat32))
}
