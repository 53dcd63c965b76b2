package urlfilter

import (
	"strings"

	"golang.org/x/net/publicsuffix"
)

// domainOf returns the public suffix and the registered domain of a host, as
// Nutch's filters have them: by the part of the public suffix list that ICANN
// answers for. A host under no suffix of the list and an address have no suffix
// and are their own domain; a suffix is its own domain, too.
func domainOf(host string) (suffix, domain string) {
	if !mayHaveParents(host) {
		return "", host
	}
	suffix, icann := publicsuffix.PublicSuffix(host)
	for !icann {
		_, rest, ok := strings.Cut(suffix, ".")
		if !ok {
			return "", host // the list does not know it
		}
		suffix, icann = publicsuffix.PublicSuffix(rest) // what was it is private
	}
	if suffix == host {
		return suffix, host
	}
	label := strings.LastIndexByte(host[:len(host)-len(suffix)-1], '.')
	return suffix, host[label+1:]
}

// domainNutch is domainOf for a host as a URL of Nutch spells it: it may be
// Unicode, and so is then its domain, but never its suffix, or have a dot at the
// end, which its domain has not.
func domainNutch(host string) (suffix, domain string) {
	host = strings.TrimSuffix(host, ".")
	if isASCII(host) {
		return domainOf(host)
	}
	ascii, err := idnaProfile.ToASCII(host)
	if err != nil {
		return "", host
	}
	suffix, domain = domainOf(ascii)
	labels := splitLabels(host)
	if more := len(labels) - 1 - strings.Count(domain, "."); more > 0 {
		labels = labels[more:]
	}
	return suffix, strings.Join(labels, ".")
}

// mayHaveParents reports whether a host is a name and not an address.
func mayHaveParents(host string) bool {
	return host != "" && host[0] != '[' && !isNumber(host[strings.LastIndexByte(host, '.')+1:])
}
