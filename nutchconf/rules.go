package nutchconf

import (
	"io"
	"strings"

	"github.com/recrawl/recrawl/urlfilter"
)

// rules makes the rules of the crawl: the normalizers and filters whose plugins
// are active, in their order.
func (b *builder) rules(active *plugins) *urlfilter.Rules {
	r := &urlfilter.Rules{MaxLength: -1} // fetch bounds links by itself
	for _, id := range b.ordered("urlnormalizer.order", normalizerClasses[:], active, false) {
		if n := b.normalizer(id); n != nil {
			r.Normalizers = append(r.Normalizers, n)
		}
	}
	for _, id := range b.ordered("urlfilter.order", filterClasses[:], active, true) {
		if f := b.filter(id); f != nil {
			r.Filters = append(r.Filters, f)
		}
	}
	return r
}

// normalizer makes the normalizer of a plugin; nil if there is nothing to do.
func (b *builder) normalizer(id string) urlfilter.Normalizer {
	switch id {
	case "urlnormalizer-basic":
		return urlfilter.Basic{NutchCompat: b.compat()}
	}
	return nil
}

// filter makes the filter of a plugin.
func (b *builder) filter(id string) urlfilter.Filter {
	switch id {
	case "urlfilter-regex":
		return filterOf(b, "urlfilter.regex", urlfilter.ParseRegex)
	case "urlfilter-prefix":
		return filterOf(b, "urlfilter.prefix", urlfilter.ParsePrefix)
	case "urlfilter-suffix":
		return filterOf(b, "urlfilter.suffix", urlfilter.ParseSuffix)
	case "urlfilter-domain":
		return filterOf(b, "urlfilter.domain", urlfilter.ParseDomain)
	case "urlfilter-domaindenylist":
		return filterOf(b, "urlfilter.domaindenylist", urlfilter.ParseDomainDeny)
	}
	return nil
}

// filterOf makes a filter of rules: those of the property prefix.rules, if it is
// there, or else those in the file that prefix.file names.
func filterOf[F urlfilter.Filter](b *builder, prefix string, parse func(io.Reader) (F, error)) urlfilter.Filter {
	file := b.word(prefix + ".file")
	if rules, ok := b.text(prefix + ".rules"); ok {
		f, err := parse(strings.NewReader(rules))
		if err != nil {
			b.fail(prefix+".rules", "%w", err)
		}
		return inlineFilter{f, prefix + ".rules"}
	}
	f, err := urlfilter.OpenFilter(b.path(file), parse)
	if err != nil {
		b.fail(prefix+".file", "%w", err)
		return nil
	}
	return f
}

// inlineFilter is a filter whose rules are a property.
type inlineFilter struct {
	urlfilter.Filter
	property string
}

func (f inlineFilter) Explain(url string) string { return inlineRule(f.property, f.Filter, url) }
func (f inlineFilter) String() string            { return f.property }

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
	return rule
}
