package urlfilter

import (
	"errors"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/recrawl/recrawl/internal/javaurl"
)

// NewAjaxNormalizer makes a normalizer that rewrites URLs of pages that followed the former AJAX crawling
// scheme: "#!state" becomes the parameter "_escaped_fragment_=state", which the
// server sees, and in the scope [Indexer] "#!state" again, which people see. It
// has to come before normalizers that drop fragments, such as [Basic]; in the
// scope Indexer after them with Loops set to 1, or alone, by way of [NewScoped].
//
// NutchCompat writes escapes in lower case, decodes all of them on the way
// back, takes everything after the first "&" of the query as the parameter,
// and drops user information. (Nutch: urlnormalizer-ajax.)
func NewAjaxNormalizer(o Options) Normalizer { return ajaxNormalizer(o) }

type ajaxNormalizer Options

const escapedFragment = "_escaped_fragment_="

var errFragment = errors.New("no parameter " + escapedFragment)

// Normalize rewrites the URL for the scope.
func (n ajaxNormalizer) Normalize(scope Scope, url string) (string, error) {
	switch {
	case scope != Indexer:
		i := strings.Index(url, "#!")
		if i < 0 || !n.NutchCompat && strings.Contains(url[:i], "#") {
			return url, nil
		}
		separator := "?"
		if n.NutchCompat {
			u, err := javaurl.Parse(url, Basic{}.javaKnows)
			if err != nil {
				return "", err
			}
			if u.HasQuery {
				separator = "&"
			}
		} else if strings.Contains(url[:i], "?") {
			separator = "&"
		}
		return url[:i] + separator + escapedFragment + n.escape(url[i+2:]), nil
	case !strings.Contains(url, escapedFragment):
		return url, nil
	case n.NutchCompat:
		return unescapeFragmentNutch(url)
	}
	return unescapeFragment(url), nil
}

func (n ajaxNormalizer) escape(s string) string {
	hex := "0123456789ABCDEF"
	if n.NutchCompat {
		hex = "0123456789abcdef"
	}
	b := make([]byte, 0, len(s)+8)
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= utf8.RuneSelf || c == 0x7f && !n.NutchCompat || strings.IndexByte("#%&+", c) >= 0 {
			b = append(b, '%', hex[c>>4], hex[c&15])
		} else {
			b = append(b, c)
		}
	}
	return string(b)
}

// unescapeFragment removes the first such parameter from the query and drops
// others of the same name.
func unescapeFragment(url string) string {
	url, old, hasOld := strings.Cut(url, "#")
	head, query, _ := strings.Cut(url, "?")
	fragment, found := "", false
	var kept []string
	for p := range strings.SplitSeq(query, "&") {
		value, ok := strings.CutPrefix(p, escapedFragment)
		switch {
		case !ok:
			kept = append(kept, p)
		case !found:
			fragment, found = value, true
		}
	}
	if !found {
		if hasOld {
			url += "#" + old
		}
		return url
	}
	if len(kept) > 0 {
		head += "?" + strings.Join(kept, "&")
	}
	// Decode only what the other direction would have escaped; blanks, control
	// characters and a "%" that begins no escape have no place in a URL.
	b := make([]byte, 0, len(fragment))
	for i := 0; i < len(fragment); i++ {
		if fragment[i] == '%' {
			if i+2 >= len(fragment) || unhex(fragment[i+1]) < 0 || unhex(fragment[i+2]) < 0 {
				b = append(b, "%25"...)
				continue
			}
			switch code := fragment[i : i+3]; {
			case code == "%23" || code == "%26" || code == "%2B" || code == "%2b",
				code == "%25" && i+4 < len(fragment) && unhex(fragment[i+3]) >= 0 && unhex(fragment[i+4]) >= 0:
				b = append(b, byte(unhex(code[1])<<4|unhex(code[2])))
				i += 2
				continue
			}
		}
		b = append(b, fragment[i])
	}
	return head + "#!" + string(b)
}

func unescapeFragmentNutch(url string) (string, error) {
	u, err := javaurl.Parse(url, Basic{}.javaKnows)
	if err != nil {
		return "", err
	}
	if !u.HasQuery {
		return "", errFragment
	}
	_, param, more := strings.Cut(u.Query, "&")
	if !more {
		param, u.HasQuery = u.Query, false
	} else {
		// Nutch removes the parameter by a pattern made from it.
		re, err := regexp.Compile("&" + param)
		if err != nil {
			return "", err
		}
		if at := re.FindStringIndex(u.Query); at != nil {
			u.Query = u.Query[:at[0]] + u.Query[at[1]:]
		}
		u.HasQuery = u.Query != ""
	}
	if len(param) < len(escapedFragment) {
		return "", errFragment
	}
	fragment, err := javaurl.DecodeForm(param[len(escapedFragment):])
	if err != nil {
		return "", err
	}
	u.Ref, u.HasRef = "!"+fragment, true
	return rebuilt(&u, u.Path), nil
}

// explainScope says which way the URL is rewritten in a scope.
func (n ajaxNormalizer) explainScope(scope Scope, url string) string {
	if scope == Indexer {
		return explainChange(n, scope, url, escapedFragment+" -> #!")
	}
	return explainChange(n, scope, url, "#! -> "+escapedFragment)
}

// Explain says whether the URL is rewritten, in any scope but [Indexer].
func (n ajaxNormalizer) Explain(url string) string { return n.explainScope(AnyScope, url) }

// String names the normalizer.
func (ajaxNormalizer) String() string { return "ajax normalizer" }
