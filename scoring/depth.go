package scoring

import (
	"regexp"
	"strconv"

	"github.com/recrawl/recrawl/crawldb"
)

// The state of [Depth] in the Meta of a record and of a link, as decimal
// numbers. A seed sets SeedMaxDepthKey to go further than others, or less far.
// (Nutch: _depth_ and _maxdepth_.)
const (
	DepthKey        = "depth.depth"
	MaxDepthKey     = "depth.max"
	SeedMaxDepthKey = "_maxdepth_"
)

// Depth follows links from a seed up to a depth, nearer pages first. A seed
// has depth 1, a page it links to depth 2; the target of a redirect has the
// depth of the page. The zero value is ready to use.
//
// The shortest known path counts. A seed may have its own maximum, which
// applies to all that is found from it: SeedMaxDepthKey in its metadata.
//
// A record from before Depth was used has no depth: such a page counts as a
// seed until a link sets its depth.
//
// (Nutch: scoring-depth.)
type Depth struct {
	// Base leaves links and index weights alone.
	Base
	// Max is the depth from which no links are followed; zero or less means
	// 1000. (Nutch: scoring.depth.max.)
	Max int
	// Override, where it matches the URL of a page, sets the maximum of the
	// page to OverrideMax, of which zero means 10. (Nutch:
	// scoring.depth.override.pattern, scoring.depth.max.override.)
	Override    *regexp.Regexp
	OverrideMax int
	// BreadthFirst orders by depth alone, not by the score times the remaining
	// depth. This is what Nutch does if its chain has no filter that orders by
	// score, as scoring-opic does.
	BreadthFirst bool
	// NutchCompat does what Nutch does. An Override that does not match sets
	// the maximum of the page to Max. A record without a depth follows no
	// links, has depth 1000 after an update, whatever Max is, and keeps the
	// priority it is given. A page beyond its maximum has a negative one.
	NutchCompat bool
}

var _ Filter = Depth{}

const (
	defaultMaxDepth      = 1000
	defaultOverrideDepth = 10
)

func (f Depth) max() int {
	if f.Max <= 0 {
		return defaultMaxDepth
	}
	return f.Max
}

// own returns the maximum that a record has of its own.
func (f Depth) own(m *crawldb.Meta) (int, bool) {
	if n, ok := number(m, SeedMaxDepthKey); ok && (n > 0 || f.NutchCompat) {
		return n, true
	}
	n, ok := number(m, MaxDepthKey)
	return n, ok && (n > 0 || f.NutchCompat)
}

// limit returns the maximum that applies to a page, and whether it differs from
// that of the filter.
func (f Depth) limit(d *crawldb.Datum) (int, bool) {
	n, own := f.own(&d.Meta)
	if !own {
		n = f.max()
	}
	if f.Override == nil {
		return n, own
	}
	if f.Override.MatchString(d.URL) {
		if f.OverrideMax == 0 {
			return defaultOverrideDepth, true
		}
		return f.OverrideMax, true
	}
	if f.NutchCompat {
		return f.max(), false
	}
	return n, own
}

// number reads a decimal number of 32 bits.
func number(m *crawldb.Meta, name string) (int, bool) {
	v, ok := m.Get(name)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(v, 10, 32)
	return int(n), err == nil
}

func setNumber(m *crawldb.Meta, name string, n int) { m.Set(name, strconv.Itoa(n)) }

// Injected sets the depth to 1.
func (f Depth) Injected(d *crawldb.Datum) {
	setNumber(&d.Meta, DepthKey, 1)
	if f.NutchCompat {
		f.store(d)
	}
}

// store keeps the maximum in the record even if it is that of the filter, which
// may change later.
func (f Depth) store(d *crawldb.Datum) {
	n, own := f.own(&d.Meta)
	if !own {
		n = f.max()
	}
	setNumber(&d.Meta, MaxDepthKey, n)
}

// Discovered leaves the depth to Updated.
func (f Depth) Discovered(d *crawldb.Datum) {
	if !f.NutchCompat {
		return
	}
	f.store(d)
	if _, ok := number(&d.Meta, DepthKey); !ok {
		setNumber(&d.Meta, DepthKey, 1)
	}
}

// Priority multiplies by the remaining depth, so that the nearest come first:
// by the maximum for a seed, by one for a page at the maximum.
func (f Depth) Priority(d *crawldb.Datum, priority float32) float32 {
	if f.BreadthFirst {
		priority = 1
	}
	depth, ok := number(&d.Meta, DepthKey)
	if f.NutchCompat {
		most, own := f.own(&d.Meta)
		if !own {
			most = f.max()
		}
		left := int32(0)
		if ok {
			left = int32(most) - int32(depth)
		}
		return finite(finite(priority) * float32(1+left))
	}
	if !ok {
		depth = 1
	}
	most, _ := f.limit(d)
	return finite(finite(priority) * float32(1+max(0, most-max(depth, 1))))
}

// Distribute sets the depth of each link, and drops all links at the maximum.
func (f Depth) Distribute(p Page, links []Link) float64 {
	depth, ok := number(&p.Datum.Meta, DepthKey)
	most, own := f.limit(p.Datum)
	redirect := p.Content == nil
	if redirect && f.NutchCompat { // the metadata of the page are copied
		most, own = f.own(&p.Datum.Meta)
	}
	if !ok {
		depth = 1
	}
	for i := range links {
		l := &links[i]
		switch {
		case l.Drop:
		case redirect && (ok || !f.NutchCompat):
			f.tell(l, depth, most, own)
		case redirect:
		case !ok && f.NutchCompat, depth >= most:
			l.Drop = true
		default:
			f.tell(l, depth+1, most, own)
		}
	}
	return 0
}

func (f Depth) tell(l *Link, depth, most int, own bool) {
	setNumber(&l.Meta, DepthKey, depth)
	if own {
		setNumber(&l.Meta, MaxDepthKey, most)
	}
}

// Updated keeps the least depth known. A new page takes its maximum from the
// link with the least depth, the largest if there are several.
func (f Depth) Updated(old, d *crawldb.Datum, flow Flow) {
	depth, known := 0, false
	if old != nil {
		depth, known = number(&old.Meta, DepthKey)
	}
	if !known && f.NutchCompat {
		depth, known = defaultMaxDepth, true
	}
	best, most, own := 0, 0, false
	for i := range flow.In {
		m := &flow.In[i].Meta
		n, ok := number(m, DepthKey)
		if !ok {
			continue
		}
		if !known || n < depth {
			depth, known = n, true
		}
		top, has := f.own(m)
		if !has {
			top = f.max()
		}
		if best == 0 || n < best || n == best && top > most {
			best, most, own = n, top, has
		}
	}
	if known {
		setNumber(&d.Meta, DepthKey, depth)
	}
	if old != nil || f.NutchCompat || best == 0 {
		return
	}
	if own {
		setNumber(&d.Meta, MaxDepthKey, most)
	} else {
		d.Meta.Delete(MaxDepthKey)
	}
}
