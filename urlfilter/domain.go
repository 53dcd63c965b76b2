package urlfilter

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/net/publicsuffix"
)

// Domain accepts or rejects URLs by their host.
type Domain struct {
	deny bool
	// wide are the names that stand for every host below them too, exact those
	// that do not.
	wide, exact map[string]bool
}

// NewDomain makes a filter that accepts the hosts of a list. An entry is a
// public suffix ("net"), a registered domain ("apache.org"), each of which
// stands for every host below it, or any other host ("www.example.com"), which
// stands for itself alone; [Within] is for those who want the hosts below it as
// well. Without entries everything is accepted. (Nutch: urlfilter-domain.)
func NewDomain(entries ...string) (*Domain, error) { return newDomain(entries, false) }

// NewDomainDeny makes a filter that rejects what [NewDomain] would accept, and
// a URL that has no host. Without entries everything is accepted. (Nutch:
// urlfilter-domaindenylist.)
func NewDomainDeny(entries ...string) (*Domain, error) { return newDomain(entries, true) }

// Within makes a filter that accepts the given hosts and every host below them,
// for a crawl of some sites: Within("example.org") accepts www.example.org.
// Without names nothing is accepted.
func Within(names ...string) (*Domain, error) {
	f := &Domain{wide: map[string]bool{}, exact: map[string]bool{}}
	for _, name := range names {
		host, err := normalHost(strings.TrimSpace(name))
		if err != nil {
			return nil, fmt.Errorf("urlfilter: %q is not a host", name)
		}
		f.wide[host] = true
	}
	return f, nil
}

// ParseDomain reads Nutch's domain-urlfilter.txt for [NewDomain]: one entry a
// line; lines are trimmed, empty ones and those that begin with "#" are skipped.
func ParseDomain(r io.Reader) (*Domain, error) { return parseDomain(r, false) }

// ParseDomainDeny reads the same format for [NewDomainDeny].
func ParseDomainDeny(r io.Reader) (*Domain, error) { return parseDomain(r, true) }

func newDomain(entries []string, deny bool) (*Domain, error) {
	f := &Domain{deny: deny}
	for _, e := range entries {
		if err := f.add(e); err != nil {
			return nil, fmt.Errorf("urlfilter: %q: %w", e, err)
		}
	}
	return f, nil
}

func parseDomain(r io.Reader, deny bool) (*Domain, error) {
	f := &Domain{deny: deny}
	err := readLines(r, func(_ int, line string) error {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			return nil
		}
		return f.add(line)
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (f *Domain) add(entry string) error {
	host, err := normalHost(strings.TrimSpace(entry))
	if err != nil {
		return errors.New("not a host, domain or suffix")
	}
	if f.wide == nil {
		f.wide, f.exact = map[string]bool{}, map[string]bool{}
	}
	if isDomain(host) {
		f.wide[host] = true
	} else {
		f.exact[host] = true
	}
	return nil
}

// Accept reports whether the host of the URL is acceptable.
func (f *Domain) Accept(url string) bool {
	if f.wide == nil {
		return true
	}
	host := hostOf(url)
	if host == "" {
		return false
	}
	return f.listed(host) != f.deny
}

func (f *Domain) listed(host string) bool {
	if f.exact[host] || f.wide[host] {
		return true
	}
	if !mayHaveParents(host) {
		return false
	}
	for {
		_, parent, ok := strings.Cut(host, ".")
		if !ok {
			return false
		}
		if f.wide[parent] {
			return true
		}
		host = parent
	}
}

// String describes the filter.
func (f *Domain) String() string {
	kind := "domain"
	if f.deny {
		kind = "domain deny"
	}
	return fmt.Sprintf("%s filter of %d entries", kind, len(f.wide)+len(f.exact))
}

// isDomain reports whether a name stands for the hosts below it: it is a public
// suffix or one label more.
func isDomain(name string) bool {
	if !mayHaveParents(name) {
		return false
	}
	suffix, _ := publicsuffix.PublicSuffix(name)
	return suffix == name || !strings.Contains(strings.TrimSuffix(name, "."+suffix), ".")
}

// below reports whether host is a host of the domain other than it.
func below(host, domain string) bool {
	return len(host) > len(domain) && host[len(host)-len(domain)-1] == '.' && strings.HasSuffix(host, domain) && mayHaveParents(host)
}

// mayHaveParents reports whether a host is a name and not an address.
func mayHaveParents(host string) bool {
	return host != "" && host[0] != '[' && !isNumber(host[strings.LastIndexByte(host, '.')+1:])
}
