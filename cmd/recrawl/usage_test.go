package main_test

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var verbs = []string{"demo", "crawl", "inject", "generate", "freegen", "sitemap", "fetch", "parse", "update", "invert", "updatehostdb", "dedup", "status", "readdb", "explain", "hosts", "readlinks", "readseg", "index", "clean", "domainstats", "protocolstats", "crawlcomplete", "schedule", "import", "mergedb", "mergelinkdb", "mergesegs", "verify", "salvage", "compact", "backup", "move"}

func TestHelp(t *testing.T) {
	t.Parallel()
	root := recrawl(t)
	if root.code != 0 || root.err != "" {
		t.Errorf("recrawl: exit %d, %q on standard error; want its help", root.code, root.err)
	}
	for _, flag := range []string{"--help", "-help", "-h"} {
		if r := recrawl(t, flag); r != root {
			t.Errorf("recrawl %s is not what recrawl alone says:\n%+v", flag, r)
		}
	}
	for _, want := range []string{"Usage: recrawl VERB", "recrawl demo\n", "-rounds 2 https://example.com/", "Exit codes:"} {
		if !strings.Contains(root.out, want) {
			t.Errorf("recrawl --help does not say %q", want)
		}
	}
	if strings.Contains(root.out, "demo-crawl") {
		t.Error("recrawl --help shows a verb that is none of the user's business")
	}
	helps := map[string]string{"": root.out}
	for _, verb := range verbs {
		if !strings.Contains(root.out, "\n  "+verb+" ") {
			t.Errorf("recrawl --help does not list %s", verb)
		}
		r := recrawl(t, verb, "--help")
		if r.code != 0 || r.err != "" {
			t.Errorf("recrawl %s --help: exit %d, %q on standard error", verb, r.code, r.err)
		}
		helps[verb] = r.out
		for _, want := range []string{"recrawl " + verb + ": ", "Usage: recrawl " + verb + " [flags]", "recrawl " + verb + cmp.Or(map[string]string{"demo": " -keep", "schedule": " -every 7d"}[verb], " -d crawl")} {
			if !strings.Contains(r.out, want) {
				t.Errorf("recrawl %s --help does not say %q:\n%s", verb, want, r.out)
			}
		}
		if verb != "demo" && verb != "schedule" && !strings.Contains(r.out, "\n  -d DIR ") {
			t.Errorf("recrawl %s --help does not show -d DIR", verb)
		}
		creates := strings.Contains(strings.Join(strings.Fields(r.out), " "), "if it does not exist")
		if want := slices.Contains([]string{"crawl", "inject", "freegen", "sitemap", "import", "mergedb", "mergelinkdb"}, verb); creates != want {
			t.Errorf("recrawl %s --help says that it creates a crawl: %v, want %v", verb, creates, want)
		}
		if flag := strings.Index(r.out, "\n  --"); flag >= 0 {
			t.Errorf("recrawl %s --help shows a flag of another verb: %q", verb, r.out[flag:flag+20])
		}
	}
	for _, verb := range []string{"config", "completion", "version"} {
		helps[verb] = ok(t, verb, "--help")
		if !strings.Contains(root.out, "\n  "+verb+" ") || !strings.Contains(helps[verb], "recrawl "+verb+": ") || !strings.Contains(helps[verb], "\n  recrawl "+verb) && !strings.Contains(helps[verb], "recrawl "+verb+" bash") {
			t.Errorf("recrawl --help does not list %s, or its own help has no example:\n%s", verb, helps[verb])
		}
	}
	helps["crawl --help-all"] = ok(t, "crawl", "--help-all")
	for _, part := range []string{"\n  -deny-network PREFIX", "A seed file has", "A -host-rules file has"} {
		if !strings.Contains(helps["crawl --help-all"], part) || strings.Contains(helps["crawl"], part) {
			t.Errorf("%q is in the short help of crawl, or not in the whole", part)
		}
	}
	if lines := strings.Count(helps["crawl"], "\n"); lines > 100 || !strings.Contains(helps["crawl"], " -deny-network ") {
		t.Errorf("crawl --help has %d lines, or does not name every flag", lines)
	}
	for _, verb := range []string{"check", "scoring"} { // those that do nothing by themselves
		if !strings.Contains(root.out, "\n  "+verb+" ") {
			t.Errorf("recrawl --help does not list %s", verb)
		}
		r := recrawl(t, verb, "--help")
		if r.code != 0 || r.err != "" || !strings.Contains(r.out, "recrawl "+verb+": ") {
			t.Errorf("recrawl %s --help: %+v", verb, r)
		}
		helps[verb] = r.out
		for _, args := range [][]string{{verb}, {verb, "nothing"}} {
			if r := recrawl(t, args...); r.code != 2 || !strings.Contains(r.err, "recrawl") || r.out != "" {
				t.Errorf("%v: %+v", args, r)
			}
		}
	}
	for verb, text := range helps {
		for line := range strings.Lines(text) {
			if line = strings.TrimSuffix(line, "\n"); len(line) > 80 || strings.HasSuffix(line, " ") || strings.ContainsAny(line, "\t`{}") && !strings.Contains(line, "jq") {
				t.Errorf("recrawl %s --help: %q is too long for a terminal, or not clean", verb, line)
			}
		}
	}
}

// A request for help in the middle of a command line gives help, and does nothing else.
func TestHelpAnywhere(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "crawl")
	root, inject, filter := ok(t, "--help"), ok(t, "inject", "--help"), ok(t, "check", "filter", "--help")
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"help"}, root},
		{[]string{"help", "inject"}, inject},
		{[]string{"--help", "inject"}, inject},
		{[]string{"inject", "-d", dir, "http://a.example/", "-h"}, inject},
		{[]string{"inject", "--help", "-d", dir, "-seeds", "missing"}, inject},
		{[]string{"help", "check", "filter"}, filter},
		{[]string{"check", "--help", "filter"}, filter},
		{[]string{"check", "filter", "http://a.example/", "--help"}, filter},
	} {
		if r := recrawl(t, tt.args...); r.code != 0 || r.out != tt.want || r.err != "" {
			t.Errorf("recrawl %q: exit %d, %q on standard error, and says\n%s", tt.args, r.code, r.err, r.out)
		}
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("a call for help made a directory")
	}
}

func TestInvalidCommandLines(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "crawl")
	noPEM := write(t, "no.pem", "no certificate\n")
	crawl := func(args ...string) []string {
		return append([]string{"crawl", "-d", dir, "-agent", "testbot"}, args...)
	}
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"craw"}, `unknown verb "craw"; did you mean recrawl crawl`},
		{[]string{"simulate"}, "did you mean recrawl schedule simulate or recrawl scoring simulate?"},
		{[]string{"raeddb"}, "did you mean recrawl readdb?"},
		{[]string{"verfy"}, "did you mean recrawl verify?"},
		{[]string{"parsechecker"}, "did you mean recrawl check parse?"},
		{[]string{"frobnicate"}, `unknown verb "frobnicate"` + "\n"},
		{[]string{"-bogus"}, "-bogus"},
		{crawl("-bogus"), "unknown flag -bogus\n"},
		{crawl("-x"), "unknown flag -x\n"},
		{crawl("-topn", "5"), "unknown flag -topn; did you mean -topN?\n"},
		{crawl("--thread", "5"), "did you mean -threads or -threads-per-host?\n"},
		{crawl("--user-agent", "x"), "unknown flag -user-agent; did you mean -agent?\nrecrawl: see recrawl crawl --help\n"},
		{[]string{"check", "filter", "-x"}, "unknown flag -x\nrecrawl: see recrawl check filter --help\n"},
		{[]string{"generate", "-adddayz", "5"}, "did you mean -adddays?\n"},
		{[]string{"generate", "-numFetcher", "5"}, "did you mean -numFetchers?\n"},
		{[]string{"readdb", "-d"}, "needs an argument: -d"},
		{[]string{"crawl", "-agent", "testbot"}, "-d DIR is required"},
		{[]string{"readdb", "-stats"}, "-d DIR is required"},
		{[]string{"readdb", "-stats", "-d", ""}, "-d DIR is required"},
		{[]string{"crawl", "-d", dir}, "-agent NAME is required"},
		{[]string{"fetch", "-d", dir}, "-agent NAME is required"},
		{[]string{"crawl", "-d", dir, "-agent", "my bot"}, `"my bot" is not a valid crawler name`},
		{crawl("-now", "yesterday"), `"yesterday" is not an RFC 3339 time`},
		{crawl("-now", "2026-01-05"), "is not an RFC 3339 time"},
		{[]string{"readdb", "-d", dir, "-stats", "-now", "x"}, "-now"},
		{[]string{"verify", "-d", dir, "-now", "x"}, "-now"},
		{[]string{"salvage", "-d", dir, "-now", "x", dir + "2"}, "-now"},
		{crawl("-proxy", "socks5://localhost"), "option Proxy is not http://host:port"},
		{crawl("-connect-to", "localhost:80"), "want HOST1:PORT1:HOST2:PORT2"},
		{crawl("-connect-to", "::127.0.0.1:http"), "-connect-to"},
		{crawl("-cacert", filepath.Join(dir, "missing.pem")), "-cacert"},
		{crawl("-cacert", noPEM), "no certificate in"},
		{crawl("-topN", "-1"), "-topN: -1 is negative"},
		{crawl("-adddays", "10000000"), "-adddays: 10000000 is more than a hundred years"},
		{crawl("-min-score", "NaN"), "-min-score: NaN is not a score"},
		{crawl("-time-limit", "-1s"), "-time-limit: -1s is negative"},
		{crawl("-follow-depth", "-1"), "-follow-depth: -1 is negative"},
		{crawl("-follow-links", "-1"), "-follow-links: -1 is negative"},
		{crawl("-redirects", "-1"), "-redirects: -1 is negative"},
		{crawl("-min-rate", "-1"), "-min-rate: -1 is not a rate"},
		{crawl("-min-rate", "NaN"), "-min-rate: NaN is not a rate"},
		{crawl("-queue-by", "address"), `-queue-by: "address" is not one of host, domain and ip`},
		{crawl("-threads-per-host", "-1"), "-threads-per-host: -1 is negative"},
		{crawl("-min-delay", "-1s"), "-min-delay: -1s is negative"},
		{crawl("-max-rate", "-1"), "-max-rate: -1 is not a rate"},
		{crawl("-max-rate", "NaN"), "-max-rate: NaN is not a rate"},
		{crawl("-max-bandwidth", "fast"), `-max-bandwidth: "fast" is not a number of bytes above zero`},
		{crawl("-host-rules", filepath.Join(dir, "missing")), "-host-rules: open"},
		{crawl("-host-rules", noPEM), "no.pem:1: "},
		{crawl("-topN", "many"), "-topN"},
		{crawl("-max-per-host", "-1"), "-max-per-host: -1 is negative"},
		{crawl("-adddays", "-1"), "-adddays: -1 is negative"},
		{crawl("-threads", "-1"), "-threads: -1 is negative"},
		{crawl("-rounds", "-1"), "-rounds: -1 is negative"},
		{crawl("-round-time", "-1s"), "-round-time: -1s is negative"},
		{crawl("-delay", "-1s"), "-delay: -1s is negative"},
		{crawl("-delay", "5"), "-delay"},
		{crawl("example.com"), `"example.com" is not a URL`},
		{crawl("-seeds", ""), "-seeds needs the name of a file"},
		{[]string{"inject", "-d", dir}, "inject needs URLs"},
		{[]string{"generate", "-d", dir, "-segments", "0"}, "-segments: 0 is less than one"},
		{[]string{"generate", "-d", dir, "extra"}, `takes no argument "extra"`},
		{[]string{"readdb", "-d", dir}, "needs one of -stats"},
		{[]string{"readdb", "-d", dir, "-stats", "-dump"}, "needs one of -stats"},
		{[]string{"readdb", "-d", dir, "-stats", "extra"}, `takes no argument "extra"`},
		{[]string{"readdb", "-d", dir, "-top", "0"}, "-top: 0 is less than one"},
		{[]string{"readdb", "-d", dir, "-dump", "-format", "xml"}, `"xml" is not one of text, json, csv and nutch`},
		{[]string{"readdb", "-d", dir, "-stats", "-format", "csv"}, "-format csv is for -dump"},
		{[]string{"readdb", "-d", dir, "-stats", "-status", "gone"}, "-status is for -dump"},
		{[]string{"readdb", "-d", dir, "-dump", "-sort"}, "-sort is for -stats"},
		{[]string{"readdb", "-d", dir, "-dump", "-min", "1"}, "-min is for -top"},
		{[]string{"readdb", "-d", dir, "-dump", "-status", "lost"}, `unknown status "lost"`},
		{[]string{"readdb", "-d", dir, "-dump", "-retry", "-1"}, "-retry: -1 is negative"},
		{[]string{"readdb", "-d", dir, "-dump", "-regex", "("}, "-regex"},
		{[]string{"readdb", "-d", dir, "-dump", "-regex", "a)(b"}, "-regex"},
		{[]string{"readdb", "-d", dir, "-dump", "-sample", "1.5"}, "-sample: 1.5 is not between 0 and 1"},
		{[]string{"readdb", "-d", dir, "-dump", "-expr", "score >"}, "-expr"},
		{[]string{"readdb", "-d", dir, "-stats", "-quantiles", "0.5,2"}, `-quantiles: "2" is not a number from 0 to 1`},
		{[]string{"hosts", "-d", dir, "-format", "json"}, `"json" is not one of text and nutch`},
		{[]string{"hosts", "-d", dir, "-get", ""}, "-get needs the name of a host"},
		{[]string{"hosts", "-d", dir, "-expr", "gone +"}, "-expr"},
		{[]string{"hosts", "-d", dir, "-dumpHomepages", "-dumpHostnames"}, "exclude each other"},
		{[]string{"updatehostdb", "-d", dir, "-by", "ip"}, `"ip" is not one of host and domain`},
		{[]string{"updatehostdb", "-d", dir, "-urlLimit", "-1"}, "-urlLimit: -1 is negative"},
		{[]string{"updatehostdb", "-d", dir, "-resolvers", "-1"}, "-resolvers: -1 is negative"},
		{[]string{"updatehostdb", "-d", dir, "-recheck", "-1h"}, `-recheck: "-1h" is not a time`},
		{[]string{"updatehostdb", "-d", dir, "-purge", "0"}, "-purge"},
		{[]string{"updatehostdb", "-d", dir, "-tophosts", filepath.Join(dir, "missing")}, "-tophosts"},
		{[]string{"updatehostdb", "-d", dir, "-tophosts", noPEM}, "no.pem:1:"},
		{[]string{"domainstats", "-d", dir}, "needs one of host, domain, suffix and tld"},
		{[]string{"domainstats", "-d", dir, "ip"}, `not "ip"`},
		{[]string{"domainstats", "-d", dir, "host", "tld"}, `not "tld" too`},
		{[]string{"crawlcomplete", "-d", dir, "-mode", "tld"}, `"tld" is not one of host and domain`},
		{[]string{"protocolstats", "-d", dir, "host"}, `takes no argument "host"`},
		{[]string{"readseg", "-d", dir, "-part", "parts"}, `"parts" is not one of`},
		{[]string{"readseg", "-d", dir, "../../etc"}, "invalid name"},
		{[]string{"readseg", "-d", dir, "a", "b"}, `not "b" too`},
		{[]string{"readlinks", "-d", dir, "-url", ""}, "-url needs a URL"},
		{[]string{"readseg", "-d", dir, "-url", ""}, "-url needs a URL"},
		{[]string{"readdb", "-d", dir, "-url", ""}, "-url needs a URL"},
		{[]string{"readlinks", "-d", dir, "-url", "http://a.example/", "-regex", "x"}, "exclude each other"},
		{[]string{"readlinks", "-d", dir, "-regex", "("}, "is not a regular expression"},
		{[]string{"readlinks", "-d", dir, "-regex", "a)|(b"}, "is not a regular expression"},
		{[]string{"readlinks", "-d", dir, "-format", "xml"}, `"xml" is not one of text, json, nutch and graph`},
		{[]string{"dedup", "-d", dir, "-group", "byHost"}, "want none, host or domain"},
		{[]string{"dedup", "-d", dir, "-compareOrder", "score,age"}, `unknown criterion "age"`},
		{[]string{"dedup", "-d", dir, "extra"}, `takes no argument "extra"`},
		{[]string{"mergedb", "-d", dir}, "needs the directories"},
		{[]string{"mergedb", "crawl1"}, "-d DIR is required"},
		{[]string{"mergelinkdb", "-d", dir}, "needs the directories"},
		{[]string{"mergesegs", "-d", dir, "-slice", "-1"}, "-slice: -1 is negative"},
		{[]string{"clean", "-d", dir, "extra"}, `takes no argument "extra"`},
		{[]string{"invert", "-d", dir, "-ignore-internal", "-ignore-external"}, "together leave no link"},
		{[]string{"explain", "-d", dir}, "needs one URL"},
		{crawl("-topN", "many"), `invalid value "many" for flag -topN; it should be a number`},
		{[]string{"help", "nothing"}, "'nothing'"},
		{[]string{"inject", "--help", "-bogus"}, "-bogus"},
		{[]string{"check"}, "check what?"},
		{[]string{"scoring"}, "scoring what?"},
		{[]string{"scoring", "nothing"}, `scoring has no "nothing"`},
		{[]string{"check", "nothing"}, `no "nothing" to check`},
		{[]string{"check", "filter", "-bogus"}, "-bogus"},
		{[]string{"demo", "extra"}, `takes no argument "extra"`},
	} {
		r := recrawl(t, tt.args...)
		if r.code != 2 || !strings.Contains(r.err, tt.want) || r.out != "" {
			t.Errorf("recrawl %q: exit %d, want 2 and %q on standard error:\n%s%s", tt.args, r.code, tt.want, r.out, r.err)
		}
		for line := range strings.Lines(r.err) {
			if !strings.HasPrefix(line, "recrawl: ") {
				t.Errorf("recrawl %q: %q does not say who is talking", tt.args, line)
			}
		}
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("a command line that is none made a directory")
	}
}

func TestInvalidDirectories(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	missing, empty, foreign, file := filepath.Join(top, "missing"), filepath.Join(top, "empty"), filepath.Join(top, "foreign"), filepath.Join(top, "file")
	for _, dir := range []string{empty, foreign} {
		if err := os.Mkdir(dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{file, filepath.Join(foreign, "letter.txt")} {
		if err := os.WriteFile(name, []byte("dear all"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	reads := [][]string{{"readdb", "-stats"}, {"readlinks"}, {"readseg"}, {"hosts"}, {"index"}, {"updatehostdb"}, {"domainstats", "host"}, {"protocolstats"}, {"crawlcomplete"}, {"dedup"}, {"mergesegs"}, {"clean"}, {"explain", "http://a.example/"}, {"generate"}, {"update"}, {"invert"}, {"parse"}, {"fetch", "-agent", "testbot"}, {"crawl", "-agent", "testbot"}}
	for _, dir := range []string{missing, empty, foreign, file} {
		for _, read := range reads {
			args := append([]string{read[0], "-d", dir}, read[1:]...)
			if r := recrawl(t, args...); r.code != 1 || !strings.Contains(r.err, dir) || r.out != "" {
				t.Errorf("recrawl %q: exit %d, want 1 and the name of the directory:\n%s%s", args, r.code, r.out, r.err)
			}
		}
	}
	for _, dir := range []string{foreign, file, filepath.Join(file, "below"), filepath.Join(missing, "below")} {
		if r := recrawl(t, "inject", "-d", dir, "http://a.example/"); r.code != 1 || !strings.Contains(r.err, dir) {
			t.Errorf("recrawl inject -d %s: exit %d, want 1:\n%s%s", dir, r.code, r.out, r.err)
		}
	}
	for dir, want := range map[string]int{empty: 0, foreign: 1} {
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != want {
			t.Errorf("%s was not left alone: %v, %v", dir, entries, err)
		}
	}
	if _, err := os.Stat(missing); err == nil {
		t.Errorf("%s was made", missing)
	}
	ok(t, "inject", "-d", empty, "http://a.example/")
}
