package urlfilter

import (
	"bufio"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/recrawl/recrawl/internal/javaregex"
)

// RegexRule replaces every match of a pattern of java.util.regex. In the
// substitution "$1" or "${name}" stands for what a group matched, and a backslash
// makes the next character an ordinary one, as in Java.
type RegexRule struct{ Pattern, Substitution string }

// regexNormalizer rewrites URLs by rules, in order.
type regexNormalizer struct {
	o     Options
	rules []normalizerRule
}

type normalizerRule struct {
	line     int // zero if the rule is not from a file
	rule     RegexRule
	replacer *javaregex.Replacer
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
		{`(?i)(;?\b_?(l|j|bv_)?(sid|phpsessid|sessionid)=.*?)(\?|&|#|$)`, "$4"},
		{`#.*?(\?|&|$)`, "$1"},
		{`\?&`, `\?`},
		{`&{2,}`, "&"},
		{`[\?&\.]$`, ""},
		{`^file://+`, "file:/"},
		{`(?<!:)/{2,}`, "/"},
	}
}

// NewRegexNormalizer makes a normalizer that rewrites URLs by rules, in order. An error names the rule
// by its number, from 1. (Nutch: urlnormalizer-regex.)
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
func NewRegexNormalizer(o Options, rules ...RegexRule) (Normalizer, error) {
	n := &regexNormalizer{o: o}
	for i, r := range rules {
		c, err := javaregex.NewReplacer(r.Pattern, r.Substitution)
		if err != nil {
			return nil, fmt.Errorf("urlfilter: rule %d: %w", i+1, err)
		}
		n.rules = append(n.rules, normalizerRule{0, r, c})
	}
	return n, nil
}

// ParseRegexNormalizer reads the rules of [NewRegexNormalizer] from Nutch's regex-normalize.xml:
//
//	<regex-normalize>
//	  <regex><pattern>#.*</pattern><substitution></substitution></regex>
//	</regex-normalize>
//
// Blanks and line ends in a pattern count. An error is a [*SyntaxError] that names
// the line and the number of the rule. (Nutch: urlnormalizer.regex.file,
// urlnormalizer.regex.rules.)
func ParseRegexNormalizer(r io.Reader, o Options) (Normalizer, error) {
	n := &regexNormalizer{o: o}
	text := bufio.NewReader(r)
	if bom, _ := text.Peek(len("\ufeff")); string(bom) == "\ufeff" {
		text.Discard(len(bom))
	}
	d := xml.NewDecoder(text)
	d.CharsetReader = charset
	fail := func(err error) (Normalizer, error) {
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
		c, err := javaregex.NewReplacer(rule.Pattern, rule.Substitution)
		if err != nil {
			return nil, &SyntaxError{Line: line, Err: fmt.Errorf("rule %d: %w", number, err)}
		}
		n.rules = append(n.rules, normalizerRule{line, rule, c})
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

// Normalize applies the rules. The scope makes no difference: use [NewScoped] for
// rules that differ by scope.
func (n *regexNormalizer) Normalize(_ Scope, url string) (string, error) {
	return n.normalize(url, func(*normalizerRule) {})
}

func (n *regexNormalizer) normalize(url string, changed func(*normalizerRule)) (string, error) {
	limit := len(url) + maxGrowth
	for round := 0; ; round++ {
		before := url
		for i := range n.rules {
			r := &n.rules[i]
			if u := r.replacer.Replace(url); u != url {
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

// Explain returns the rules that change the URL, in the order in which they do.
func (n *regexNormalizer) Explain(url string) string {
	var all []string
	n.normalize(url, func(r *normalizerRule) {
		all = append(all, ruleAt(r.line, r.rule.Pattern+" -> "+strconv.Quote(r.rule.Substitution)))
	})
	return strings.Join(slices.Compact(all), "; ")
}

// String describes the normalizer.
func (n *regexNormalizer) String() string {
	return fmt.Sprintf("regex normalizer of %d rules", len(n.rules))
}
