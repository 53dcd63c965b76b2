package robots_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/recrawl/recrawl/robots"
	"github.com/recrawl/recrawl/robots/temotorobots"
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

// TestAgainstTemoto: on the corpus temoto/robotstxt agrees but for the tests that
// are listed, each for a reason.
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

// TestAgainstTemotoAtRandom makes files out of what both parsers read rightly:
// paths of plain letters, no two rules of a length, no wildcards, groups whose tokens do not begin with one another.
func TestAgainstTemotoAtRandom(t *testing.T) {
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 0))
	path := func(n int) string {
		var b strings.Builder
		b.WriteByte('/')
		for range n {
			b.WriteByte("ab/"[rnd.IntN(3)])
		}
		return b.String()
	}
	forbidden := 0
	for range 3000 {
		var b strings.Builder
		for _, agent := range []string{"*", "foo", "bar", "qux"} {
			if rnd.IntN(3) == 0 {
				continue
			}
			fmt.Fprintf(&b, "%s: %s%s", []string{"User-agent", "user-agent", "USER-AGENT"}[rnd.IntN(3)], agent, []string{"\n", "\r\n"}[rnd.IntN(2)])
			for n := range 6 {
				if rnd.IntN(2) == 0 {
					fmt.Fprintf(&b, "%s: %s # %d\n", []string{"Allow", "Disallow", "disallow"}[rnd.IntN(3)], path(n), n)
				}
			}
			fmt.Fprintf(&b, "Disallow: %s\nSitemap: http://h/%s\n\n", path(6), agent)
		}
		file := []byte(b.String())
		for _, agent := range []string{"foo", "Bar", "zap"} {
			mine, theirs := robots.Parse(file, agent), temotorobots.Parse(file, agent)
			for range 5 {
				url := path(rnd.IntN(9))
				got, want := mine.Allowed(url), theirs.Allowed(url)
				if got != want {
					t.Fatalf("seed %d: %s for %s: %v, temoto says %v:\n%s", seed, url, agent, got, want, file)
				}
				if !got {
					forbidden++
				}
			}
			if fmt.Sprint(mine.Sitemaps) != fmt.Sprint(theirs.Sitemaps) {
				t.Fatalf("seed %d: sitemaps %q, temoto says %q", seed, mine.Sitemaps, theirs.Sitemaps)
			}
		}
	}
	if forbidden < 1000 {
		t.Errorf("only %d URLs were forbidden: the test shows little", forbidden)
	}
}
