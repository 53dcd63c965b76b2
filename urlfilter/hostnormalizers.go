package urlfilter

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/recrawl/recrawl/internal/javaurl"
)

// hostNormalizer replaces hosts. The zero value changes nothing. (Nutch:
// urlnormalizer-host.)
type hostNormalizer struct {
	o     Options
	rules hostRules
	final map[string]string // of targets that have rules of their own
}

// ParseHostNormalizer reads Nutch's host-urlnormalizer.txt: a host, blanks or
// tabs, and its replacement. "*.example.com" stands for every host below
// example.com. A rule for the host itself comes first, then that for the
// nearest domain. A target that has a rule of its own is replaced in turn;
// circular rules are an error. Empty lines and those that begin with "#" are
// skipped.
//
// Under NutchCompat a single blank separates host and target, which is taken
// literally, the widest domain comes before the nearest, a target is not looked
// up again, host names are case-sensitive, and the first occurrence of the name
// in the URL is replaced, wherever it is. (Nutch: urlnormalizer.hosts.file,
// urlnormalizer.hosts.rules.)
func ParseHostNormalizer(r io.Reader, o Options) (Normalizer, error) {
	n := &hostNormalizer{o: o, rules: newHostRules(), final: map[string]string{}}
	err := readLines(r, func(i int, line string) error {
		if strings.TrimSpace(line) == "" || line[0] == '#' {
			return nil
		}
		if o.NutchCompat {
			host, target, ok := strings.Cut(line, " ")
			if !ok {
				return errors.New("no blank between host and target")
			}
			n.rules.set(host, hostRule{i, line, target})
			return nil
		}
		f := strings.Fields(line)
		if len(f) != 2 {
			return errors.New("want a host and its target")
		}
		target, err := normalHost(f[1])
		if err != nil {
			return fmt.Errorf("%q is not a host", f[1])
		}
		return n.rules.add(f[0], true, hostRule{i, line, target})
	})
	if err != nil {
		return nil, err
	}
	if o.NutchCompat {
		return n, nil
	}
	// In file order, so that the first of several circles is named.
	for _, r := range sortedByLine(n.rules) {
		to := r.value
		for seen := 0; ; seen++ {
			next, ok := n.rules.lookup(to, false)
			if !ok || next.value == to {
				break
			}
			if to = next.value; seen > n.rules.len() {
				return nil, &SyntaxError{Line: r.line, Err: fmt.Errorf("the rules for %s form a cycle", r.value)}
			}
		}
		n.final[r.value] = to
	}
	return n, nil
}

// Normalize replaces the host. The scope makes no difference.
func (n *hostNormalizer) Normalize(_ Scope, url string) (string, error) {
	u, _, err := n.normalize(url)
	return u, err
}

func (n *hostNormalizer) normalize(url string) (string, hostRule, error) {
	if n.o.NutchCompat {
		u, err := javaurl.Parse(url, Basic{}.javaKnows)
		if err != nil {
			return "", hostRule{}, err
		}
		r, ok := n.lookupNutch(u.Host)
		if !ok {
			return url, r, nil
		}
		return strings.Replace(url, u.Host, r.value, 1), r, nil
	}
	scheme, user, host, port, rest, ok := cutURL(url)
	if !ok {
		return url, hostRule{}, nil
	}
	r, ok := n.rules.lookup(strings.ToLower(host), false)
	if !ok {
		return url, r, nil
	}
	return scheme + "://" + user + n.final[r.value] + port + rest, r, nil
}

func (n *hostNormalizer) lookupNutch(host string) (hostRule, bool) {
	if r, ok := n.rules.exact[host]; ok {
		return r, true
	}
	host = strings.TrimRight(host, ".")
	for i, dots := len(host)-1, 0; i >= 0; i-- {
		if host[i] != '.' {
			continue
		}
		if dots++; dots > 1 {
			if r, ok := n.rules.wide[host[i+1:]]; ok {
				return r, true
			}
		}
	}
	return hostRule{}, false
}

// Explain returns the rule that changes the URL.
func (n *hostNormalizer) Explain(url string) string {
	u, r, err := n.normalize(url)
	if err != nil || u == url {
		return ""
	}
	return ruleAt(r.line, r.text)
}

// String describes the normalizer.
func (n *hostNormalizer) String() string {
	return fmt.Sprintf("host normalizer of %d rules", n.rules.len())
}

// protocolNormalizer gives the URLs of a host another scheme, usually https.
// The zero value changes nothing. (Nutch: urlnormalizer-protocol.)
type protocolNormalizer struct {
	o     Options
	rules hostRules
}

// ParseProtocolNormalizer reads Nutch's protocols.txt: a host, blanks or tabs,
// and the scheme of its URLs. "*.example.com" stands for example.com and every
// host below it. A rule for the host itself comes first, then that for the
// nearest domain. URLs with a port stay as they are. Empty lines and those that
// begin with "#" are skipped.
//
// Under NutchCompat lines that cannot be parsed are skipped too, host names are
// case-sensitive, and a URL that changes loses user information and fragment.
// (Nutch: urlnormalizer.protocols.file, urlnormalizer.protocols.rules.)
func ParseProtocolNormalizer(r io.Reader, o Options) (Normalizer, error) {
	n := &protocolNormalizer{o: o, rules: newHostRules()}
	err := readLines(r, func(i int, line string) error {
		if strings.TrimSpace(line) == "" || line[0] == '#' {
			return nil
		}
		f := strings.Fields(line)
		if len(f) != 2 {
			if o.NutchCompat {
				return nil
			}
			return errors.New("want a host and a scheme")
		}
		if o.NutchCompat {
			if isNutchProtocol(f[1]) {
				n.rules.set(f[0], hostRule{i, line, f[1]})
			}
			return nil
		}
		scheme := strings.ToLower(f[1])
		if !isScheme(scheme) {
			return fmt.Errorf("%q is not a scheme", f[1])
		}
		return n.rules.add(f[0], true, hostRule{i, line, scheme})
	})
	if err != nil {
		return nil, err
	}
	return n, nil
}

// isNutchProtocol reports whether Nutch accepts a string as a scheme.
func isNutchProtocol(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i] | 0x20
		switch {
		case 'a' <= c && c <= 'z' && isAlnum(s[i]):
		case i == 0:
			return false
		case isAlnum(s[i]) || strings.IndexByte("$-_@.&!*\"'(),", s[i]) >= 0:
		case s[i] == '%' && i+2 < len(s) && unhex(s[i+1]) >= 0 && unhex(s[i+2]) >= 0:
			i += 2
		default:
			return false
		}
	}
	return true
}

// Normalize replaces the scheme. The scope makes no difference.
func (n *protocolNormalizer) Normalize(_ Scope, url string) (string, error) {
	u, _, err := n.normalize(url)
	return u, err
}

func (n *protocolNormalizer) normalize(url string) (string, hostRule, error) {
	if n.o.NutchCompat {
		u, err := javaurl.Parse(url, Basic{}.javaKnows)
		if err != nil {
			return "", hostRule{}, err
		}
		r, ok := n.rules.lookup(u.Host, true)
		if !ok || u.Port != -1 || r.value == u.Protocol {
			return url, r, nil
		}
		u.Protocol, u.HasRef = r.value, false
		return rebuilt(&u, u.Path), r, nil
	}
	scheme, _, host, port, _, ok := cutURL(url)
	if !ok || port != "" {
		return url, hostRule{}, nil
	}
	r, ok := n.rules.lookup(strings.ToLower(host), true)
	if !ok || r.value == scheme {
		return url, r, nil
	}
	return r.value + url[len(scheme):], r, nil
}

// Explain returns the rule that changes the URL.
func (n *protocolNormalizer) Explain(url string) string {
	u, r, err := n.normalize(url)
	if err != nil || u == url {
		return ""
	}
	return ruleAt(r.line, r.text)
}

// String describes the normalizer.
func (n *protocolNormalizer) String() string {
	return fmt.Sprintf("protocol normalizer of %d rules", n.rules.len())
}

// slashNormalizer adds a slash to the path of the URLs of a host, or removes it.
// The path "/" stays as it is. The zero value changes nothing. (Nutch:
// urlnormalizer-slash.)
type slashNormalizer struct {
	o     Options
	rules hostRules
}

// ParseSlashNormalizer reads Nutch's slashes.txt: a host, blanks or tabs, and "+" if its
// paths end with a slash or "-" if they do not. A path whose last segment has an
// extension of one to five letters and digits gets no slash. Empty lines and those that
// begin with "#" are skipped.
//
// Under NutchCompat anything but "+" means "-", a path gets no slash if it has a dot
// among its last six UTF-16 units but always if it is shorter ("/a.js" becomes
// "/a.js/"), and a URL that changes loses user information, port and fragment. (Nutch:
// urlnormalizer.slashes.file, urlnormalizer.slashes.rules.)
func ParseSlashNormalizer(r io.Reader, o Options) (Normalizer, error) {
	n := &slashNormalizer{o: o, rules: newHostRules()}
	err := readLines(r, func(i int, line string) error {
		if strings.TrimSpace(line) == "" || line[0] == '#' {
			return nil
		}
		f := strings.Fields(line)
		if o.NutchCompat {
			mode := ""
			if len(f) > 1 {
				mode = f[1]
			}
			n.rules.exact[f[0]] = hostRule{i, line, mode}
			return nil
		}
		if len(f) != 2 || f[1] != "+" && f[1] != "-" {
			return errors.New(`want a host and "+" or "-"`)
		}
		return n.rules.add(f[0], false, hostRule{i, line, f[1]})
	})
	if err != nil {
		return nil, err
	}
	return n, nil
}

// Normalize adds or removes the slash. The scope makes no difference.
func (n *slashNormalizer) Normalize(_ Scope, url string) (string, error) {
	u, _, err := n.normalize(url)
	return u, err
}

func (n *slashNormalizer) normalize(url string) (string, hostRule, error) {
	if n.o.NutchCompat {
		u, err := javaurl.Parse(url, Basic{}.javaKnows)
		if err != nil {
			return "", hostRule{}, err
		}
		r, ok := n.rules.exact[u.Host]
		if !ok {
			return url, r, nil
		}
		path := slashNutch(u.Path, r.value == "+")
		if path == u.Path {
			return url, r, nil
		}
		u.Port, u.HasRef = -1, false
		return rebuilt(&u, path), r, nil
	}
	_, _, host, _, rest, ok := cutURL(url)
	if !ok {
		return url, hostRule{}, nil
	}
	r, ok := n.rules.exact[strings.ToLower(host)]
	if !ok {
		return url, r, nil
	}
	path, after := rest, ""
	if i := strings.IndexAny(rest, "?#"); i >= 0 {
		path, after = rest[:i], rest[i:]
	}
	before := url[:len(url)-len(rest)]
	switch {
	case path == "" || path == "/":
	case r.value == "-":
		if path = strings.TrimRight(path, "/"); path == "" {
			path = "/"
		}
	case !strings.HasSuffix(path, "/") && !hasExtension(path):
		path += "/"
	}
	return before + path + after, r, nil
}

func slashNutch(path string, add bool) string {
	if len(path) < 2 {
		return path
	}
	if !add {
		return strings.TrimSuffix(path, "/")
	}
	dot := strings.LastIndexByte(path, '.')
	if strings.HasSuffix(path, "/") || longer(path, 5) && dot >= 0 && !longer(path[dot:], 6) {
		return path
	}
	return path + "/"
}

// hasExtension reports whether the last segment of a path looks like a file
// name.
func hasExtension(path string) bool {
	seg := path[strings.LastIndexByte(path, '/')+1:]
	dot := strings.LastIndexByte(seg, '.')
	ext := seg[dot+1:]
	if dot < 0 || ext == "" || len(ext) > 5 {
		return false
	}
	for i := range len(ext) {
		if !isAlnum(ext[i]) {
			return false
		}
	}
	return true
}

// Explain returns the rule that changes the URL.
func (n *slashNormalizer) Explain(url string) string {
	u, r, err := n.normalize(url)
	if err != nil || u == url {
		return ""
	}
	return ruleAt(r.line, r.text)
}

// String describes the normalizer.
func (n *slashNormalizer) String() string {
	return fmt.Sprintf("slash normalizer of %d rules", n.rules.len())
}
