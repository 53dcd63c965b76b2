package flags

import (
	"strings"

	"github.com/urfave/cli/v3"
)

// otherNames maps names that Nutch users know to the verbs here.
var otherNames = map[string]string{
	"filterchecker": "check filter", "normalizerchecker": "check normalize", "parsechecker": "check parse", "robotsparser": "check robots",
	"indexchecker": "check parse", "showproperties": "check conf", "solrindex": "index", "solrclean": "clean", "solrdedup": "dedup",
	"dump": "readseg", "linkrank": "crawl -scoring pagerank", "nodedumper": "readlinks -format graph", "webgraph": "readlinks -format graph",
}

// SuggestVerbs returns the verbs that an unknown word may stand for.
func SuggestVerbs(root *cli.Command, word string) (verbs []string) {
	if other := otherNames[strings.ToLower(word)]; other != "" {
		return []string{other}
	}
	for _, verb := range root.Commands {
		if verb.Hidden {
			continue
		}
		for _, name := range verb.Names() {
			if similar(word, name) {
				verbs = append(verbs, name)
			}
		}
		for _, sub := range verb.Commands {
			if sub.Name == word {
				verbs = append(verbs, verb.Name+" "+sub.Name)
			}
		}
	}
	return verbs
}

// SuggestFlags returns the flags of a verb that an unknown one may stand for.
func SuggestFlags(verb *cli.Command, word string) (flags []string) {
	for _, f := range verb.Flags {
		if v, ok := f.(cli.VisibleFlag); ok && !v.IsVisible() {
			continue
		}
		for _, name := range f.Names() {
			if len(name) > 2 && len(word) > 2 && similar(word, name) { // any two letters are alike
				flags = append(flags, name)
				break
			}
		}
	}
	return flags
}

// similar reports whether two words differ by one slip: a letter missing, added, replaced,
// or swapped with the next; or whether one is a prefix of the other.
func similar(a, b string) bool {
	a, b = strings.ToLower(a), strings.ToLower(b)
	if len(a) < len(b) {
		a, b = b, a
	}
	if len(b) >= 3 && strings.HasPrefix(a, b) {
		return true
	}
	i := 0
	for i < len(b) && a[i] == b[i] {
		i++
	}
	a, b = a[i:], b[i:]
	switch len(a) - len(b) {
	case 0:
		return len(a) > 0 && a[1:] == b[1:] || len(a) > 1 && a[0] == b[1] && a[1] == b[0] && a[2:] == b[2:]
	case 1:
		return a[1:] == b
	}
	return false
}
