package nutchconf

import (
	"cmp"
	"iter"
	"strconv"
	"strings"
)

// Property is one property of Nutch's configuration, and its effect here.
type Property struct {
	// Name is the name of the property. A part in angle brackets stands for any
	// word: "urlnormalizer.order.<scope>".
	Name string
	// Default is the value in Nutch's nutch-default.xml; empty if it has none there.
	Default string
	// Code is the value that Nutch's code falls back to where nutch-default.xml does not
	// have the property, if it is not Default; in parentheses if it cannot be written as
	// a value.
	Code string
	// Support says whether the property is honoured.
	Support Support
	// Field names the Go field that the property sets, and Flag the flag of the command
	// line, after the verb if only that verb has it. Several are separated by ", "; a
	// second field of the same struct is given by its name alone.
	Field, Flag string
	// Only is the value that describes what happens here anyway: a property set to it
	// is as good as honoured.
	Only string
	// Note says what differs, or why the property is not honoured. It may refer to
	// another row: "see NAME".
	Note string
}

// Support says whether a property is honoured.
type Support uint8

const (
	NotHonoured Support = iota // it has no effect
	Partly                     // some of its values have an effect
	Honoured                   // it has the effect it has in Nutch
)

// String returns "no", "partly" or "yes".
func (s Support) String() string {
	switch s {
	case Honoured:
		return "yes"
	case Partly:
		return "partly"
	}
	return "no"
}

// group is a section of the table.
type group struct {
	title string
	rows  []Property
}

// groups yields the sections of the table.
func groups(yield func(*group) bool) {
	for _, t := range [][]group{fetchProperties[:], parseProperties[:], dbProperties[:], ruleProperties[:], indexProperties[:]} {
		for i := range t {
			if !yield(&t[i]) {
				return
			}
		}
	}
}

// Properties yields every property that Nutch knows, with the title of its section in
// the table. Properties of Hadoop itself are not among them.
func Properties() iter.Seq2[string, Property] {
	return func(yield func(string, Property) bool) {
		for g := range groups {
			for i := range g.rows {
				if !yield(g.title, g.rows[i]) {
					return
				}
			}
		}
	}
}

// row finds a property in the table; nil if it is not in it.
func row(name string) *Property {
	for g := range groups {
		for i := range g.rows {
			if p := &g.rows[i]; p.Name == name || p.matches(name) {
				return p
			}
		}
	}
	return nil
}

// matches reports whether the name is one of those that the row stands for.
func (p *Property) matches(name string) bool {
	head, rest, ok := strings.Cut(p.Name, "<")
	if !ok {
		return false
	}
	_, tail, _ := strings.Cut(rest, ">")
	word, ok := strings.CutPrefix(name, head)
	if ok {
		word, ok = strings.CutSuffix(word, tail)
	}
	return ok && word != "" && !strings.Contains(word, ".")
}

// code returns the value that Nutch uses if the property has none; empty if it cannot
// be written as a value. Its code has the default of nutch-default.xml, unless Code says
// otherwise: the file of an older Nutch lacks newer properties.
func (p *Property) code() string {
	if strings.HasPrefix(p.Code, "(") {
		return p.Default
	}
	return cmp.Or(p.Code, p.Default)
}

// only reports whether a value describes what happens anyway: it is Only, whatever
// its case, or a number below zero as Only is.
func (p *Property) only(value string) bool {
	value = strings.TrimSpace(value)
	if strings.HasPrefix(p.Only, "-") {
		if n, err := strconv.Atoi(value); err == nil {
			return n < 0
		}
	}
	return p.Only != "" && strings.EqualFold(value, p.Only)
}

// Why returns the note of a property, or of the one that its note refers to.
func (p Property) Why() string { return (&p).why() }

func (p *Property) why() string {
	for range 3 {
		name, ok := strings.CutPrefix(p.Note, "see ")
		if !ok {
			break
		}
		q := row(name)
		if q == nil {
			break
		}
		p = q
	}
	return p.Note
}

// renamed maps names that older versions of Nutch had to those of today.
var renamed = map[string]string{
	"http.robot.rules.whitelist":     "http.robot.rules.allowlist",
	"urlfilter.domainblacklist.file": "urlfilter.domaindenylist.file",
	"generate.max.per.host":          "generate.max.count",
	"fetcher.threads.per.host":       "fetcher.threads.per.queue",
	"fetcher.threads.per.host.by.ip": "fetcher.queue.mode",
	"db.default.fetch.interval":      "db.fetch.interval.default",
	"db.max.inlinks":                 "linkdb.max.inlinks",
	"db.max.anchor.length":           "linkdb.max.anchor.length",
}

// foreign lists prefixes of properties that are not Nutch's, or belong to parts of it
// outside the table, and what to say about them.
var foreign = [...]struct{ prefix, why string }{
	{"mapreduce.", noHadoop}, {"mapred.", noHadoop}, {"hadoop.", noHadoop}, {"fs.", noHadoop}, {"dfs.", noHadoop},
	{"yarn.", noHadoop}, {"io.", noHadoop}, {"ipc.", noHadoop}, {"net.topology.", noHadoop}, {"ha.", noHadoop},
	{"tfile.", noHadoop}, {"s3.", noHadoop}, {"file.stream-buffer-size", noHadoop}, {"map.sort.", noHadoop},
	{"selenium.", noBrowser}, {"libselenium.", noBrowser}, {"interactiveselenium.", noBrowser}, {"page.load.delay", noBrowser},
	{"webdriver.", noBrowser}, {"htmlunit.", noBrowser}, {"take.screenshot", noBrowser}, {"screenshot.location", noBrowser},
	{"index.geoip.", "there are no Nutch indexing filters; index.Options.Filter sees each document"},
	{"index.arbitrary.", "there are no Nutch indexing filters; index.Options.Filter sees each document"},
	{"solr.", "documents go to an index.Writer; recrawl index writes JSON lines"},
	{"elastic.", "documents go to an index.Writer; recrawl index writes JSON lines"},
	{"indexer.", "documents go to an index.Writer; recrawl index writes JSON lines"},
	{"any23.", "there is no such parse filter; wrap recrawl.Options.Parser"},
	{"warc.", "recrawl readseg writes what a segment holds"},
	{"commoncrawl.", "recrawl readseg writes what a segment holds"},
	{"nutch.", "it belongs to a part of Nutch that has no counterpart here"},
	{"java.", noHadoop}, {"user.", noHadoop},
}

const (
	noHadoop  = "there is no Hadoop job here"
	noBrowser = "there is no browser; protocol.Mux takes a protocol that drives one"
)

// nearest returns the name in the table that is spelled most like the given one; empty
// if none is close.
func nearest(name string) string {
	best, least := "", 4
	for g := range groups {
		for i := range g.rows {
			if d := distance(name, g.rows[i].Name, least); d < least {
				best, least = g.rows[i].Name, d
			}
		}
	}
	return best
}

// distance returns how many bytes must be added, removed or changed to turn a into b,
// or at least limit if there are not fewer.
func distance(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit || len(a) > 200 {
		return limit
	}
	line := make([]int, len(b)+1)
	for j := range line {
		line[j] = j
	}
	for i := range len(a) {
		diagonal := line[0]
		line[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = line[j+1]
			line[j+1] = min(cost, line[j]+1, line[j+1]+1)
		}
	}
	return line[len(b)]
}
