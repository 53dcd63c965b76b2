package urlfilter

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestTraps(t *testing.T) {
	many := func(n int, f string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, f, i)
		}
		return b.String()
	}
	depth20, depth21 := "http://h"+many(20, "/a%d"), "http://h"+many(21, "/a%d")
	for url, rule := range map[string]string{
		"http://h/": "", "http://h": "", "": "", "/a/a/a/a/": "", "mailto:a@b": "",
		depth20: "", depth20 + "/": "", depth21: "20 path segments",
		"http://h" + strings.Repeat("/", 22): "20 path segments",

		// What follows each other.
		"http://h/a/a/b":                          "",
		"http://h/a/a/a":                          "", // the last is not known to be the same
		"http://h/a/a/a/":                         "follow each other",
		"http://h/a/b/a/b/c":                      "",
		"http://h/a/b/a/b/a/":                     "follow each other", // as RepeatedSegments has it
		"http://h/abc/d/abc/d/abc":                "",
		"http://h/1/2/3/4/1/2/3/4/1":              "",
		"http://h/p/q/r/s/p/q/r/s/p/q/r/s/":       "follow each other",
		"http://h/p/q/r/s/t/p/q/r/s/t/p/q/r/s/t/": "",
		"http://h/2011/11/11/11/x":                "",
		"http://h/0/0/0/0/0/x":                    "follow each other",
		"http://h/a////b":                         "",
		"http://h/a//////b":                       "follow each other",

		// Missing schemes.
		"http://www.example.org/x/www.example.org/y":                              "",
		"http://www.example.org/www.example.orgwww.example.org/x/www.example.org": "",
		"http://www.example.org/www.example.org/y/www.example.org":                "the host more than 1",
		"http://www.example.org:80/www.example.org/y/z/www.example.org/":          "the host more than 1",
		"http://www.example.org/www.example.org.uk/www.example.organ/x/":          "",
		"http://web.archive.org/web/2020/http://www.example.org/www.example.org/": "",

		// Queries.
		"http://h/?" + strings.Repeat("x", 1024):  "",
		"http://h/?" + strings.Repeat("x", 1025):  "a query of more than 1024",
		"http://h/?a=0" + many(23, "&a%d=1"):      "",
		"http://h/?a=0" + many(24, "&a%d=1"):      "24 parameters",
		"http://h/?x" + strings.Repeat("&a=1", 8): "",
		"http://h/?x" + strings.Repeat("&a=1", 9): "8 parameters of one name",
		"http://h/?x" + strings.Repeat("?a=1", 9): "8 parameters of one name",
		"http://h/?x" + strings.Repeat(";a", 9):   "8 parameters of one name",
		"http://h/#?" + strings.Repeat("a&", 100): "",
	} {
		got := Traps{}.Explain(url)
		if (got == "") != (rule == "") || !strings.Contains(got, rule) || (Traps{}).Accept(url) != (rule == "") {
			t.Errorf("%s: %q, want %q", url, got, rule)
		}
		if off := (Traps{-1, -1, -1, -1, -1, -1}); !off.Accept(url) {
			t.Errorf("%s: rejected without limits: %s", url, off.Explain(url))
		}
	}
	strict := Traps{MaxDepth: 3, MaxRepeats: 1, MaxHosts: -1, MaxParams: 2, MaxSame: 1, MaxQuery: 10}
	for url, rule := range map[string]string{
		"http://h/a/b/c": "", "http://h/a/b/c/d": "3 path segments", "http://h/a/a/b": "more than 1 times", "http://h/?a=1&a=2": "1 parameters of one name",
		"http://h/?a=1&b=2": "", "http://h/?a&b&c": "2 parameters", "http://h/?aaaaaaaaaaa": "10 bytes", "http://h/h/h": "",
	} {
		if got := strict.Explain(url); (got == "") != (rule == "") || !strings.Contains(got, rule) {
			t.Errorf("%s: %q, want %q", url, got, rule)
		}
	}
}

// FuzzTraps compares the rule of repeated segments with one that is too simple to
// be wrong.
func FuzzTraps(f *testing.F) {
	for _, path := range []string{"a/a/a/", "a/b/a/b/a/b/", "1/1/1/1/1/", "a/b/c/d/e/a/b/c/d/e/a/b/c/d/e/", "a//a//a//", "x/a/b/b/a/b/b/a/b/b/y"} {
		f.Add(path, 2)
	}
	f.Fuzz(func(t *testing.T, path string, max int) {
		if max < 1 || max > 5 {
			return
		}
		segs := strings.Split(path, "/")
		segs = segs[:len(segs)-1]
		naive := false
		for p := 1; p <= longestRepeat; p++ {
			for i := range segs {
				times := max + 1
				if p == 1 && isDigits(segs[i]) {
					times = 2*max + 1
				}
				if i+p*times > len(segs) {
					continue // a later segment may need fewer
				}
				same := true
				for j := 1; j < times; j++ {
					same = same && slices.Equal(segs[i:i+p], segs[i+j*p:i+j*p+p])
				}
				naive = naive || same
			}
		}
		if got := repeats("/"+path, max); got != naive {
			t.Errorf("%q, %d: %v, want %v", path, max, got, naive)
		}
		(Traps{MaxHosts: 1}).Accept("http://" + path)
	})
}

func TestSessionsAreDropped(t *testing.T) {
	const id = "0123456789abcdef0123456789abcdef"
	for in, want := range map[string]string{
		"http://h/a":                                               "http://h/a",
		"http://h/a;jsessionid=" + id:                              "http://h/a",
		"http://h/a;JSESSIONID=A1B2C3D4.node1!123?x=1":             "http://h/a?x=1",
		"http://h/a;v=1;jsessionid=" + id + "/b;w=2":               "http://h/a;v=1/b;w=2",
		"http://h/a?PHPSESSID=" + id:                               "http://h/a",
		"http://h/a?PHPSESSID=" + id + "&x=1":                      "http://h/a?x=1",
		"http://h/a?x=1&PHPSESSID=" + id + "&y=2#f":                "http://h/a?x=1&y=2#f",
		"http://h/a?x=1&&sid=" + id + "&":                          "http://h/a?x=1&&",
		"http://h/a?ASPSESSIONIDQQBBSTTR=ABCDEFGHIJKLMNOPQRSTUVWX": "http://h/a",
		"http://h/a?cfid=12&cftoken=12345678&z=1":                  "http://h/a?z=1",
		"http://h/?s=" + id:                                        "http://h/",

		// Not a session.
		"http://h/a?sid=17":                  "http://h/a?sid=17",
		"http://h/a?s=internationalizations": "http://h/a?s=internationalizations",
		"http://h/a?sessionid=7":             "http://h/a?sessionid=7",
		"http://h/a?session=keynote-2024":    "http://h/a?session=keynote-2024",
		"http://h/a?cfid=12":                 "http://h/a?cfid=12",
		"http://h/a?mysid=" + id:             "http://h/a?mysid=" + id,
		"http://h/a?x=jsessionid":            "http://h/a?x=jsessionid",
		"http://h/jsessionid=" + id:          "http://h/jsessionid=" + id,
		"http://h/a;s=1":                     "http://h/a;s=1",
		"http://h/#?PHPSESSID=" + id:         "http://h/#?PHPSESSID=" + id,
		"http://h/a?sid=%22" + id + "/x":     "http://h/a?sid=%22" + id + "/x",
		"http://h/?":                         "http://h/?",
		"http://h/?a&p":                      "http://h/?a&p",
	} {
		got, err := SessionIDs{}.Normalize(Outlink, in)
		if got != want || err != nil {
			t.Errorf("%s: %s %v, want %s", in, got, err, want)
		}
		if again, _ := (SessionIDs{}).Normalize(Outlink, got); again != got {
			t.Errorf("%s: %s becomes %s", in, got, again)
		}
		if (SessionIDs{}.Explain(in) != "") != (in != want) {
			t.Errorf("%s: explained by %q", in, SessionIDs{}.Explain(in))
		}
	}
}
