package urlfilter

import (
	"strings"

	"golang.org/x/net/publicsuffix"

	"github.com/recrawl/recrawl/internal/webhost"
)

// domainOf returns the public suffix and the registered domain of a host as in
// Nutch's filters: by the ICANN section of the public suffix list. A host under
// no suffix of the list, like an address, has no suffix and is its own domain;
// a suffix is its own domain, too.
func domainOf(host string) (suffix, domain string) {
	if !mayHaveParents(host) {
		return "", host
	}
	suffix, icann := publicsuffix.PublicSuffix(host)
	for !icann {
		_, rest, ok := strings.Cut(suffix, ".")
		if !ok {
			return "", host // not in the list
		}
		suffix, icann = publicsuffix.PublicSuffix(rest) // what was it is private
	}
	if suffix == host {
		return suffix, host
	}
	label := strings.LastIndexByte(host[:len(host)-len(suffix)-1], '.')
	return suffix, host[label+1:]
}

// domainNutch is domainOf for a host as spelled in a URL in Nutch. The host may
// be Unicode, and then so is its domain, but never its suffix; it may end with
// a dot, which its domain does not.
func domainNutch(host string) (suffix, domain string) {
	host = strings.TrimSuffix(host, ".")
	if isASCII(host) {
		return domainOf(host)
	}
	ascii, ok := webhost.ASCII(host)
	if !ok {
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
	return host != "" && host[0] != '[' && !webhost.IsNumber(host[strings.LastIndexByte(host, '.')+1:])
}
