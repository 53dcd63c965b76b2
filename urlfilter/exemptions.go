package urlfilter

import "io"

// Exemptions say which links to other hosts are followed although the crawl
// does not follow external links. Their rules are those of [ParseRegex], applied to
// the target of the link; a target that no rule accepts is not exempt. The zero
// value exempts nothing. (Nutch: urlfilter-ignoreexempt,
// db.ignore.external.exemptions.file.)
type Exemptions struct{ rules Filter }

// OpenExemptions reads exemptions from a file, which Reload reads again. A file
// without rules exempts nothing.
func OpenExemptions(path string) (*Exemptions, error) {
	f, err := openFilter(path, false, func(r io.Reader) (Filter, error) { return ParseRegex(r, Options{}) })
	if err != nil {
		return nil, err
	}
	return &Exemptions{f}, nil
}

// Exempt reports whether a link is followed. It is not if either end is empty.
func (e *Exemptions) Exempt(from, to string) bool {
	return from != "" && to != "" && e.rules != nil && e.rules.Accept(to)
}

// Explain returns the rule that decides about the target of a link.
func (e *Exemptions) Explain(to string) string { return explain(e.rules, to) }

// Reload reads the file again, if there is one and it has changed.
func (e *Exemptions) Reload() (changed bool, err error) {
	if r, ok := e.rules.(Reloader); ok {
		return r.Reload()
	}
	return false, nil
}
