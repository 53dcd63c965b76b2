package robots

import "strings"

// Directives reads the content of a meta robots element or of an X-Robots-Tag
// header without the name of a crawler: words separated by commas, whose case
// does not count. What it does not know it leaves out; of two that disagree the
// stricter holds.
func Directives(value string) (noindex, nofollow bool) {
	for d := range strings.SplitSeq(value, ",") {
		switch strings.ToLower(strings.TrimSpace(d)) {
		case "none":
			noindex, nofollow = true, true
		case "noindex":
			noindex = true
		case "nofollow":
			nofollow = true
		}
	}
	return noindex, nofollow
}
