package flags

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v3"
)

// otherNames maps names that Nutch users know to the verbs here.
var otherNames = map[string]string{
	"filterchecker": "check filter", "normalizerchecker": "check normalize", "parsechecker": "check parse", "robotsparser": "check robots",
	"indexchecker": "check parse", "showproperties": "check conf", "solrindex": "index", "solrclean": "clean", "solrdedup": "dedup",
	"dump": "readseg", "linkrank": "crawl -scoring pagerank", "nodedumper": "readlinks -format graph", "webgraph": "readlinks -format graph",
}

// SuggestVerbs says which verbs an unknown word may stand for; empty if none is like it.
func SuggestVerbs(root *cli.Command, word string) string {
	if other := otherNames[strings.ToLower(word)]; other != "" {
		return didYouMean("recrawl ", []string{other})
	}
	var verbs []string
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
	return didYouMean("recrawl ", verbs)
}

// SuggestFlags says which flags of a verb an unknown one may stand for; empty if none is
// like it.
func SuggestFlags(verb *cli.Command, word string) string {
	var names []string
	for _, f := range verb.Flags {
		if v, ok := f.(cli.VisibleFlag); ok && v.IsVisible() {
			names = append(names, f.Names()...)
		}
	}
	return didYouMean("-", similarNames(names, word))
}

// similarNames returns the names of flags that differ from a word by one slip or, if there
// are none, those that share a part with it, as user-agent and agent do.
func similarNames(names []string, word string) (similars []string) {
	if len(word) <= 2 { // any two letters are similar
		return nil
	}
	for _, name := range names {
		if len(name) > 2 && similar(word, name) {
			similars = append(similars, name)
		}
	}
	if len(similars) > 0 {
		return similars
	}
	parts := strings.Split(strings.ToLower(word), "-")
	for _, name := range names {
		if slices.ContainsFunc(strings.Split(name, "-"), func(p string) bool { return len(p) > 3 && slices.Contains(parts, p) }) {
			similars = append(similars, name)
		}
	}
	return similars
}

// didYouMean asks whether one of some names was meant, each with a prefix.
func didYouMean(prefix string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	return "; did you mean " + prefix + strings.Join(names, " or "+prefix) + "?"
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
