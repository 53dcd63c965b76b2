package nutchconf

import (
	"io"
	"slices"
	"strings"

	"github.com/recrawl/recrawl/urlfilter"
)

// nutchScopes are the scopes that Nutch has names for.
func nutchScopes() []urlfilter.Scope {
	return slices.DeleteFunc(urlfilter.Scopes(), func(s urlfilter.Scope) bool { return s == urlfilter.Generate })
}

// rules makes the rules of the crawl: the normalizers and filters whose plugins
// are active, in their order.
func (b *builder) rules(active *plugins) *urlfilter.Rules {
	r := &urlfilter.Rules{MaxLength: -1} // fetch bounds links by itself
	r.Normalizers = b.normalizers(active)
	r.Loops = b.count("urlnormalizer.loop.count")
	if b.Corrected && !b.set("urlnormalizer.loop.count") {
		r.Loops = 0
	}
	for _, id := range b.ordered("urlfilter.order", filterClasses[:], active, true) {
		if f := b.filter(id); f != nil {
			r.Filters = append(r.Filters, f)
		}
	}
	if len(r.Filters) == 0 && len(b.errs) == 0 {
		b.note("plugin.includes", "no filter is active: every URL belongs to the crawl")
	}
	return r
}

// scopeProperties are what the properties of one scope begin with.
func scopeProperties() []string {
	return []string{"urlnormalizer.scope.", "urlnormalizer.order.", "urlnormalizer.regex.file."}
}

// normalizers makes the normalizers of all scopes. Where a scope has properties
// of its own it has a chain of its own.
func (b *builder) normalizers(active *plugins) []urlfilter.Normalizer {
	made := map[string]urlfilter.Normalizer{}
	chain := func(scope urlfilter.Scope) []urlfilter.Normalizer {
		var all []urlfilter.Normalizer
		for _, id := range b.normalizersOf(scope, active) {
			n := b.regexOf(id, scope)
			if n == nil {
				if made[id] == nil {
					made[id] = b.normalizer(id)
				}
				n = made[id]
			}
			if n != nil {
				all = append(all, n)
			}
		}
		return all
	}
	common := chain(urlfilter.AnyScope)
	scoped := urlfilter.Scoped{}
	restricted := false // what is of the scope default is of no other one
	for _, prefix := range scopeProperties() {
		_, ok := b.text(prefix + string(urlfilter.AnyScope))
		restricted = restricted || ok
	}
	for _, s := range nutchScopes() {
		if s == urlfilter.AnyScope {
			continue
		}
		own := restricted
		for _, prefix := range scopeProperties() {
			_, ok := b.text(prefix + string(s))
			own = own || ok
		}
		if own {
			scoped[s] = urlfilter.Chain{Normalizers: chain(s), Loops: 1}
		}
	}
	if len(scoped) == 0 {
		return common
	}
	scoped[urlfilter.AnyScope] = urlfilter.Chain{Normalizers: common, Loops: 1}
	// Nutch has no such scope. A URL that is known is spelled as the scope in which
	// it turned up has it.
	scoped[urlfilter.Generate] = urlfilter.Pass{}
	return []urlfilter.Normalizer{scoped}
}

// normalizersOf returns the plugins that normalize in a scope, in their order:
// those that urlnormalizer.scope.SCOPE names, or all; first what
// urlnormalizer.order.SCOPE names, or urlnormalizer.order, and then the others. A
// scope of which nothing is left has what the scope default has.
func (b *builder) normalizersOf(scope urlfilter.Scope, active *plugins) []string {
	order := "urlnormalizer.order." + string(scope)
	if len(b.words(order)) == 0 {
		order = "urlnormalizer.order"
	}
	b.words("urlnormalizer.order")
	ids := b.ordered(order, normalizerClasses[:], active, false)
	name := "urlnormalizer.scope." + string(scope)
	if len(b.words(name)) > 0 {
		only := b.named(name, normalizerClasses[:], active)
		ids = slices.DeleteFunc(ids, func(id string) bool { return !slices.Contains(only, id) })
	}
	if len(ids) == 0 && scope != urlfilter.AnyScope {
		return b.normalizersOf(urlfilter.AnyScope, active)
	}
	return ids
}

// regexOf makes the regex normalizer of a scope that has a file of its own; nil
// if it has none.
func (b *builder) regexOf(id string, scope urlfilter.Scope) urlfilter.Normalizer {
	name := "urlnormalizer.regex.file." + string(scope)
	if _, ok := b.text(name); !ok || id != "urlnormalizer-regex" {
		return nil
	}
	return b.normalizerFile(name, b.word(name), urlfilter.RegexNormalizerFile)
}

// normalizer makes the normalizer of a plugin; nil if it cannot.
func (b *builder) normalizer(id string) urlfilter.Normalizer {
	o := urlfilter.NormalizerOptions{NutchCompat: b.compat()}
	switch id {
	case "urlnormalizer-basic":
		return b.basic()
	case "urlnormalizer-regex":
		return normalizerOf(b, "urlnormalizer.regex", urlfilter.RegexNormalizerFile, urlfilter.ParseRegexNormalizer)
	case "urlnormalizer-host":
		return normalizerOf(b, "urlnormalizer.hosts", urlfilter.HostNormalizerFile, urlfilter.ParseHostNormalizer)
	case "urlnormalizer-protocol":
		return normalizerOf(b, "urlnormalizer.protocols", urlfilter.ProtocolNormalizerFile, urlfilter.ParseProtocolNormalizer)
	case "urlnormalizer-slash":
		return normalizerOf(b, "urlnormalizer.slashes", urlfilter.SlashNormalizerFile, urlfilter.ParseSlashNormalizer)
	case "urlnormalizer-ajax":
		return urlfilter.AjaxNormalizer(o)
	case "urlnormalizer-querystring":
		return urlfilter.QueryNormalizer(o)
	}
	return urlfilter.Pass{}
}

func (b *builder) basic() urlfilter.Normalizer {
	n := urlfilter.Basic{
		NutchCompat:     b.compat(),
		IDNA2008:        b.bool("urlnormalizer.basic.host.idna2008"),
		TrimTrailingDot: b.bool("urlnormalizer.basic.host.trim-trailing-dot"),
	}
	b.compatOnly("urlnormalizer.basic.host.idna2008", n.IDNA2008)
	b.compatOnly("urlnormalizer.basic.host.trim-trailing-dot", n.TrimTrailingDot)
	switch idn := b.word("urlnormalizer.basic.host.idn"); {
	case idn == "":
	case strings.EqualFold(idn, string(urlfilter.ToASCII)):
		n.HostIDN = urlfilter.ToASCII
	case strings.EqualFold(idn, string(urlfilter.ToUnicode)):
		n.HostIDN = urlfilter.ToUnicode
		b.compatOnly("urlnormalizer.basic.host.idn", false)
	default:
		b.fail("urlnormalizer.basic.host.idn", "%q is neither toAscii nor toUnicode", idn)
	}
	return n
}

// filter makes the filter of a plugin; nil if it cannot, or if the plugin is none
// for the chain.
func (b *builder) filter(id string) urlfilter.Filter {
	switch id {
	case "urlfilter-regex":
		return filterOf(b, "urlfilter.regex", urlfilter.RegexFile, urlfilter.ParseRegex)
	case "urlfilter-automaton":
		return filterOf(b, "urlfilter.automaton", urlfilter.AutomatonFile, urlfilter.ParseAutomaton)
	case "urlfilter-prefix":
		return filterOf(b, "urlfilter.prefix", urlfilter.PrefixFile, urlfilter.ParsePrefix)
	case "urlfilter-suffix":
		return filterOf(b, "urlfilter.suffix", urlfilter.SuffixFile, urlfilter.ParseSuffix)
	case "urlfilter-domain":
		return filterOf(b, "urlfilter.domain", urlfilter.DomainFile, urlfilter.ParseDomain)
	case "urlfilter-domaindenylist":
		return filterOf(b, "urlfilter.domaindenylist", urlfilter.DomainDenyFile, urlfilter.ParseDomainDeny)
	case "urlfilter-validator":
		return urlfilter.Validator{}
	case "urlfilter-fast":
		name := "urlfilter.fast.file"
		o := urlfilter.FastOptions{
			MaxLength: b.int("urlfilter.fast.url.max.length"), MaxPath: b.int("urlfilter.fast.url.path.max.length"),
			MaxQuery: b.int("urlfilter.fast.url.query.max.length"), NutchCompat: b.compat(),
		}
		file := b.word(name)
		if rest, ok := strings.CutPrefix(file, "file:"); ok {
			file = strings.TrimPrefix(rest, "//")
		}
		f, err := urlfilter.FastFile(b.path(file), o)
		if err != nil {
			b.failFile(name, err)
			return nil
		}
		return f
	}
	return nil
}

// exempt makes the exemptions from db.ignore.external.links; nil if there are
// none.
func (b *builder) exempt(active *plugins) *urlfilter.Exemptions {
	name := "db.ignore.external.exemptions.file"
	file := b.word(name)
	if !active.has("urlfilter-ignoreexempt") {
		return nil
	}
	e, err := urlfilter.ExemptionsFile(b.path(file))
	if err != nil {
		b.failFile(name, err)
		return nil
	}
	return e
}

// filterOf makes a filter of rules: those of the property prefix.rules, if it is
// there, or else those in the file that prefix.file names. A file that is not
// there is an error, where Nutch takes it for one without rules.
func filterOf[F urlfilter.Filter](b *builder, prefix string, open func(string, urlfilter.FileOptions) (*urlfilter.FilterFile, error), parse func(io.Reader) (F, error)) urlfilter.Filter {
	name := prefix + ".file"
	file := b.word(name)
	if rules, ok := b.text(prefix + ".rules"); ok {
		f, err := parse(strings.NewReader(rules))
		if err != nil {
			b.fail(prefix+".rules", "%w", err)
			return nil
		}
		switch f := any(f).(type) { // as FileOptions does
		case *urlfilter.Regex:
			f.NutchCompat = b.compat()
		case *urlfilter.Automaton:
			f.NutchCompat = b.compat()
		case *urlfilter.Suffix:
			f.NutchCompat = b.compat()
		case *urlfilter.Domain:
			f.NutchCompat = b.compat()
		}
		return inlineFilter{f, prefix + ".rules"}
	}
	if !b.there(name, file) {
		return nil
	}
	f, err := open(b.path(file), urlfilter.FileOptions{NutchCompat: b.compat()})
	if err != nil {
		b.failFile(name, err)
		return nil
	}
	return f
}

// normalizerOf is filterOf for normalizers.
func normalizerOf[N urlfilter.Normalizer](b *builder, prefix string, open func(string, urlfilter.NormalizerOptions) (*urlfilter.NormalizerFile, error), parse func(io.Reader, urlfilter.NormalizerOptions) (N, error)) urlfilter.Normalizer {
	name := prefix + ".file"
	file := b.word(name)
	if rules, ok := b.text(prefix + ".rules"); ok {
		n, err := parse(strings.NewReader(rules), urlfilter.NormalizerOptions{NutchCompat: b.compat()})
		if err != nil {
			b.fail(prefix+".rules", "%w", err)
			return nil
		}
		return inlineNormalizer{n, prefix + ".rules"}
	}
	return b.normalizerFile(name, file, open)
}

func (b *builder) normalizerFile(name, file string, open func(string, urlfilter.NormalizerOptions) (*urlfilter.NormalizerFile, error)) urlfilter.Normalizer {
	if !b.there(name, file) {
		return nil
	}
	n, err := open(b.path(file), urlfilter.NormalizerOptions{NutchCompat: b.compat()})
	if err != nil {
		b.failFile(name, err)
		return nil
	}
	return n
}

// there fails if a file that a property names is missing.
func (b *builder) there(name, file string) bool {
	if exists(b.path(file)) {
		return true
	}
	b.fail(name, "there is no %s", b.path(file))
	return false
}

// inlineFilter is a filter whose rules are a property, inlineNormalizer is a
// normalizer of that kind.
type inlineFilter struct {
	urlfilter.Filter
	property string
}

func (f inlineFilter) Explain(url string) string { return inlineRule(f.property, f.Filter, url) }
func (f inlineFilter) String() string            { return f.property }

type inlineNormalizer struct {
	urlfilter.Normalizer
	property string
}

func (n inlineNormalizer) Explain(url string) string {
	return inlineRule(n.property, n.Normalizer, url)
}
func (n inlineNormalizer) String() string { return n.property }

// inlineRule names the rule of a property that decides.
func inlineRule(property string, v any, url string) string {
	e, ok := v.(urlfilter.Explainer)
	if !ok {
		return ""
	}
	rule := e.Explain(url)
	if at, ok := strings.CutPrefix(rule, "line "); ok {
		return property + ":" + at
	}
	if rule != "" {
		return property + ": " + rule
	}
	return ""
}
