package nutchconf

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
)

// plugins are the active plugins of Nutch.
type plugins map[string]bool

func (p *plugins) has(id string) bool { return (*p)[id] }

type stockPlugin struct{ id, why string }

// stock lists the plugins of Nutch, and says why one has no counterpart; empty if it has
// one. Plugins that only serve others are left out.
var stock = [...]stockPlugin{
	{"creativecommons", noParseFilter}, {"exchange-jexl", noIndexing}, {"feed", "there is no parser for feeds; parse.Mux takes one"},
	{"headings", noParseFilter}, {"index-anchor", ""}, {"index-arbitrary", noIndexing}, {"index-basic", ""}, {"index-geoip", noIndexing},
	{"index-jexl-filter", noIndexing}, {"index-links", noIndexing}, {"index-metadata", noIndexing}, {"index-more", noIndexing},
	{"index-replace", noIndexing}, {"index-static", noIndexing},
	{"indexer-cloudsearch", noWriter}, {"indexer-csv", noWriter}, {"indexer-dummy", noWriter}, {"indexer-elastic", noWriter},
	{"indexer-kafka", noWriter}, {"indexer-opensearch-1x", noWriter}, {"indexer-rabbit", noWriter}, {"indexer-solr", noWriter},
	{"language-identifier", noParseFilter}, {"microformats-reltag", noParseFilter}, {"mimetype-filter", noIndexing},
	{"parse-ext", "no external program is run; parse.Mux takes other parsers"}, {"parse-html", ""}, {"parse-js", "scripts are not read for links"},
	{"parse-metatags", ""}, {"parse-tika", ""}, {"parse-zip", "archives are not read"},
	{"parsefilter-debug", noParseFilter}, {"parsefilter-naivebayes", noParseFilter}, {"parsefilter-regex", noParseFilter},
	{"protocol-file", "give recrawl.Options.Protocol a fileproto.Client of the directory that may be read"},
	{"protocol-foo", "it only serves Nutch's tests"}, {"protocol-ftp", "FTP is not supported; protocol.Mux takes a protocol for it"},
	{"protocol-htmlunit", noBrowser}, {"protocol-http", ""}, {"protocol-httpclient", ""}, {"protocol-interactiveselenium", noBrowser},
	{"protocol-okhttp", ""}, {"protocol-selenium", noBrowser},
	{"publish-rabbitmq", "recrawl.Options.OnPage and fetch.Options.OnVisit are called for every page"},
	{"scoring-depth", ""}, {"scoring-link", ""}, {"scoring-metadata", ""}, {"scoring-opic", ""}, {"scoring-orphan", ""},
	{"scoring-similarity", "there is no scoring by similarity"}, {"subcollection", noIndexing}, {"tld", noIndexing},
	{"urlfilter-automaton", ""}, {"urlfilter-domain", ""}, {"urlfilter-domaindenylist", ""}, {"urlfilter-fast", ""},
	{"urlfilter-ignoreexempt", ""}, {"urlfilter-prefix", ""}, {"urlfilter-regex", ""}, {"urlfilter-suffix", ""}, {"urlfilter-validator", ""},
	{"urlmeta", ""},
	{"urlnormalizer-ajax", ""}, {"urlnormalizer-basic", ""}, {"urlnormalizer-host", ""}, {"urlnormalizer-pass", ""},
	{"urlnormalizer-protocol", ""}, {"urlnormalizer-querystring", ""}, {"urlnormalizer-regex", ""}, {"urlnormalizer-slash", ""},
}

const (
	noIndexing    = "there are no Nutch indexing filters; index.Options.Filter sees each document"
	noWriter      = "documents go to an index.Writer; recrawl index writes JSON lines"
	noParseFilter = "there are no parse filters; wrap recrawl.Options.Parser"
)

// plugin is a plugin, and the class that stands for it in an order.
type plugin struct{ id, class string }

var (
	filterClasses = [...]plugin{
		{"urlfilter-automaton", "AutomatonURLFilter"}, {"urlfilter-domain", "DomainURLFilter"},
		{"urlfilter-domaindenylist", "DomainDenylistURLFilter"}, {"urlfilter-fast", "FastURLFilter"},
		{"urlfilter-ignoreexempt", "ExemptionUrlFilter"}, {"urlfilter-prefix", "PrefixURLFilter"},
		{"urlfilter-regex", "RegexURLFilter"}, {"urlfilter-suffix", "SuffixURLFilter"}, {"urlfilter-validator", "UrlValidator"},
	}
	normalizerClasses = [...]plugin{
		{"urlnormalizer-ajax", "AjaxURLNormalizer"}, {"urlnormalizer-basic", "BasicURLNormalizer"},
		{"urlnormalizer-host", "HostURLNormalizer"}, {"urlnormalizer-pass", "PassURLNormalizer"},
		{"urlnormalizer-protocol", "ProtocolURLNormalizer"}, {"urlnormalizer-querystring", "QuerystringURLNormalizer"},
		{"urlnormalizer-regex", "RegexURLNormalizer"}, {"urlnormalizer-slash", "SlashURLNormalizer"},
	}
	scoringClasses = [...]plugin{
		{"scoring-depth", "DepthScoringFilter"}, {"scoring-link", "LinkAnalysisScoringFilter"},
		{"scoring-metadata", "MetadataScoringFilter"}, {"scoring-opic", "OPICScoringFilter"},
		{"scoring-orphan", "OrphanScoringFilter"}, {"urlmeta", "URLMetaScoringFilter"},
	}
)

// plugins returns the active plugins: those whose whole name matches plugin.includes and
// not plugin.excludes.
func (b *builder) plugins() *plugins {
	p := plugins{}
	in, out := b.whole("plugin.includes"), b.whole("plugin.excludes")
	missing := ""
	for _, s := range stock {
		if in == nil || !in.MatchString(s.id) || out != nil && out.MatchString(s.id) {
			continue
		}
		p[s.id] = true
		if s.why != "" {
			if missing != "" {
				missing += "; "
			}
			missing += s.id + " has no counterpart: " + s.why
		}
	}
	if missing != "" {
		b.note("plugin.includes", missing)
	}
	b.strangers()
	if !p["protocol-http"] && !p["protocol-httpclient"] && !p["protocol-okhttp"] {
		b.note("plugin.includes", "no plugin for http is active; recrawl.Options.HTTP is set anyway")
	}
	return &p
}

// strangers looks for unknown plugins in plugin.includes. An unknown filter is an error:
// without it, the crawl would include everything that the filter keeps out.
func (b *builder) strangers() {
	re, err := syntax.Parse(b.word("plugin.includes"), syntax.Perl)
	if err != nil {
		return // already reported
	}
	var names []string
	branches := []*syntax.Regexp{re}
	if re.Op == syntax.OpAlternate {
		branches = re.Sub
	}
	for _, branch := range branches { // one like index-.* names no plugin
		some, ok := words(branch)
		if ok {
			names = append(names, some...)
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if name == "" || name == "nutch-extensionpoints" || strings.HasPrefix(name, "lib-") ||
			slices.ContainsFunc(stock[:], func(s stockPlugin) bool { return s.id == name }) {
			continue
		}
		text, least := fmt.Sprintf("unknown plugin %q", name), 4
		like := ""
		for _, s := range stock {
			if d := distance(name, s.id, least); d < least {
				like, least = "; did you mean "+s.id+"?", d
			}
		}
		if strings.Contains(name, "urlfilter") {
			b.fail("plugin.includes", "%s%s", text, like)
		} else {
			b.note("plugin.includes", text+like)
		}
	}
}

// maxWords bounds what words lists.
const maxWords = 1000

// words lists the strings that a regular expression matches; false if there are too many.
func words(re *syntax.Regexp) ([]string, bool) {
	switch re.Op {
	case syntax.OpLiteral:
		return []string{string(re.Rune)}, re.Flags&syntax.FoldCase == 0
	case syntax.OpEmptyMatch, syntax.OpBeginText, syntax.OpEndText, syntax.OpBeginLine, syntax.OpEndLine:
		return []string{""}, true
	case syntax.OpCapture:
		return words(re.Sub[0])
	case syntax.OpQuest:
		all, ok := words(re.Sub[0])
		return append(all, ""), ok
	case syntax.OpCharClass:
		var all []string
		for i := 0; i+1 < len(re.Rune); i += 2 {
			for r := re.Rune[i]; r <= re.Rune[i+1]; r++ {
				if all = append(all, string(r)); len(all) > maxWords {
					return nil, false
				}
			}
		}
		return all, true
	case syntax.OpAlternate:
		var all []string
		for _, sub := range re.Sub {
			some, ok := words(sub)
			if all = append(all, some...); !ok || len(all) > maxWords {
				return nil, false
			}
		}
		return all, true
	case syntax.OpConcat:
		all := []string{""}
		for _, sub := range re.Sub {
			some, ok := words(sub)
			if !ok || len(all)*len(some) > maxWords {
				return nil, false
			}
			var longer []string
			for _, head := range all {
				for _, tail := range some {
					longer = append(longer, head+tail)
				}
			}
			all = longer
		}
		return all, true
	}
	return nil, false
}

// pattern compiles a regular expression; nil if the property has no value.
func (b *builder) pattern(name string) *regexp.Regexp {
	s := b.word(name)
	if s == "" {
		return nil
	}
	re, err := regexp.Compile(s)
	if err != nil {
		b.fail(name, "%w", err)
	}
	return re
}

// whole compiles a regular expression that must match the whole text, as in Java's
// matches; nil if the property has no value.
func (b *builder) whole(name string) *regexp.Regexp {
	s := b.word(name)
	if b.pattern(name) == nil {
		return nil
	}
	re, err := regexp.Compile(`\A(?:` + s + `)\z`)
	if err != nil {
		b.fail(name, "%w", err)
	}
	return re
}

// ordered returns the active plugins of a list, in the order of their classes in a
// property. Plugins that it does not name follow in order of their names (in Nutch the
// order is undefined), unless onlyNamed is set and there is an order: then they are left
// out.
func (b *builder) ordered(name string, list []plugin, active *plugins, onlyNamed bool) []string {
	ids := b.named(name, list, active)
	named := len(b.words(name)) > 0
	for _, p := range list {
		if !active.has(p.id) || slices.Contains(ids, p.id) {
			continue
		}
		if p.id == "urlfilter-ignoreexempt" {
			continue // not part of the chain
		}
		if onlyNamed && named {
			b.note(name, p.class+" is not named, and so not used, as in Nutch")
			continue
		}
		ids = append(ids, p.id)
	}
	return ids
}

// named returns the active plugins of a list whose classes a property names.
func (b *builder) named(name string, list []plugin, active *plugins) []string {
	var ids []string
	for _, c := range b.words(name) {
		i := slices.IndexFunc(list, func(p plugin) bool { return p.class == class(c) })
		switch {
		case i < 0:
			b.fail(name, "unknown class %s", c)
		case !active.has(list[i].id):
			b.note(name, c+" is ignored: "+list[i].id+" is not in plugin.includes")
		case !slices.Contains(ids, list[i].id):
			ids = append(ids, list[i].id)
		}
	}
	return ids
}

// readFile reads a file that a property names.
func readFile[T any](b *builder, name, path string, parse func(io.Reader) (T, error)) (v T) {
	f, err := os.Open(path)
	if err != nil {
		b.fail(name, "%w", err)
		return v
	}
	defer f.Close()
	if v, err = parse(f); err != nil {
		b.fail(name, "%w", err)
	}
	return v
}
