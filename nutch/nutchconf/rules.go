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
	r := &urlfilter.Rules{MaxLength: -1} // fetch has its own bound on links
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
		b.note("plugin.includes", "no filter is active: every URL is accepted")
	}
	return r
}

// scopeProperties returns the prefixes of properties of one scope.
func scopeProperties() []string {
	return []string{"urlnormalizer.scope.", "urlnormalizer.order.", "urlnormalizer.regex.file."}
}

// normalizers makes the normalizers of all scopes. A scope with its own properties has
// its own chain.
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
	scoped := map[urlfilter.Scope]urlfilter.Normalizer{}
	restricted := false // whether properties of the scope default apply to that scope only
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
			scoped[s] = urlfilter.NewChain(1, chain(s)...)
		}
	}
	if len(scoped) == 0 {
		return common
	}
	scoped[urlfilter.AnyScope] = urlfilter.NewChain(1, common...)
	// Nutch has no such scope: known URLs keep the form that the scope in which they
	// turned up has given them.
	scoped[urlfilter.Generate] = urlfilter.NewChain(1)
	return []urlfilter.Normalizer{urlfilter.NewScoped(scoped)}
}

// normalizersOf returns the plugins that normalize in a scope: those that
// urlnormalizer.scope.SCOPE names, or all. Those in urlnormalizer.order.SCOPE, or else
// in urlnormalizer.order, come first. A scope without any has those of the scope default.
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

// regexOf makes the regex normalizer of a scope that has its own file; nil if it has
// none.
func (b *builder) regexOf(id string, scope urlfilter.Scope) urlfilter.Normalizer {
	name := "urlnormalizer.regex.file." + string(scope)
	if _, ok := b.text(name); !ok || id != "urlnormalizer-regex" {
		return nil
	}
	return b.normalizerFile(name, b.word(name), urlfilter.ParseRegexNormalizer)
}

// normalizer makes the normalizer of a plugin; nil if it cannot.
func (b *builder) normalizer(id string) urlfilter.Normalizer {
	o := b.compatOptions()
	switch id {
	case "urlnormalizer-basic":
		return b.basic()
	case "urlnormalizer-regex":
		return b.normalizerOf("urlnormalizer.regex", urlfilter.ParseRegexNormalizer)
	case "urlnormalizer-host":
		return b.normalizerOf("urlnormalizer.hosts", urlfilter.ParseHostNormalizer)
	case "urlnormalizer-protocol":
		return b.normalizerOf("urlnormalizer.protocols", urlfilter.ParseProtocolNormalizer)
	case "urlnormalizer-slash":
		return b.normalizerOf("urlnormalizer.slashes", urlfilter.ParseSlashNormalizer)
	case "urlnormalizer-ajax":
		return urlfilter.NewAjaxNormalizer(o)
	case "urlnormalizer-querystring":
		return urlfilter.NewQueryNormalizer(o)
	}
	return urlfilter.NewChain(1)
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

// filter makes the filter of a plugin; nil if it cannot, or if the plugin is not part of
// the chain.
func (b *builder) filter(id string) urlfilter.Filter {
	switch id {
	case "urlfilter-regex":
		return b.filterOf("urlfilter.regex", urlfilter.ParseRegex)
	case "urlfilter-automaton":
		return b.filterOf("urlfilter.automaton", urlfilter.ParseAutomaton)
	case "urlfilter-prefix":
		return b.filterOf("urlfilter.prefix", urlfilter.ParsePrefix)
	case "urlfilter-suffix":
		return b.filterOf("urlfilter.suffix", urlfilter.ParseSuffix)
	case "urlfilter-domain":
		return b.filterOf("urlfilter.domain", urlfilter.ParseDomain)
	case "urlfilter-domaindenylist":
		return b.filterOf("urlfilter.domaindenylist", urlfilter.ParseDomainDeny)
	case "urlfilter-validator":
		return urlfilter.NewValidator()
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
		f, err := urlfilter.OpenFilter(b.path(file), func(r io.Reader, _ urlfilter.Options) (urlfilter.Filter, error) {
			return urlfilter.ParseFast(r, o)
		}, b.compatOptions())
		if err != nil {
			b.fail(name, "%w", err)
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
	e, err := urlfilter.OpenExemptions(b.path(file))
	if err != nil {
		b.fail(name, "%w", err)
		return nil
	}
	return e
}

// compatOptions are the options of rules.
func (b *builder) compatOptions() urlfilter.Options {
	return urlfilter.Options{NutchCompat: b.compat()}
}

// filterOf makes a filter with the rules in the property prefix.rules, if it is set, or
// else in the file that prefix.file names. A missing file is an error; Nutch treats it
// as a file without rules.
func (b *builder) filterOf(prefix string, parse func(io.Reader, urlfilter.Options) (urlfilter.Filter, error)) urlfilter.Filter {
	name := prefix + ".file"
	file := b.word(name)
	if rules, ok := b.text(prefix + ".rules"); ok {
		f, err := parse(strings.NewReader(rules), b.compatOptions())
		if err != nil {
			b.fail(prefix+".rules", "%w", err)
			return nil
		}
		return inlineFilter{f, prefix + ".rules"}
	}
	if !b.there(name, file) {
		return nil
	}
	f, err := urlfilter.OpenFilter(b.path(file), parse, b.compatOptions())
	if err != nil {
		b.fail(name, "%w", err)
		return nil
	}
	return f
}

// normalizerOf is filterOf for normalizers.
func (b *builder) normalizerOf(prefix string, parse func(io.Reader, urlfilter.Options) (urlfilter.Normalizer, error)) urlfilter.Normalizer {
	name := prefix + ".file"
	file := b.word(name)
	if rules, ok := b.text(prefix + ".rules"); ok {
		n, err := parse(strings.NewReader(rules), b.compatOptions())
		if err != nil {
			b.fail(prefix+".rules", "%w", err)
			return nil
		}
		return inlineNormalizer{n, prefix + ".rules"}
	}
	return b.normalizerFile(name, file, parse)
}

func (b *builder) normalizerFile(name, file string, parse func(io.Reader, urlfilter.Options) (urlfilter.Normalizer, error)) urlfilter.Normalizer {
	if !b.there(name, file) {
		return nil
	}
	n, err := urlfilter.OpenNormalizer(b.path(file), parse, b.compatOptions())
	if err != nil {
		b.fail(name, "%w", err)
		return nil
	}
	return n
}

// there reports whether a file that a property names exists, and fails if not.
func (b *builder) there(name, file string) bool {
	if exists(b.path(file)) {
		return true
	}
	b.fail(name, "%s does not exist", b.path(file))
	return false
}

// inlineFilter is a filter whose rules are in a property, and inlineNormalizer a
// normalizer.
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

// inlineRule names the rule in a property that decides about a URL.
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
