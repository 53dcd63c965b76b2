package urlfilter

import (
	"slices"
	"strings"
)

// A HostKeeper is a [Normalizer] that knows which hosts it never replaces. Code
// that counts URLs by host can then use the host as it is, without normalizing
// each URL.
type HostKeeper interface {
	Normalizer
	// KeepsHost reports whether, in a scope, every URL of a host, which is
	// given in lower case and without its port, is refused or keeps that host
	// when it is normalized. It returns false if that is not known.
	KeepsHost(scope Scope, host string) bool
}

// KeepsHost reports whether each of the normalizers, and so all together, keep
// a host. One that is no [HostKeeper] may turn it into anything.
func (r *Rules) KeepsHost(scope Scope, host string) bool {
	return keepHost(r.Normalizers, scope, host)
}

func keepHost(all []Normalizer, scope Scope, host string) bool {
	for _, n := range all {
		if k, ok := n.(HostKeeper); !ok || !k.KeepsHost(scope, host) {
			return false
		}
	}
	return true
}

// KeepsHost reports whether the host is in normal form.
func (b Basic) KeepsHost(_ Scope, host string) bool {
	if b.NutchCompat || host == "localhost" && slices.Contains(b.Schemes, "file") { // then it is no host
		return false
	}
	normal, err := normalHost(host)
	return err == nil && normal == host
}

// KeepsHost reports true except for a host with a semicolon, where a parameter
// begins.
func (SessionIDs) KeepsHost(_ Scope, host string) bool { return strings.IndexByte(host, ';') < 0 }

// KeepsHost reports true, since only the query changes; with NutchCompat more may change.
func (n queryNormalizer) KeepsHost(Scope, string) bool { return !n.NutchCompat }

// KeepsHost reports whether it changes nothing but query and fragment.
func (n ajaxNormalizer) KeepsHost(Scope, string) bool { return !n.NutchCompat }

// KeepsHost reports whether no rule is about the host.
func (n *hostNormalizer) KeepsHost(_ Scope, host string) bool {
	if n.o.NutchCompat {
		return false
	}
	_, ok := n.rules.lookup(host, false)
	return !ok
}

// KeepsHost reports whether it changes nothing but the scheme.
func (n *protocolNormalizer) KeepsHost(Scope, string) bool { return !n.o.NutchCompat }

// KeepsHost reports whether it changes nothing but the path.
func (n *slashNormalizer) KeepsHost(Scope, string) bool { return !n.o.NutchCompat }

// KeepsHost reports whether all normalizers of the chain keep the host.
func (c chain) KeepsHost(scope Scope, host string) bool { return keepHost(c.normalizers, scope, host) }

// KeepsHost asks the normalizer of the scope.
func (s scoped) KeepsHost(scope Scope, host string) bool {
	return keepHost([]Normalizer{s.in(scope)}, scope, host)
}

// KeepsHost asks the rules as they were last read.
func (f *normalizerFile) KeepsHost(scope Scope, host string) bool {
	return keepHost([]Normalizer{f.current()}, scope, host)
}
