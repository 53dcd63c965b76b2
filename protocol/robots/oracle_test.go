package robots_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/recrawl/recrawl/internal/testlevel"
	"github.com/recrawl/recrawl/protocol/robots"
	"github.com/recrawl/recrawl/protocol/robots/temotorobots"
)

// temotoDiffers names the tests of the corpus in which temoto/robotstxt gives
// other answers than Parse, and why: see package temotorobots for its faults.
var temotoDiffers = map[string]string{
	"google should ID_LineSyntax_Groups":                                            "rejects a file with a rule before the first group",
	"google-spec correctness/groups":                                                "rejects a file with a rule before the first group",
	"rep-cpp NoLeadingUserAgent":                                                    "rejects a file with a rule before the first group",
	"google should ID_LongestMatch":                                                 "the first of equal rules wins; length of an expression",
	"google-spec correctness/most-specific-match":                                   "the first of equal rules wins; length of an expression",
	"crawler-commons GoogleRobotsTxtTest.ID_LongestMatch":                           "the first of equal rules wins; length of an expression",
	"crawler-commons SimpleRobotRulesParserTest.testPrecedenceOfRules":              "length of an expression",
	"google should handle a 3 byte character":                                       "percent-encoding",
	"google should handle a percent encoded 3 byte character":                       "percent-encoding",
	"google should handle a percent encoded unreserved US-ASCII":                    "percent-encoding",
	"google-spec correctness/non-ascii-paths":                                       "percent-encoding",
	"crawler-commons GoogleRobotsTxtTest.ID_Encoding":                               "percent-encoding",
	"crawler-commons SimpleRobotRulesParserTest.testUnicodeUnescapedPaths":          "percent-encoding",
	"crawler-commons SimpleRobotRulesParserTest.testEscapedPaths":                   "percent-encoding",
	"rep-cpp RfcExample":                                                            "percent-encoding",
	"google should ID_SpecialCharacters":                                            "a comment without white space before it",
	"google-spec correctness/special-characters":                                    "a comment without white space before it",
	"google-spec stress/860237":                                                     "white space before the colon",
	"crawler-commons SimpleRobotRulesParserTest.testFormatErrors":                   "white space before the colon; no colon",
	"google-spec stress/308278":                                                     "a rule with a wildcard matches anywhere in a path",
	"google should GoogleOnly_IndexHTMLisDirectory":                                 "index.html is not its directory",
	"google-spec correctness/index-page":                                            "index.html is not its directory",
	"google should GoogleOnly_LineTooLong":                                          "lines have no limit",
	"google-spec correctness/BOM-characters":                                        "a bad byte order mark",
	"google-spec stress/369883":                                                     "the token of a name with digits",
	"google-spec stress/701159":                                                     "a star after a token",
	"crawler-commons SimpleRobotRulesParserTest.testOverrideUserAgentMatcher":       "a token with a version",
	"crawler-commons SimpleRobotRulesParserTest.testAgentTokenMatch":                "a token with a version",
	"crawler-commons SimpleRobotRulesParserTest.testSpacesInMultipleUserAgentNames": "a list of tokens",
	"crawler-commons SimpleRobotRulesParserTest.testSelectCrawlDelayGroup":          "Crawl-delay ends a group",
	"crawler-commons SimpleRobotRulesParserTest.testCrawlDelayGroupMerging":         "Crawl-delay ends a group",
	"crawler-commons SimpleRobotRulesParserTest.testHtmlMarkupInRobotsTxt":          "a web page",
	"crawler-commons SimpleRobotRulesParserTest.testRobotsWithUTF16BEBOM":           "UTF-16",
}

// TestAgainstTemoto: on the corpus temoto/robotstxt agrees except for the tests listed, each
// with a reason.
func TestAgainstTemoto(t *testing.T) {
	differs := make(map[string]bool)
	for _, c := range corpus(t) {
		name := c.Suite + " " + c.Test
		if c.allowed(robots.Parse) == c.allowed(temotorobots.Parse) {
			continue
		}
		differs[name] = true
		if temotoDiffers[name] == "" {
			t.Errorf("line %d: %s %q %s: temoto says otherwise of\n%.2000s", c.Line, name, c.Agents, c.URL, c.Robots)
		}
	}
	for name := range temotoDiffers {
		if !differs[name] {
			t.Errorf("%s: temoto agrees but is listed", name)
		}
	}
}

// TestAgainstTemotoAtRandom makes files of what both parsers read correctly: names that are not
// prefixes of each other, alone or in groups that may occur again, a Crawl-delay at the end of a
// group, and plain paths, each of which is allowed or forbidden throughout the file.
func TestAgainstTemotoAtRandom(t *testing.T) {
	testlevel.SkipInRace(t)
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 0))
	one := func(of ...string) string { return of[rnd.IntN(len(of))] }
	path := func(n int) string {
		var b strings.Builder
		b.WriteByte('/')
		for range n {
			b.WriteString(one("a", "b", "/", "?", "=", "&", "%2F", "-", "~", "."))
		}
		return b.String()
	}
	forbidden, delays := 0, 0
	for range 3000 {
		var b strings.Builder
		end := func() { b.WriteString(one("", " ", " # x", "\t# allow: /")); b.WriteString(one("\n", "\r\n", "\n\n")) }
		agents, fields := []string{"*", "foo", "bar-x", "Qux"}, make(map[string]string)
		slow, paths := make(map[string]bool), []string{}
		for range 1 + rnd.IntN(5) {
			names := []string{one(agents...)}
			if rnd.IntN(3) == 0 {
				names = append(names, one(agents...))
			}
			for _, name := range names {
				fmt.Fprintf(&b, "%s: %s", one("User-agent", "user-agent", "USER-AGENT", "  User-Agent"), name)
				end()
			}
			for range 1 + rnd.IntN(5) {
				p := path(rnd.IntN(4))
				if fields[p] == "" {
					fields[p], paths = one("Allow", "Disallow", "disallow"), append(paths, p)
				}
				fmt.Fprintf(&b, "%s: %s", fields[p], p)
				end()
				if rnd.IntN(4) == 0 {
					b.WriteString(one("Sitemap: http://h/"+p, "Host: h", "# x", "Noindex: /", "Unknown-field: /x"))
					b.WriteByte('\n')
				}
			}
			if len(names) == 1 && !slow[names[0]] && rnd.IntN(2) == 0 {
				slow[names[0]] = true
				fmt.Fprintf(&b, "Crawl-delay: %s", one("1", "2.5", "0.1", "10"))
				end()
			}
		}
		file := []byte(b.String())
		for _, agent := range []string{"foo", "Bar-X", "qux", "zap"} {
			mine, theirs := robots.Parse(file, agent), temotorobots.Parse(file, agent)
			for i := range 6 {
				url := path(rnd.IntN(6))
				if i%2 == 0 {
					url = one(paths...) + path(rnd.IntN(2))[1:]
				}
				got, want := mine.Allowed(url), theirs.Allowed(url)
				if got != want {
					t.Fatalf("seed %d: %s for %s: %v, temoto says %v:\n%s", seed, url, agent, got, want, file)
				}
				if !got {
					forbidden++
				}
			}
			if mine.CrawlDelay != theirs.CrawlDelay {
				t.Fatalf("seed %d: Crawl-delay for %s: %v, temoto says %v:\n%s", seed, agent, mine.CrawlDelay, theirs.CrawlDelay, file)
			}
			if mine.HasCrawlDelay {
				delays++
			}
			// A Sitemap line that comes again is one sitemap.
			if want := slices.Compact(slices.Sorted(slices.Values(theirs.Sitemaps))); !slices.Equal(slices.Sorted(slices.Values(mine.Sitemaps)), want) {
				t.Fatalf("seed %d: sitemaps %q, temoto says %q", seed, mine.Sitemaps, want)
			}
		}
	}
	if forbidden < 5000 || delays < 1000 {
		t.Errorf("only %d URLs were forbidden and %d delays given: the test shows little", forbidden, delays)
	}
}
