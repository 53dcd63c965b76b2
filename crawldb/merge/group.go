package merge

import (
	"cmp"
	"encoding/binary"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/internal/extsort"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/segment"
)

// origin identifies the records of one visit: the source, and the URL they have
// there.
type origin struct {
	source uint32
	url    string
}

// compare orders origins by their age: sources are sorted by name, and the name
// of a segment is when it was generated.
func (a origin) compare(b origin) int {
	return cmp.Or(cmp.Compare(a.source, b.source), cmp.Compare(b.url, a.url))
}

// merged is what a merge keeps of one URL.
type merged struct {
	visit   *segment.Visit
	listed  *crawldb.Datum
	content *page.Content
	text    *segment.Text
	data    *segment.Data
	parse   *segment.Parse
}

// group takes the records of one URL, in the order of their kinds, and within a
// kind the oldest source first.
type group struct {
	m    *segmentMerger
	key  []byte
	some bool

	p merged
	// parsed says that the visit has a Parse, although it may not be in p.
	parsed bool
	// from says where the contents of p come from, by kind; from[kindVisit] is
	// the visit that all of a page belongs to.
	from [kindParse + 1]origin
}

func (g *group) begin(key []byte) {
	*g = group{m: g.m, key: append(g.key[:0], key...), some: true}
}

func (g *group) add(value []byte) error {
	if len(value) < 5 {
		return errSorted
	}
	kind := value[0]
	o := origin{source: binary.BigEndian.Uint32(value[1:])}
	url, rest := extsort.CutPart(value[5:])
	o.url = string(url)
	var err error
	switch kind {
	case kindVisit:
		err = g.visit(o, rest)
	case kindListed:
		err = g.listed(o, rest)
	case kindContent:
		err = take(g, kind, o, rest, &g.p.content)
	case kindText:
		err = take(g, kind, o, rest, &g.p.text)
	case kindData:
		err = take(g, kind, o, rest, &g.p.data)
	case kindParse:
		err = g.parse(o, rest)
	default:
		err = errSorted
	}
	return err
}

// final reports whether a visit says what the page is, and not only that it
// could not be seen or is unchanged.
func final(v *segment.Visit) bool {
	return v.Outcome.Code != protocol.NotModified && !v.Outcome.Code.Transient()
}

func (g *group) visit(o origin, rec []byte) error {
	v, err := segment.DecodeRecord[segment.Visit](rec)
	if err != nil {
		return err
	}
	best := g.p.visit
	drop := g.m.o.NutchCompat && !final(&v)
	if drop || best != nil {
		g.m.report.Superseded++
	}
	if drop || best != nil && !g.newer(&v, best, o) {
		return nil
	}
	g.p.visit, g.from[kindVisit] = &v, o
	return nil
}

// newer reports whether a visit wins over the best so far.
func (g *group) newer(v, best *segment.Visit, o origin) bool {
	byName := o.compare(g.from[kindVisit])
	if g.m.o.NutchCompat {
		return byName > 0
	}
	if f := final(v); f != final(best) {
		return f
	}
	return cmp.Or(v.Time.Compare(best.Time), byName) > 0
}

// take keeps a record if it belongs to the visit that won; without a visit, or
// for Nutch, if it is the newest so far.
func take[T segment.Record](g *group, kind byte, o origin, rec []byte, p **T) error {
	if !g.m.o.NutchCompat && g.p.visit != nil && o != g.from[kindVisit] || *p != nil && o.compare(g.from[kind]) <= 0 {
		return nil
	}
	r, err := segment.DecodeRecord[T](rec)
	if err != nil {
		return err
	}
	*p, g.from[kind] = &r, o
	return nil
}

// listed keeps the record of the fetch list that led to the visit, or the newest.
func (g *group) listed(o origin, rec []byte) error {
	led := func(o origin) bool { return !g.m.o.NutchCompat && g.p.visit != nil && o == g.from[kindVisit] }
	has := g.from[kindListed]
	if g.p.listed != nil && (led(has) || !led(o) && o.compare(has) <= 0) {
		return nil
	}
	d, err := segment.DecodeRecord[crawldb.Datum](rec)
	if err != nil {
		return err
	}
	g.p.listed, g.from[kindListed] = &d, o
	return nil
}

// parse keeps what a page tells the crawl db. For Nutch that excludes what a
// redirect gives its target: it is in crawl_fetch there, and a merge drops it.
func (g *group) parse(o origin, rec []byte) error {
	was, from := g.p.parse, g.from[kindParse]
	if err := take(g, kindParse, o, rec, &g.p.parse); err != nil {
		return err
	}
	g.parsed = g.parsed || o == g.from[kindVisit]
	if p := g.p.parse; p != was && g.m.o.NutchCompat && p.Signature == nil && p.Error == "" {
		g.p.parse, g.from[kindParse] = was, from
	}
	return nil
}

// page returns what is kept of the URL.
func (g *group) page() *merged {
	p := g.p
	if p.visit == nil && g.m.parts[segment.FetchPart] {
		return &merged{listed: p.listed}
	}
	if p.parse != nil && g.m.o.Accept != nil {
		links := p.parse.Links[:0]
		for _, l := range p.parse.Links {
			var ok bool
			if l.URL, ok = g.m.o.Accept(l.URL); ok {
				links = append(links, l)
			}
		}
		p.parse.Links = links
	}
	return &p
}
