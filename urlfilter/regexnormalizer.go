package urlfilter

import (
	"bufio"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// RegexRule replaces every match of a pattern of java.util.regex. In the
// substitution "$1" or "${name}" stands for what a group matched, and a backslash
// makes the next character an ordinary one, as in Java.
type RegexRule struct{ Pattern, Substitution string }

// NormalizerOptions are common to the normalizers that have rules.
type NormalizerOptions struct {
	// NutchCompat makes a normalizer do exactly what Nutch's does, faults
	// included. Each type says what that changes.
	NutchCompat bool
}

// RegexNormalizer rewrites URLs by rules, in order. The zero value changes
// nothing. (Nutch: urlnormalizer-regex.)
//
// A rule may create matches for earlier ones, so the rules are applied until
// nothing changes any more; a URL that does not settle within 16 rounds, or of
// which nothing is left, is refused. Under NutchCompat they are applied once,
// as in Nutch, and the Loops of [Rules] does the rest.
//
// Patterns take time proportional to the URL. A pattern that needs look-around,
// a back-reference or possessive repetition is an error, never silently left
// out; only "(?<!:)/{2,}", which Nutch ships, is recognized and matched by
// hand. Two things differ from Java: "$" is the end of the URL and not also the
// place before a line end there; and a pattern that can match the empty string,
// and looks at what precedes it with "^", "\b" or "\B", does not match right
// after another match.
type RegexNormalizer struct {
	o     NormalizerOptions
	rules []normalizerRule
}

type normalizerRule struct {
	line    int // zero if the rule is not from a file
	rule    RegexRule
	may     func(url string) bool // false if the pattern cannot match; nil if unknown
	matches func(url string) [][]int
	parts   []templatePart
}

// maxRounds limits how often rules are applied to a URL that they keep
// changing.
const maxRounds = 16

var errUnsettled = fmt.Errorf("the rules still change it after %d rounds", maxRounds)
var errNothingLeft = errors.New("the rules leave nothing of it")

// DefaultRegexRules returns the rules of Nutch's regex-normalize.xml, which
// remove session ids, fragments, and superfluous "?", "&", "." and slashes.
func DefaultRegexRules() []RegexRule {
	return []RegexRule{
		{sessionPattern, "$4"},
		{`#.*?(\?|&|$)`, "$1"},
		{`\?&`, `\?`},
		{`&{2,}`, "&"},
		{`[\?&\.]$`, ""},
		{`^file://+`, "file:/"},
		{slashPattern, "/"},
	}
}

// sessionPattern matches a session id up to what ends it.
const sessionPattern = `(?i)(;?\b_?(l|j|bv_)?(sid|phpsessid|sessionid)=.*?)(\?|&|#|$)`

// slashPattern matches two or more slashes that no colon precedes.
const slashPattern = `(?<!:)/{2,}`

// NewRegexNormalizer makes a normalizer of rules. An error names the rule by its
// number, from 1.
func NewRegexNormalizer(o NormalizerOptions, rules ...RegexRule) (*RegexNormalizer, error) {
	n := &RegexNormalizer{o: o}
	for i, r := range rules {
		c, err := compileRule(r)
		if err != nil {
			return nil, fmt.Errorf("urlfilter: rule %d: %w", i+1, err)
		}
		n.rules = append(n.rules, c)
	}
	return n, nil
}

// ParseRegexNormalizer reads Nutch's regex-normalize.xml:
//
//	<regex-normalize>
//	  <regex><pattern>#.*</pattern><substitution></substitution></regex>
//	</regex-normalize>
//
// Blanks and line ends in a pattern count. An error is a [*SyntaxError] that names
// the line and the number of the rule. (Nutch: urlnormalizer.regex.file,
// urlnormalizer.regex.rules.)
func ParseRegexNormalizer(r io.Reader, o NormalizerOptions) (*RegexNormalizer, error) {
	n := &RegexNormalizer{o: o}
	text := bufio.NewReader(r)
	if bom, _ := text.Peek(len("\ufeff")); string(bom) == "\ufeff" {
		text.Discard(len(bom))
	}
	d := xml.NewDecoder(text)
	d.CharsetReader = charset
	fail := func(err error) (*RegexNormalizer, error) {
		line, _ := d.InputPos()
		if s := (*xml.SyntaxError)(nil); errors.As(err, &s) {
			line, err = s.Line, errors.New(s.Msg)
		}
		return nil, &SyntaxError{Line: line, Err: err}
	}
	root, err := nextElement(d)
	if err != nil {
		return fail(err)
	}
	if root == nil || root.Name.Local != "regex-normalize" {
		return fail(errors.New("the root element is not <regex-normalize>"))
	}
	for {
		e, err := nextElement(d)
		if err != nil {
			return fail(err)
		}
		if e == nil {
			break
		}
		number := len(n.rules) + 1
		if e.Name.Local != "regex" {
			return fail(fmt.Errorf("<%s> where <regex> is expected", e.Name.Local))
		}
		line, _ := d.InputPos()
		var v struct {
			Pattern      []string `xml:"pattern"`
			Substitution []string `xml:"substitution"`
			Other        []struct {
				XMLName xml.Name
			} `xml:",any"`
		}
		if err := d.DecodeElement(&v, e); err != nil {
			return fail(err)
		}
		if len(v.Pattern) != 1 || v.Pattern[0] == "" || len(v.Substitution) != 1 || len(v.Other) > 0 {
			return nil, &SyntaxError{Line: line, Err: fmt.Errorf("rule %d: a <regex> has one <pattern> and one <substitution>, which may be empty", number)}
		}
		rule := RegexRule{v.Pattern[0], v.Substitution[0]}
		c, err := compileRule(rule)
		if err != nil {
			return nil, &SyntaxError{Line: line, Err: fmt.Errorf("rule %d: %w", number, err)}
		}
		c.line = line
		n.rules = append(n.rules, c)
	}
	if e, err := nextElement(d); err != nil || e != nil {
		return fail(errors.Join(errors.New("more after </regex-normalize>"), err))
	}
	return n, nil
}

// charset reads the encodings of rule files other than UTF-8.
func charset(label string, r io.Reader) (io.Reader, error) {
	switch strings.ToLower(label) {
	case "utf8", "us-ascii", "ascii":
		return r, nil
	case "iso-8859-1", "latin1":
		b, err := io.ReadAll(r)
		text := make([]rune, len(b))
		for i, c := range b {
			text[i] = rune(c)
		}
		return strings.NewReader(string(text)), err
	}
	return nil, fmt.Errorf("the encoding %q is not supported; write the file in UTF-8", label)
}

// nextElement returns the next child; nil at the end of the parent or the file.
func nextElement(d *xml.Decoder) (*xml.StartElement, error) {
	for {
		t, err := d.Token()
		if err == io.EOF {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		switch t := t.(type) {
		case xml.StartElement:
			return &t, nil
		case xml.EndElement:
			return nil, nil
		case xml.CharData:
			if strings.TrimSpace(string(t)) != "" {
				return nil, errors.New("text outside of a <regex>")
			}
		}
	}
}

// RegexNormalizerFile reads rules from a file in the format of
// [ParseRegexNormalizer].
func RegexNormalizerFile(path string, o NormalizerOptions) (*NormalizerFile, error) {
	return OpenNormalizer(path, func(r io.Reader) (*RegexNormalizer, error) { return ParseRegexNormalizer(r, o) })
}

// Normalize applies the rules. The scope makes no difference: use [Scoped] for
// rules that differ by scope.
func (n *RegexNormalizer) Normalize(_ Scope, url string) (string, error) {
	return n.normalize(url, func(*normalizerRule) {})
}

func (n *RegexNormalizer) normalize(url string, changed func(*normalizerRule)) (string, error) {
	limit := len(url) + maxGrowth
	for round := 0; ; round++ {
		before := url
		for i := range n.rules {
			r := &n.rules[i]
			if r.may != nil && !r.may(url) {
				continue
			}
			if u := r.apply(url); u != url {
				url = u
				changed(r)
			}
			if len(url) > limit {
				return "", errUnsettled
			}
		}
		switch {
		case n.o.NutchCompat:
			return url, nil
		case url == "" && before != "":
			return "", errNothingLeft
		case url == before:
			return url, nil
		case round == maxRounds-1:
			return "", errUnsettled
		}
	}
}

// maxGrowth is how many bytes longer the rules may make a URL: each may double
// it.
const maxGrowth = 64 << 10

func (r *normalizerRule) apply(url string) string {
	all := r.matches(url)
	if len(all) == 0 {
		return url
	}
	out := make([]byte, 0, len(url)+16)
	end := 0
	for _, m := range all {
		out = append(out, url[end:m[0]]...)
		for _, p := range r.parts {
			if p.group < 0 {
				out = append(out, p.text...)
			} else if m[2*p.group] >= 0 {
				out = append(out, url[m[2*p.group]:m[2*p.group+1]]...)
			}
		}
		end = m[1]
	}
	return string(append(out, url[end:]...))
}

// Explain returns the rules that change the URL, in the order in which they do.
func (n *RegexNormalizer) Explain(url string) string {
	var all []string
	n.normalize(url, func(r *normalizerRule) {
		all = append(all, ruleAt(r.line, r.rule.Pattern+" -> "+strconv.Quote(r.rule.Substitution)))
	})
	return strings.Join(slices.Compact(all), "; ")
}

// String describes the normalizer.
func (n *RegexNormalizer) String() string {
	return fmt.Sprintf("regex normalizer of %d rules", len(n.rules))
}

func compileRule(rule RegexRule) (normalizerRule, error) {
	r := normalizerRule{rule: rule}
	groups, names := 0, []string{""}
	if rule.Pattern == slashPattern {
		r.may = func(url string) bool { return strings.Contains(url, "//") }
		r.matches = manySlashes
	} else {
		p, err := parseJava(rule.Pattern)
		if err != nil {
			return r, err
		}
		source, err := p.re2()
		if err != nil {
			return r, fmt.Errorf("pattern %#q: %w", rule.Pattern, err)
		}
		re, err := regexp.Compile(source)
		if err != nil {
			return r, fmt.Errorf("pattern %#q: %w", rule.Pattern, err)
		}
		groups, names = re.NumSubexp(), re.SubexpNames()
		r.may = prefilter(p)
		r.matches = func(url string) [][]int { return re.FindAllStringSubmatchIndex(url, -1) }
		if p.minLen() == 0 && !p.uses(opBegin) && !p.uses(opWord) && !p.uses(opNoWord) {
			r.matches = func(url string) [][]int { return matchesOfJava(re, url) }
		}
		if rule.Pattern == sessionPattern {
			slow := r.matches
			r.matches = func(url string) [][]int {
				if !isPrintable(url) {
					return slow(url)
				}
				return sessionIDs(url)
			}
		}
	}
	parts, err := parseTemplate(rule.Substitution, groups, names)
	if err != nil {
		return r, fmt.Errorf("substitution %#q: %w", rule.Substitution, err)
	}
	r.parts = parts
	return r, nil
}

// manySlashes finds the matches of slashPattern.
func manySlashes(url string) (all [][]int) {
	for i := 0; i < len(url); {
		if url[i] != '/' || i > 0 && url[i-1] == ':' {
			i++
			continue
		}
		end := i + 1
		for end < len(url) && url[end] == '/' {
			end++
		}
		if end-i >= 2 {
			all = append(all, []int{i, end})
		}
		i = end
	}
	return all
}

// matchesOfJava finds the matches that Java finds, which may be empty right
// after another; package regexp leaves these out. It is for patterns that do
// not look at what precedes them.
func matchesOfJava(re *regexp.Regexp, url string) (all [][]int) {
	for from := 0; from <= len(url); {
		m := re.FindStringSubmatchIndex(url[from:])
		if m == nil {
			break
		}
		for i := range m {
			if m[i] >= 0 {
				m[i] += from
			}
		}
		all = append(all, m)
		if from = m[1]; m[0] == m[1] {
			_, n := utf8.DecodeRuneInString(url[from:])
			from += max(n, 1)
		}
	}
	return all
}

func isPrintable(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// sessionIDs finds the matches of sessionPattern in printable ASCII, for which
// package regexp takes ten times as long. At most one name precedes each "=",
// and since everything allowed between it and the word boundary belongs to the
// word, the match can begin in one place only.
func sessionIDs(url string) (all [][]int) {
	from := 0
	for {
		equals := strings.IndexByte(url[from:], '=')
		if equals < 0 {
			return all
		}
		equals += from
		name := -1
		for _, n := range [...]string{"phpsessid", "sessionid", "sid"} {
			if i := equals - len(n); i >= from && strings.EqualFold(url[i:equals], n) {
				name = i
				break
			}
		}
		if name < 0 {
			from = equals + 1
			continue
		}
		word := name
		for word > from && isWord(url[word-1]) {
			word--
		}
		prefix := strings.TrimPrefix(url[word:name], "_")
		if word > 0 && isWord(url[word-1]) || !strings.EqualFold(prefix, "l") && !strings.EqualFold(prefix, "j") && !strings.EqualFold(prefix, "bv_") && prefix != "" {
			from = equals + 1
			continue
		}
		begin := word
		if begin > from && url[begin-1] == ';' {
			begin--
		}
		m := []int{begin, len(url), begin, len(url), -1, -1, name, equals, len(url), len(url)}
		if prefix != "" {
			m[4], m[5] = name-len(prefix), name
		}
		if i := strings.IndexAny(url[equals:], "?&#"); i >= 0 {
			end := equals + i
			m[1], m[3], m[8], m[9] = end+1, end, end, end+1
		}
		all = append(all, m)
		if from = m[1]; from == len(url) {
			return all
		}
	}
}

func isWord(c byte) bool { return isAlnum(c) || c == '_' }

// templatePart is a piece of a substitution: what a group matched, or text if
// group is negative.
type templatePart struct {
	text  string
	group int
}

// parseTemplate reads a substitution as java.util.regex.Matcher does; but what
// fails at the first match there fails at once here.
func parseTemplate(s string, groups int, names []string) ([]templatePart, error) {
	var parts []templatePart
	text := []byte{}
	flush := func() {
		if len(text) > 0 {
			parts = append(parts, templatePart{string(text), -1})
			text = nil
		}
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '\\':
			if i++; i == len(s) {
				return nil, errors.New(`a "\" at the end`)
			}
			text = append(text, s[i])
		case '$':
			rest := s[i+1:]
			group := -1
			if name, ok := strings.CutPrefix(rest, "{"); ok {
				end := strings.IndexByte(name, '}')
				if end <= 0 {
					return nil, errors.New(`"${" without a name and "}"`)
				}
				if group = slices.Index(names, name[:end]); group <= 0 {
					return nil, fmt.Errorf("no group %q", name[:end])
				}
				i += end + 2
			} else {
				if rest == "" || rest[0] < '0' || rest[0] > '9' {
					return nil, errors.New(`"$" without a group; write "\$" for the character`)
				}
				group = int(rest[0] - '0')
				if group > groups {
					return nil, fmt.Errorf("no group %d", group)
				}
				// More digits, as long as there is such a group.
				for i++; i+1 < len(s) && '0' <= s[i+1] && s[i+1] <= '9' && group*10+int(s[i+1]-'0') <= groups; i++ {
					group = group*10 + int(s[i+1]-'0')
				}
			}
			flush()
			parts = append(parts, templatePart{"", group})
		default:
			text = append(text, c)
		}
	}
	flush()
	return parts, nil
}
