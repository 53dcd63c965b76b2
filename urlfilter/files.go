package urlfilter

import (
	"errors"
	"io"
	"net/url"
	"strings"
)

// FileOptions say how to read a rule file.
type FileOptions struct {
	// NutchCompat treats a missing file or one without rules as an empty list,
	// which rejects everything in the prefix, suffix, regex and automaton
	// filters and accepts everything in the two domain filters. Without it,
	// such a file is an error, except for lists that only reject: losing a file
	// must not change what is crawled. NutchCompat also sets that of the filter
	// itself.
	NutchCompat bool
}

// Apply sets the NutchCompat of a filter that was read otherwise than by a function here.
func (o FileOptions) Apply(f Filter) {
	switch f := f.(type) {
	case *Regex:
		f.NutchCompat = o.NutchCompat
	case *Automaton:
		f.NutchCompat = o.NutchCompat
	case *Suffix:
		f.NutchCompat = o.NutchCompat
	case *Domain:
		f.NutchCompat = o.NutchCompat
	}
}

var errNoRules = errors.New("no rules")

// RegexFile reads a [Regex]. (Nutch: urlfilter.regex.file.)
func RegexFile(path string, o FileOptions) (*FilterFile, error) {
	return openRules(path, o, ParseRegex)
}

// AutomatonFile reads an [Automaton]. (Nutch: urlfilter.automaton.file.)
func AutomatonFile(path string, o FileOptions) (*FilterFile, error) {
	return openRules(path, o, ParseAutomaton)
}

// PrefixFile reads a [Prefix]. (Nutch: urlfilter.prefix.file.)
func PrefixFile(path string, o FileOptions) (*FilterFile, error) {
	return openRules(path, o, ParsePrefix)
}

// SuffixFile reads a [Suffix]. (Nutch: urlfilter.suffix.file.)
func SuffixFile(path string, o FileOptions) (*FilterFile, error) {
	return openRules(path, o, ParseSuffix)
}

// DomainFile reads a [Domain] of hosts to accept. (Nutch:
// urlfilter.domain.file.)
func DomainFile(path string, o FileOptions) (*FilterFile, error) {
	return openRules(path, o, ParseDomain)
}

// DomainDenyFile reads a [Domain] of hosts to reject. (Nutch:
// urlfilter.domaindenylist.file.)
func DomainDenyFile(path string, o FileOptions) (*FilterFile, error) {
	return openRules(path, o, ParseDomainDeny)
}

// FastFile reads a [Fast]. A file whose name ends in .gz or .bz2 is
// decompressed; the path may begin with "file:". (Nutch: urlfilter.fast.file.)
func FastFile(path string, o FastOptions) (*FilterFile, error) {
	if strings.HasPrefix(path, "file:") {
		u, err := url.Parse(path)
		if err != nil || u.Host != "" && u.Host != "localhost" || u.Path == "" {
			return nil, inFile(path, errors.New("not the URL of a local file"))
		}
		path = u.Path
	}
	return OpenFilter(path, func(r io.Reader) (*Fast, error) {
		r, err := unpack(path, r)
		if err != nil {
			return nil, err
		}
		return ParseFast(r, o)
	})
}

// openRules reads a filter, and makes it Nutch's if the options ask for that.
func openRules[F interface {
	Filter
	empty() bool
}](path string, o FileOptions, parse func(io.Reader) (F, error)) (*FilterFile, error) {
	f := new(FilterFile)
	err := f.open(path, o.NutchCompat, func(r io.Reader) (Filter, error) {
		v, err := parse(r)
		if err != nil {
			return nil, err
		}
		if !o.NutchCompat && v.empty() {
			return nil, errNoRules
		}
		o.Apply(v)
		return v, nil
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}
