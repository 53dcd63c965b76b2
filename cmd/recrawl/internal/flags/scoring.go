package flags

import (
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl/scoring"
)

// Scoring returns the flag -scoring, which a crawl remembers.
func Scoring() cli.Flag {
	return &cli.StringFlag{Name: "scoring", Category: SelectionGroup, Usage: "order pages by these `FILTERS`, separated by commas: opic, pagerank, depth or depth=MAX, orphan, urlmeta=TAG+TAG, link. The crawl remembers them until others are given; conf: as -conf says (default: opic)"}
}

// wantsOrphans reports whether a filter wants to know about pages without inlinks.
func wantsOrphans(f scoring.Filter) bool {
	switch f := f.(type) {
	case scoring.Orphan, *scoring.Orphan:
		return true
	case scoring.Chain:
		return slices.ContainsFunc(f, wantsOrphans)
	}
	return false
}

// ParseScoring makes the filters that the flag names.
func ParseScoring(list string) (scoring.Filter, error) {
	const known = "opic, pagerank, depth, depth=MAX, orphan, urlmeta=TAG+TAG and link"
	var chain scoring.Chain
	var names []string
	var depth *scoring.Depth
	byScore := false
	for f := range strings.SplitSeq(list, ",") {
		name, value, given := strings.Cut(strings.TrimSpace(f), "=")
		name = strings.TrimPrefix(name, "scoring-")
		if slices.Contains(names, name) {
			return nil, Usagef("-scoring: %s is named twice", name)
		}
		names = append(names, name)
		if given != (name == "urlmeta") && !(given && name == "depth") && slices.Contains([]string{"opic", "pagerank", "orphan", "urlmeta", "link"}, name) {
			if given {
				return nil, Usagef("-scoring: %s takes no value, not %q", name, value)
			}
			return nil, Usagef("-scoring: urlmeta needs the names to pass on: urlmeta=TAG+TAG")
		}
		switch name {
		case "opic":
			chain, byScore = append(chain, scoring.OPIC{}), true
		case "pagerank":
			chain, byScore = append(chain, scoring.PageRank{}), true
		case "depth":
			depth = &scoring.Depth{}
			if given {
				n, err := strconv.Atoi(value)
				if err != nil || n < 1 {
					return nil, Usagef("-scoring: depth=%s is not a number of levels", value)
				}
				depth.Max = n
			}
			chain = append(chain, depth)
		case "orphan":
			chain = append(chain, scoring.Orphan{})
		case "urlmeta":
			tags := strings.Split(value, "+")
			if slices.Contains(tags, "") {
				return nil, Usagef("-scoring: urlmeta=%s has an empty name", value)
			}
			chain = append(chain, scoring.URLMeta(tags...))
		case "link":
			chain, byScore = append(chain, scoring.LinkAnalysis{}), true
		case "":
			return nil, Usagef("-scoring needs the names of filters: %s", known)
		default:
			return nil, Usagef("-scoring: unknown filter %q; choose from %s", name, known)
		}
	}
	if slices.Contains(names, "pagerank") && (slices.Contains(names, "opic") || slices.Contains(names, "link")) {
		return nil, Usagef("-scoring: pagerank replaces the scores of opic and link: leave those out")
	}
	if depth != nil {
		// If no filter gives scores, there are none to order by.
		depth.BreadthFirst = !byScore
	}
	return chain, nil
}
