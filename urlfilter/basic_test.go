package urlfilter

import (
	"encoding/json"
	"errors"
	neturl "net/url"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/recrawl/recrawl/crawldb"
)

var allSchemes = []string{"http", "https", "ftp", "file"}

// The files of testdata, except for the differences listed there.
func TestBasicAgainstOthers(t *testing.T) {
	type key struct{ file, in string }
	ours := map[key]string{}
	for _, line := range lines(t, "differences.txt") {
		f := strings.Split(line, "\t")
		in, err := strconv.Unquote(f[1])
		if err != nil || len(f) != 4 || f[3] == "" {
			t.Fatalf("differences.txt: bad line %q", line)
		}
		if f[2] != "refused" {
			if f[2], err = strconv.Unquote(f[2]); err != nil {
				t.Fatalf("differences.txt: bad line %q", line)
			}
		}
		ours[key{f[0], in}] = f[2]
	}
	check := func(file, in string, want *string, got string, err error) {
		t.Helper()
		w := "refused"
		if want != nil {
			w = *want
		}
		if err != nil {
			got = "refused"
		}
		if o, ok := ours[key{file, in}]; ok {
			delete(ours, key{file, in})
			if o == w {
				t.Errorf("%s: %q is no difference", file, in)
			}
			w = o
		}
		if got != w {
			t.Errorf("%s: %q: got %q (%v), want %q", file, in, got, err, w)
		}
	}
	nutch := Basic{Schemes: allSchemes, MergeSlashes: true}
	each(t, "nutch-basic-normalizer.jsonl", func(c struct{ In, Out string }) {
		got, err := nutch.Normalize(Inject, c.In)
		check("nutch-basic-normalizer.jsonl", c.In, &c.Out, got, err)
	})
	browser := Basic{Schemes: allSchemes}
	each(t, "wpt-url.jsonl", func(c struct {
		Input string
		Href  *string
	}) {
		if c.Href != nil {
			*c.Href, _, _ = strings.Cut(*c.Href, "#")
		}
		got, err := browser.Normalize(Outlink, c.Input)
		check("wpt-url.jsonl", c.Input, c.Href, got, err)
	})
	each(t, "wpt-toascii.jsonl", func(c struct {
		Input  string
		Output *string
	}) {
		got, err := normalHost(c.Input)
		check("wpt-toascii.jsonl", c.Input, c.Output, got, err)
	})
	// Of these, thousands, differ besides the names that the DNS could not have,
	// and the dot at the end that is dropped.
	each(t, "wpt-idna.jsonl", func(c struct {
		Input  string
		Output *string
	}) {
		if c.Output != nil {
			if *c.Output = strings.TrimSuffix(*c.Output, "."); !checkName(*c.Output) {
				c.Output = nil
			}
		}
		got, err := normalHost(c.Input)
		check("wpt-idna.jsonl", c.Input, c.Output, got, err)
	})
	for k := range ours {
		t.Errorf("differences.txt: no case %q in %s", k.in, k.file)
	}
}

func TestBasic(t *testing.T) {
	for _, c := range []struct{ in, out string }{
		{"http://example.com/a?b=c", ""},
		{"https://sub_domain.example.com:8443/~a/%2F;x='1'?q=%27", ""},
		{"http://localhost/", ""},
		{"http://a.1b/", ""},
		{"http://h/a..b/...", ""},
		{"http://h/x?/../.", ""},
		{"http://h//a//b", ""},
		{"http://h/?", ""},
		{"https://h:80/", ""},
		{"http://h/?it's", "http://h/?it%27s"},
		{"HTTP:\\\\EXAMPLE.com\\a\\..\\b", "http://example.com/b"},
		{"http:h", "http://h/"},
		{"\x00 ht\ntp://h/a\tb\r\n ", "http://h/ab"},
		{"http://example.com./", "http://example.com/"},
		{"http://example.com.:8080", "http://example.com:8080/"},
		{"http://h:080/", "http://h/"},
		{"http://h:0443/", "http://h:443/"},
		{"https://h:443/", "https://h/"},
		{"http://127.1/", "http://127.0.0.1/"},
		{"http://0x7f.1/", "http://127.0.0.1/"},
		{"http://2130706433/", "http://127.0.0.1/"},
		{"http://0177.0.0.01./", "http://127.0.0.1/"},
		{"http://%30x7F000001/", "http://127.0.0.1/"},
		{"http://[0:0::1]/", "http://[::1]/"},
		{"http://ẞ.example/", "http://xn--zca.example/"},
		{"http://Bücher.example/%7euser/%e4", "http://xn--bcher-kva.example/~user/%E4"},
		{"http://ex%61mple.com/%%34%31", "http://example.com/%2541"},
		{"http://h/a/%2E%2e/b", "http://h/b"},
		{"http://h/\xff", "http://h/%FF"},
		{"http://h/?a\\b", "http://h/?a%5Cb"},
		{"http://h/a#b?c", "http://h/a"},
		{"http://h#@evil/", "http://h/"},
	} {
		want := c.out
		if want == "" {
			want = c.in
		}
		got, err := Basic{}.Normalize(Outlink, c.in)
		if got != want || err != nil {
			t.Errorf("%q: got %q, %v, want %q", c.in, got, err, want)
		}
	}
	for _, in := range []string{
		"", "/", "example.com", "//example.com/", ":", "ftp://h/", "mailto:a@b", "javascript:void(0)", "file:///etc/passwd",
		"http://", "http:///", "http://u@h/", "http://u:p@h/", "http://@h/", "http://h:x/", "http://h:65536/", "http://a b/",
		"http://a..b/", "http://.a/", "http://a../", "http://%/", "http://%ff/", "http://h%2fx/", "http://h%00/",
		"http://1.2.3.4.5/", "http://256.1.1.1/", "http://1.2.3.08/", "http://0x100000000/", "http://[::1/", "http://[1.2.3.4]/",
		"http://[fe80::1%25eth0]/", "http://" + strings.Repeat("a", 64) + "/", "http://" + strings.Repeat("a.", 127) + "a/",
		"http://a*b/", "ht tp://h/", "1http://h/",
	} {
		if got, err := (Basic{}).Normalize(Outlink, in); err == nil {
			t.Errorf("%q: got %q, want an error", in, got)
		}
	}
	for _, c := range []struct{ in, out string }{
		{"file:/a/../b", "file:///b"},
		{"file://localhost/b", "file:///b"},
		{"file://server/b", "file://server/b"},
		{"file:////b", "file:////b"},
		{"FTP://h:21/x", "ftp://h/x"},
		{"gemini://H:1965/x", "gemini://h:1965/x"},
	} {
		got, err := Basic{Schemes: append(allSchemes, "gemini")}.Normalize(Inject, c.in)
		if got != c.out || err != nil {
			t.Errorf("%q: got %q, %v, want %q", c.in, got, err, c.out)
		}
	}
}

func FuzzBasic(f *testing.F) {
	for _, file := range []string{"nutch-basic-normalizer.jsonl", "wpt-url.jsonl"} {
		each(f, file, func(c struct{ In, Input string }) { f.Add(c.In + c.Input) })
	}
	each(f, "wpt-toascii.jsonl", func(c struct{ Input string }) { f.Add("http://" + c.Input + "/") })
	f.Fuzz(func(t *testing.T, in string) {
		for _, b := range []Basic{{}, {Schemes: allSchemes}, {MergeSlashes: true}} {
			u, err := b.Normalize(Outlink, in)
			if err != nil {
				if u != "" {
					t.Fatalf("%q: %q beside the error %v", in, u, err)
				}
				continue
			}
			// The two ways must agree, whatever isNormal thinks.
			if again, err := b.rewrite(u); again != u || err != nil {
				t.Fatalf("%q is %q, and that is %q, %v", in, u, again, err)
			}
			if again, err := b.Normalize(Outlink, u); again != u || err != nil {
				t.Fatalf("%q is %q, and that is %q, %v", in, u, again, err)
			}
			p, err := neturl.Parse(u)
			if err != nil || p.User != nil || p.Fragment != "" {
				t.Fatalf("%q is %q: %v", in, u, err)
			}
			if p.Scheme != "file" && (p.Host == "" || strings.HasPrefix(crawldb.Key(u), "!")) {
				t.Fatalf("%q is %q, which has the key %q", in, u, crawldb.Key(u))
			}
			if hostOf(u) != crawldb.Host(u) {
				t.Fatalf("%q: host %q, crawldb has %q", u, hostOf(u), crawldb.Host(u))
			}
		}
	})
}

// What is taken for normal at a glance is what a closer look leaves as it is.
func TestIsNormalAgreesWithRewrite(t *testing.T) {
	parts := map[string][]string{
		"host": {"a.example", "a", "1.2.3.4", "1.2.3.0x4", "a.1", "a.1x", "a.x1", "-a.x", "a..x", ".a", "a.", "xn--a.x", "A.x", strings.Repeat("a", 63) + ".x", strings.Repeat("a", 64) + ".x", strings.Repeat("abc.", 63) + "x", strings.Repeat("abc.", 63) + "xy"},
		"port": {":0", ":1", ":01", ":79", ":80", ":81", ":442", ":443", ":444", ":65535", ":65536", ":99999", ":100000", ":", ":8a"},
		"path": {"", "/", "//", "/.", "/..", "/./", "/../x", "/...", "/.x", "/..x", "/.?", "/..?x", "/a/./b", "/a//b", "/'", "/?'", "??", "/a?a?b", "/|", "/?|", "/{", "/a b", "/;", "/é"},
	}
	for _, hex := range "029aAfFgG/:@`" {
		for _, digit := range "029aAfFgG%" {
			parts["path"] = append(parts["path"], "/%"+string(hex)+string(digit), "/?%"+string(hex)+string(digit), "/%"+string(digit)+string(hex)+"x")
		}
	}
	parts["path"] = append(parts["path"], "/%", "/%2", "/x?%", "/x?%4")
	glances, closer := 0, 0
	for _, b := range []Basic{{}, {MergeSlashes: true}, {Schemes: []string{"http"}}, {Schemes: []string{"https", "a+b-c.1"}}} {
		for _, scheme := range []string{"http://", "https://", "http:/", "HTTP://", "ftp://", "a+b-c.1://", "1a://", "://", "h_p://"} {
			for _, of := range []string{"host", "port", "path"} {
				for _, part := range parts[of] {
					url := scheme + map[string]string{"host": part + "/x", "port": "a.example" + part + "/x", "path": "a.example" + part}[of]
					want, err := b.rewrite(url)
					got, gotErr := b.Normalize(Outlink, url)
					if got != want || (err == nil) != (gotErr == nil) {
						t.Errorf("%+v, %q: at a glance %q, %v; looked at %q, %v", b, url, got, gotErr, want, err)
					}
					if b.isNormal(url) {
						glances++
					} else if want == url {
						closer++
					}
				}
			}
		}
	}
	// A glance is of use for nearly all that is normal.
	if glances < 500 || closer > glances {
		t.Errorf("%d of %d that are normal are taken for it", glances, glances+closer)
	}
}

func TestNormalFormIsNotCopied(t *testing.T) {
	n := testing.AllocsPerRun(100, func() { Basic{}.Normalize(Outlink, "https://www.example.com/a/b.html?c=%20d") })
	if n != 0 {
		t.Errorf("%v allocations for a URL that is normal, want none", n)
	}
}

func TestBasicErrors(t *testing.T) {
	_, err := Default().Apply(Outlink, "http://user@example.com/")
	if !errors.Is(err, ErrInvalid) || !errors.Is(err, errUserInfo) {
		t.Errorf("got %v", err)
	}
	if strings.Contains(err.Error(), "example.com") {
		t.Errorf("the error %q repeats the URL", err)
	}
	if got, err := (Basic{}).Normalize(Outlink, "http://ü.xn--/"); !errors.Is(err, errHost) {
		t.Errorf("a host with an empty label becomes %q, %v", got, err)
	}
}

func BenchmarkBasic(b *testing.B) {
	for _, c := range []struct{ name, url string }{
		{"normal", "https://www.example.com/guide/chapter-3/section-14.html?lang=en&page=2"},
		{"escape", "https://www.example.com/guide/chapter 3/section-14.html?lang=en&page=2"},
		{"upper", "HTTP://WWW.Example.com:80/guide/../index.html#top"},
		{"idna", "https://www.bücher.example/guide/chapter-3"},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := (Basic{}).Normalize(Outlink, c.url); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func lines(tb testing.TB, file string) []string {
	b, err := os.ReadFile("testdata/" + file)
	if err != nil {
		tb.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
}

func each[T any](tb testing.TB, file string, f func(c T)) {
	for _, line := range lines(tb, file) {
		var c T
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			tb.Fatalf("%s: %v", file, err)
		}
		f(c)
	}
}
