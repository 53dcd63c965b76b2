package parse

import "github.com/recrawl/recrawl/internal/weburl"

// Resolve makes a reference absolute as browsers do (WHATWG URL, section 4.4) and as the stock parsers do, so that the
// links of all documents to a page lead to one record. It keeps the fragment. If base is not an absolute URL, only
// absolute references are resolved. ok is false if the reference is invalid, or the scheme of the result is not
// among schemes, which are in lower case; none means any.
func Resolve(base, ref string, schemes ...string) (absolute string, ok bool) {
	r := weburl.Resolver{Base: weburl.Parse(base), Schemes: schemes, Fragment: true}
	u, ok := r.Resolve([]byte(ref))
	return string(u), ok
}
