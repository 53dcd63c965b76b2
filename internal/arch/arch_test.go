package arch

import (
	"os"
	"testing"
)

// The policy. It is a decision, not a description: when a test fails, change the
// code; change the data only if the decision was wrong, and write down why.
//
// Direction: root -> verbs -> policies, adapters, nouns -> vocabulary.
// Vocabulary imports nothing; nouns never import policies; policies never import
// stores or verbs; verbs never import each other: they meet in the segment.
var repo = policy{
	module: "github.com/recrawl/recrawl",

	// Which packages of the module a package may import, by its directory. A kit X/Xtest may
	// import X and whatever X may, and has a row to say that it exists, and which frame it uses.
	packages: map[string]row{
		"page":               {vocabulary, ""},
		"page/diff":          {vocabulary, ""},
		"internal/webhost":   {vocabulary, ""},
		"internal/textlines": {vocabulary, ""},
		"internal/javaregex": {vocabulary, ""},
		"internal/javaurl":   {vocabulary, ""},
		"internal/prefixed":  {vocabulary, ""},

		"crawldb":             {noun, "internal/prefixed"},
		"crawldb/crawldbtest": {kit, "internal/kit internal/testlevel"},
		"hostdb":              {noun, "crawldb internal/webhost"},
		"hostdb/hostdbtest":   {kit, "internal/kit"},
		"segment":             {noun, "page crawldb hostdb protocol"},
		"segment/segmenttest": {kit, "internal/kit"},
		"linkdb":              {noun, "page crawldb segment internal/extsort internal/places"},
		"linkdb/linkdbtest":   {kit, "internal/kit internal/testlevel"},

		"crawldb/groups":            {noun, "crawldb hostdb linkdb segment internal/prefixed"},
		"crawldb/groups/groupstest": {kit, "internal/kit"},

		"schedule":                {policyKind, "crawldb internal/textlines"},
		"schedule/scheduletest":   {kit, "internal/kit"},
		"scoring":                 {policyKind, "page crawldb"},
		"scoring/scoringtest":     {kit, "internal/kit"},
		"urlfilter":               {policyKind, "internal/javaregex internal/javaurl internal/textlines internal/webhost"},
		"urlfilter/urlfiltertest": {kit, "internal/kit"},
		"signature":               {policyKind, "page"},

		"protocol":                     {adapter, "page"},
		"protocol/httpproto":           {adapter, "page protocol internal/directives internal/recent internal/unpack internal/webhost internal/weburl"},
		"protocol/fileproto":           {adapter, "page protocol"},
		"protocol/protocoltest":        {kit, "internal/kit"},
		"protocol/robots":              {adapter, "page hostdb protocol internal/directives internal/weburl"},
		"protocol/robots/temotorobots": {adapter, "protocol/robots"},
		"parse":                        {adapter, "page internal/weburl"},
		"parse/htmlparse":              {adapter, "page parse internal/charset internal/directives internal/javaurl internal/weburl"},
		"parse/parsetest":              {kit, "internal/kit"},
		"parse/sitemap":                {adapter, "internal/charset internal/unpack internal/weburl"},
		"nutch/expression":             {adapter, "crawldb hostdb"},
		"nutch/nutchtext":              {adapter, "crawldb hostdb linkdb internal/textlines"},
		"protocol/webtest":             {adapter, "page protocol"},

		"crawldb/inject":  {verb, "crawldb schedule scoring urlfilter internal/extsort internal/prefixed internal/textlines"},
		"generate":        {verb, "crawldb hostdb schedule scoring segment urlfilter internal/frontier internal/grace"},
		"fetch":           {verb, "page crawldb hostdb parse protocol protocol/robots scoring segment signature parse/sitemap urlfilter internal/grace internal/nutchvisit internal/recent internal/weburl"},
		"update":          {verb, "page crawldb crawldb/groups hostdb protocol schedule scoring segment urlfilter internal/extsort internal/frontier internal/nutchvisit internal/places"},
		"scoring/rank":    {verb, "crawldb protocol schedule scoring segment internal/extsort"},
		"crawldb/dedup":   {verb, "crawldb hostdb internal/extsort"},
		"hostdb/hoststat": {verb, "crawldb hostdb urlfilter"},
		"crawldb/move":    {verb, "crawldb hostdb linkdb segment"},
		"crawldb/merge":   {verb, "page crawldb linkdb protocol segment internal/extsort internal/grace"},
		"index":           {verb, "page crawldb linkdb protocol scoring segment internal/extsort"},
		"index/indextest": {kit, "internal/kit"},
		"index/vectors":   {front, "index"},

		"stores/memstore":              {store, "crawldb hostdb linkdb segment"},
		"stores/dirstore":              {store, "segment"},
		"stores/dirstore/dirstoretest": {kit, ""},

		"internal/extsort":    {tool, ""},
		"internal/charset":    {adapter, ""},
		"internal/directives": {adapter, "page"},
		"internal/weburl":     {adapter, "internal/webhost"},
		"internal/grace":      {tool, ""},
		"internal/testlevel":  {frame, ""},
		"internal/places":     {tool, "internal/extsort"},
		"internal/recent":     {vocabulary, ""},
		"internal/unpack":     {adapter, ""},
		"internal/frontier":   {adapter, "crawldb internal/prefixed"},
		"internal/nutchvisit": {adapter, "crawldb protocol segment"},
		"internal/arch":       {tool, ""},
		"internal/kit":        {frame, ""},

		"nutch/nutchconf": {front, ". crawldb crawldb/dedup nutch/expression fetch generate hostdb hostdb/hoststat index crawldb/inject linkdb parse parse/htmlparse protocol/fileproto protocol/httpproto " +
			"schedule scoring signature update urlfilter"},
		"metrics":        {front, ". fetch protocol segment"},
		"crawldb/verify": {root, "page crawldb hostdb linkdb segment"},

		".": {root, "page page/diff crawldb hostdb segment linkdb schedule scoring urlfilter signature protocol protocol/httpproto protocol/robots parse parse/htmlparse " +
			"crawldb/groups internal/frontier crawldb/inject generate fetch update scoring/rank crawldb/dedup crawldb/merge index internal/grace internal/prefixed internal/weburl stores/memstore stores/dirstore"},
	},

	// The third-party modules, and the packages that may import them. Each is a
	// decision; a service that embeds the module gets all of them.
	thirdParty: map[string]string{
		"github.com/cespare/xxhash/v2":  "generate scoring/rank internal/extsort stores/dirstore",
		"github.com/expr-lang/expr":     "nutch/expression",
		"github.com/klauspost/compress": "segment protocol/httpproto internal/unpack",
		"github.com/temoto/robotstxt":   "protocol/robots/temotorobots",
		"golang.org/x/net":              "hostdb urlfilter parse/htmlparse protocol/httpproto internal/webhost",
		"golang.org/x/sync":             "fetch",
		"golang.org/x/text":             "parse/htmlparse parse/sitemap internal/charset",
	},

	// Package-level variables that are tables: made once, by constants and pure
	// functions, and never written to, which the test checks as far as it can see.
	tables: map[string]string{
		"crawldb/crawldbtest":     "dueEpoch",
		"crawldb/groups":          "suffixList",
		"internal/directives":     "valuedNames",
		"internal/webhost":        "profile",
		"nutch/nutchconf":         "dbProperties fetchProperties filterClasses foreign indexProperties normalizerClasses parseProperties renamed ruleProperties scoringClasses stock",
		"internal/weburl":         "classes",
		"parse/htmlparse":         "plain tagClasses",
		"parse/parsetest":         "fills made pieces",
		"protocol/httpproto":      "badPorts compatible dateLayouts global6 nat64 nat64Local sixToFour special teredo",
		"protocol/robots":         "fields plain",
		"schedule":                "oldest",
		"schedule/scheduletest":   "ages intervals now outcomes",
		"scoring/scoringtest":     "amounts scores start",
		"urlfilter":               "class defaultSuffixes idna2003 idna2008",
		"urlfilter/urlfiltertest": "scopes",
		"protocol/webtest":        "defaultPeriods defaultStart foreignWords named plainWords trouble",
	},

	// Where panic stands in code that is not a test.
	panics: map[string]string{
		"internal/kit":     "ends a rule, and is recovered by the run of the rule",
		"nutch/expression": "ends the parsing of an expression, and is recovered by the translator",
	},
}

func TestImports(t *testing.T) {
	report(t, repo.checkImports(os.DirFS("../..")))
}

func TestTableKeepsDirection(t *testing.T) {
	report(t, repo.checkDirection())
}

func TestHabits(t *testing.T) {
	report(t, repo.checkHabits(os.DirFS("../..")))
}

func report(t *testing.T, found []string) {
	t.Helper()
	for _, f := range found {
		t.Error(f)
	}
}
