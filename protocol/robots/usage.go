package robots

import (
	"maps"
	"slices"
	"strings"
)

// Usage is what a site says its content may be used for: categories with whether that use is
// allowed. If a category is not there, the site says nothing about it. The categories are those of
// the IETF's AI Preferences (draft-ietf-aipref-vocab): "bots", "search", "train-ai" and others that may
// come; "ai-input" of Content-Signal (contentsignals.org); and "tdm", text and data mining, of the TDM
// Reservation Protocol.
type Usage map[string]bool

// Allows reports whether content may be used for a category. If the site says nothing of it, the broader category
// decides; if it says nothing of that either, the use is allowed.
func (u Usage) Allows(category string) bool {
	for c := category; c != ""; c = broader(c) {
		if allowed, said := u[c]; said {
			return allowed
		}
	}
	return true
}

// broader returns the category that another is a part of.
func broader(category string) string {
	switch category {
	case "train-genai":
		return "train-ai"
	case "train-ai":
		return "tdm"
	case "bots":
		return ""
	}
	return "bots"
}

// String returns the categories in the form of Content-Usage, sorted: "search=y, train-ai=n".
func (u Usage) String() string {
	var b strings.Builder
	for _, c := range slices.Sorted(maps.Keys(u)) {
		if b.Len() > 0 {
			b.WriteString(", ")
		}
		b.WriteString(c)
		if u[c] {
			b.WriteString("=y")
		} else {
			b.WriteString("=n")
		}
	}
	return b.String()
}

// Add adds what another source says. Where the two differ, the use is not allowed.
func (u Usage) Add(other Usage) {
	for c, allowed := range other {
		if before, said := u[c]; !said || before {
			u[c] = allowed
		}
	}
}

const maxCategories = 20

// ParseUsage reads the value of a Content-Usage or Content-Signal header or line, such as "train-ai=n,
// search=y" or "ai-train=no". What it does not understand is left out.
func ParseUsage(value string) Usage {
	u := Usage{}
	for member := range strings.SplitSeq(value, ",") {
		member, _, _ = strings.Cut(member, ";") // parameters
		name, text, _ := strings.Cut(member, "=")
		if name = category(trim(name)); name == "" || len(u) >= maxCategories {
			continue
		}
		switch strings.ToLower(trim(text)) {
		case "y", "yes", "?1":
			u.Add(Usage{name: true})
		case "n", "no", "?0":
			u.Add(Usage{name: false})
		}
	}
	return u
}

// category returns the name of a category; empty if it cannot be one.
func category(name string) string {
	name = strings.ToLower(name)
	if name == "ai-train" { // of Content-Signal
		return "train-ai"
	}
	if len(name) > 40 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-_.") != "" {
		return ""
	}
	return name
}

// PageUsage returns what a page says for itself: directives is what X-Robots-Tag headers or meta
// elements of robots say, separated by commas or white space, among which a protocol adds
// what the headers Content-Usage and TDM-Reservation say, as "train-ai=n" and "tdm=n". "noai" forbids
// training.
func PageUsage(directives ...string) Usage {
	u := Usage{}
	for _, d := range directives {
		for word := range strings.FieldsFuncSeq(strings.ToLower(d), func(r rune) bool { return r == ',' || strings.ContainsRune(space, r) }) {
			if word == "noai" {
				word = "train-ai=n"
			}
			u.Add(ParseUsage(word))
		}
	}
	return u
}

// usageRule is a Content-Usage or Content-Signal line of a group of user agents.
type usageRule struct {
	rule
	usage Usage
}

// usageLine reads the value of such a line. Content-Usage may begin with the pattern of a path.
func (p *parser) usageLine(value string) {
	p.afterUsage = true
	if p.usages == [2]bool{} {
		return
	}
	pattern := ""
	if strings.HasPrefix(value, "/") || strings.HasPrefix(value, "*") {
		end := strings.IndexAny(value, space)
		if end < 0 {
			return
		}
		pattern, value = value[:end], value[end:]
	}
	r := usageRule{newRule(pattern, true), ParseUsage(value)}
	if len(r.usage) == 0 {
		return
	}
	r.pattern, r.line = strings.Clone(r.pattern), p.lineNumber
	for i, on := range p.usages {
		if on {
			p.usage[i] = append(p.usage[i], r)
		}
	}
}

// Usage returns what the file says a URL may be used for: of the lines that match its path, the longest
// patterns count, as for Allow and Disallow.
func (r *Rules) Usage(url string) Usage {
	u, _ := r.usageOf(url)
	return u
}

// usageOf also returns the line of the last rule that counts.
func (r *Rules) usageOf(url string) (u Usage, line int32) {
	u = Usage{}
	if len(r.usage) == 0 {
		return u, 0
	}
	path, longest := canonicalPath(pathOf(url)), -1
	for i := range r.usage {
		rule := &r.usage[i]
		n := rule.octets()
		if n < longest || !rule.match(path) {
			continue
		}
		if n > longest {
			longest, u = n, Usage{}
		}
		u.Add(rule.usage)
		line = rule.line
	}
	return u, line
}

// reserved returns the first of the purposes that the file reserves for a URL, and the line; empty if it
// reserves none.
func (r *Rules) reserved(url string) (purpose string, line int32) {
	if len(r.purposes) == 0 || len(r.usage) == 0 || canonicalPath(pathOf(url)) == "/robots.txt" {
		return "", 0
	}
	u, line := r.usageOf(url)
	for _, p := range r.purposes {
		if !u.Allows(p) {
			return p, line
		}
	}
	return "", 0
}
