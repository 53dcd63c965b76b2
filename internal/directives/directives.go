// Package directives reads X-Robots-Tag headers and robots meta elements, for all crawlers or
// the one that is named. It is their only reader: package robots exports it, httpproto and
// htmlparse use it. It decides nothing; start with [Header] and [Meta].
package directives

import (
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/recrawl/recrawl/page"
)

// Header reads the values of X-Robots-Tag headers for the crawler with the given
// names: what they ask of all crawlers and of it, combined. The name of a crawler
// before a colon applies to all that follows in that header, up to the next
// name: "otherbot: noindex, nofollow, recrawl: nofollow".
func Header(values []string, names ...string) page.Directives {
	var d page.Directives
	products := Products(names)
	for _, v := range values {
		d = d.And(sum(all(v, products, true)))
	}
	return d
}

// Meta reads a meta element. It asks for something if its name is "robots" or
// one of the crawler's.
func Meta(name, content string, names ...string) page.Directives {
	if IsMeta(name, Products(names)) {
		return List(content)
	}
	return page.Directives{}
}

// IsMeta reports whether a meta element of the given name is for the crawler that
// Products returned.
func IsMeta(name string, products []string) bool {
	name = Trim(name)
	return strings.EqualFold(name, "robots") || Names(name, products)
}

// List reads the content of a meta element.
func List(content string) page.Directives { return sum(all(content, nil, false)) }

const (
	maxDirectives = 64 // there are about a dozen
	maxLength     = 128
)

// Text returns the directives of X-Robots-Tag headers that Header would read,
// in canonical spelling, followed by those it does not know, in lower case,
// each once, all separated by commas. Header and Meta read it as they would the
// headers. It is printable ASCII, and of limited length.
func Text(values []string, names ...string) string {
	out := spell(Header(values, names...))
	products := Products(names)
	for _, v := range values {
		for name, value := range all(v, products, true) {
			if _, ok := meaning(name, value); ok {
				continue
			}
			if value != "" {
				name += ": " + strings.ToLower(value)
			}
			if len(name) > maxLength || !printable(name) || slices.Contains(out, name) {
				continue
			}
			if out = append(out, name); len(out) == maxDirectives {
				return strings.Join(out, ",")
			}
		}
	}
	return strings.Join(out, ",")
}

// spell returns what must be said to ask for d.
func spell(d page.Directives) (out []string) {
	if d.NoIndex {
		out = append(out, "noindex")
	}
	if d.NoFollow {
		out = append(out, "nofollow")
	}
	if d.NoArchive {
		out = append(out, "noarchive")
	}
	if !d.UnavailableAfter.IsZero() {
		out = append(out, strings.ToLower(unavailableAfter+": "+d.UnavailableAfter.UTC().Format(time.RFC3339Nano)))
	}
	return out
}

func printable(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) < 0
}

// sum is what directives ask for, combined. Unknown ones ask for nothing.
func sum(list iter.Seq2[string, string]) (d page.Directives) {
	for name, value := range list {
		e, _ := meaning(name, value)
		d = d.And(e)
	}
	return d
}

// meaning returns what a directive asks for, and whether it is understood.
func meaning(name, value string) (page.Directives, bool) {
	switch name {
	case "all", "index", "follow":
		return page.Directives{}, true
	case "none":
		return page.Directives{NoIndex: true, NoFollow: true}, true
	case "noindex":
		return page.Directives{NoIndex: true}, true
	case "nofollow":
		return page.Directives{NoFollow: true}, true
	case "noarchive", "nocache":
		return page.Directives{NoArchive: true}, true
	case unavailableAfter:
		t, ok := date(value)
		return page.Directives{UnavailableAfter: t}, ok
	}
	return page.Directives{}, false
}

const unavailableAfter = "unavailable_after"

// all yields the directives of a list that are for all crawlers or for the products: a
// name in lower case, and the value after its colon, if any. If named is set, the
// list may contain names of crawlers. Of dates the first 64 count: a page may have
// a hundred thousand that are none.
func all(list string, products []string, named bool) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		mine, dates := true, 0
		for more := true; more; {
			var part string
			part, list, more = strings.Cut(list, ",")
			name, value, valued := strings.Cut(part, ":")
			for name = strings.ToLower(Trim(name)); valued && named && isName(name); name = strings.ToLower(Trim(name)) {
				mine = name == "*" || Names(name, products)
				part = value
				name, value, valued = strings.Cut(part, ":")
			}
			if !valued {
				if mine && !words(part, yield) {
					return
				}
				continue
			}
			if name == unavailableAfter {
				if dates++; dates > maxDirectives {
					continue
				}
			}
			if name == unavailableAfter && more {
				// A date may hold a comma: "Sunday, 06-Nov-94 08:49:37 GMT".
				next, after, found := strings.Cut(list, ",")
				if _, ok := date(value + "," + next); ok {
					value, list, more = value+","+next, after, found
				}
			}
			if mine && slices.Contains(valuedNames[:], name) && !yield(name, Trim(value)) {
				return
			}
		}
	}
}

// valuedNames are the directives that have a value after a colon; any other
// colon follows the name of a crawler.
var valuedNames = [...]string{unavailableAfter, "max-snippet", "max-image-preview", "max-video-preview"}

// isName reports whether the text before a colon is the name of a crawler. It
// begins with a letter: "06-Nov-94 08" does not.
func isName(s string) bool {
	return s != "" && (s[0] == '*' && len(s) == 1 || s[0] == '_' || 'a' <= s[0] && s[0] <= 'z') && !slices.Contains(valuedNames[:], s)
}

// words yields directives without a value, which commas should separate, and
// white space and semicolons often do.
func words(s string, yield func(string, string) bool) bool {
	for w := range strings.FieldsFuncSeq(s, func(r rune) bool { return r == ';' || strings.ContainsRune(Space, r) }) {
		if !yield(strings.ToLower(w), "") {
			return false
		}
	}
	return true
}
