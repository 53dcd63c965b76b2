package urlfilter

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/recrawl/recrawl/internal/javaregex"
	"github.com/recrawl/recrawl/internal/javaurl"
)

// fastFilter rejects URLs by rules that are indexed by host and domain.
type fastFilter struct {
	o       FastOptions
	hosts   map[string][]fastRule
	domains map[string][]fastRule // except "."
	all     []fastRule
	rules   int
	skipped []error // what NutchCompat has skipped
}

// FastOptions limit what the filter of [ParseFast] accepts. Lengths are in UTF-16 units as in
// Nutch, which equal bytes for a URL in normal form.
type FastOptions struct {
	// MaxLength, MaxPath and MaxQuery limit the length of a URL, its path and
	// its query. Zero or less means no limit. (Nutch:
	// urlfilter.fast.url.max.length, urlfilter.fast.url.path.max.length,
	// urlfilter.fast.url.query.max.length.)
	MaxLength, MaxPath, MaxQuery int
	// NutchCompat skips lines that are no rule, text after a rule, and rules
	// before the first Host or Domain, all of which are errors without it;
	// accepts any word that begins with one of the four keywords ("Hosts");
	// takes hosts as spelled, so that a capital letter never matches; and
	// rejects URLs that java.net.URL refuses.
	NutchCompat bool
}

type fastRule struct {
	query bool                  // match path and query
	match func(url string) bool // nil: all
	line  int
	text  string
}

// ParseFast reads rules that reject URLs and are indexed by host and domain, so that a URL takes
// about the same time however many hosts and domains there are. The format is that of Nutch's
// fast-urlfilter.txt:
//
//	Host www.example.org          the rules that follow are for this host
//	  DenyPath /cgi-bin/          reject if the path matches
//	  DenyPathQuery [?&]sid=      reject if path and query match
//	Domain example.com            for this host and all below it
//	  DenyPath .*                 reject all
//	Domain .                      for all
//	# a comment, which may follow a rule
//
// Patterns are those of [ParseRegex] and contain no blank and no "#". What no rule
// rejects is accepted; a string that is no URL is rejected. An error is a [*SyntaxError]. (Nutch:
// urlfilter-fast, urlfilter.fast.file.)
func ParseFast(r io.Reader, o FastOptions) (Filter, error) {
	f := &fastFilter{o: o, hosts: map[string][]fastRule{}, domains: map[string][]fastRule{}}
	var group map[string][]fastRule
	name := ""
	compile := compileOnce(javaregex.Compile)
	err := readLines(r, func(n int, line string) error {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			return nil
		}
		if o.NutchCompat {
			for _, kind := range [...]string{"Host", "Domain", "DenyPathQuery", "DenyPath"} {
				if strings.HasPrefix(words[0], kind) {
					words[0] = kind
					break
				}
			}
		}
		rule, err := f.readLine(words, &group, &name)
		if err == nil && rule != nil && !rule.all() {
			// An error even under NutchCompat: Nutch may be able to compile the
			// pattern.
			if rule.match, err = compile(words[1]); err != nil {
				return err
			}
		}
		if err != nil {
			group, name = keepGroup(words, group, name)
			if o.NutchCompat {
				f.skipped = append(f.skipped, &SyntaxError{Line: n, Err: err})
				return nil
			}
			return err
		}
		if rule != nil {
			rule.line, rule.text = n, strings.Join(words, " ")
			group[name] = append(group[name], *rule)
			f.rules++
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	f.all = f.domains["."]
	delete(f.domains, ".")
	return f, nil
}

// keepGroup drops the current group before a bad Host or Domain line: the rules
// after it are not for that group.
func keepGroup(words []string, group map[string][]fastRule, name string) (map[string][]fastRule, string) {
	if words[0] == "Host" || words[0] == "Domain" {
		return nil, ""
	}
	return group, name
}

// readLine returns a rule, or changes the current group.
func (f *fastFilter) readLine(words []string, group *map[string][]fastRule, name *string) (*fastRule, error) {
	kind := words[0]
	switch kind {
	case "Host", "Domain", "DenyPath", "DenyPathQuery":
	default:
		return nil, fmt.Errorf("%q is not one of Host, Domain, DenyPath and DenyPathQuery", kind)
	}
	if len(words) != 2 && !(f.o.NutchCompat && len(words) > 2) {
		return nil, fmt.Errorf("%s takes one word, not %d", kind, len(words)-1)
	}
	word := words[1]
	switch kind {
	case "Host", "Domain":
		if !f.o.NutchCompat && !(kind == "Domain" && word == ".") {
			host, err := normalHost(word)
			if err != nil {
				return nil, fmt.Errorf("%q is not a host", word)
			}
			word = host
		}
		*group, *name = f.hosts, word
		if kind == "Domain" {
			*group = f.domains
		}
		return nil, nil
	}
	if *group == nil {
		return nil, errors.New("a rule before any Host or Domain")
	}
	return &fastRule{query: kind == "DenyPathQuery", text: word}, nil
}

// all reports whether a rule whose text is the pattern rejects everything.
func (r *fastRule) all() bool { return r.text == ".*" || r.text == ".?" }

// Accept reports whether the string is a URL, is not too long, and no rule
// rejects it.
func (f *fastFilter) Accept(url string) bool {
	rule, bad := f.decide(url)
	return rule == nil && bad == ""
}

// Explain returns the rule that rejects the URL, or what is wrong with it.
func (f *fastFilter) Explain(url string) string {
	rule, bad := f.decide(url)
	if rule == nil {
		return bad
	}
	return ruleAt(rule.line, rule.text)
}

func (f *fastFilter) decide(url string) (rule *fastRule, bad string) {
	if longer(url, f.o.MaxLength) {
		return nil, "the URL is too long"
	}
	host, path, file, ok := f.split(url)
	switch {
	case !ok:
		return nil, "not a URL"
	case longer(path, f.o.MaxPath):
		return nil, "the path is too long"
	case len(file) > len(path) && longer(file[len(path)+1:], f.o.MaxQuery):
		return nil, "the query is too long"
	}
	rule = rejects(f.hosts[host], path, file)
	for domain, more := host, true; rule == nil && more && len(f.domains) > 0; {
		rule = rejects(f.domains[domain], path, file)
		_, domain, more = strings.Cut(domain, ".")
	}
	if rule == nil {
		rule = rejects(f.all, path, file)
	}
	return rule, ""
}

func rejects(rules []fastRule, path, file string) *fastRule {
	for i := range rules {
		r := &rules[i]
		text := path
		if r.query {
			text = file
		}
		if r.match == nil || r.match(text) {
			return r
		}
	}
	return nil
}

// split returns the host, the path, and the path with the query.
func (f *fastFilter) split(url string) (host, path, file string, ok bool) {
	if f.o.NutchCompat {
		u, err := javaurl.Parse(url, javaurl.Handled)
		file = u.Path
		if u.HasQuery {
			file += "?" + u.Query
		}
		return u.Host, u.Path, file, err == nil
	}
	path, ok = pathOf(url)
	if !ok {
		return "", "", "", false
	}
	url, _, _ = strings.Cut(url, "#")
	start := len(url)
	if i := strings.IndexByte(url, '?'); i >= 0 {
		start = i
	}
	return hostOf(url), path, url[start-len(path):], true
}

// longer reports whether s has more than limit UTF-16 units; never without a
// limit.
func longer(s string, limit int) bool {
	if limit <= 0 || len(s) <= limit {
		return false
	}
	n := 0
	for _, r := range s {
		n++
		if r > 0xFFFF && utf8.ValidRune(r) {
			n++
		}
	}
	return n > limit
}

// String describes the filter.
func (f *fastFilter) String() string { return fmt.Sprintf("fast filter of %d rules", f.rules) }
