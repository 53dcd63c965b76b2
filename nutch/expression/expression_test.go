package expression_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/nutch/expression"
)

func page() *crawldb.Datum {
	return &crawldb.Datum{
		URL: "http://www.example.org/docs/index.html", Status: crawldb.Fetched,
		FetchTime: time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC), Modified: time.Date(2016, 3, 20, 0, 0, 1, 0, time.UTC),
		Interval: 30 * 24 * time.Hour, Retries: 2, Score: 0.1, Signature: []byte{0xab, 0x01},
		Meta: crawldb.MetaOf("Content-Type", "text/html", "_rs_", "231", "fixedInterval", "3600.5", "lang", "de", "page.author.name", "Ann", "flag", "true"),
	}
}

func TestRecord(t *testing.T) {
	for _, c := range []struct {
		expr string
		want bool
	}{
		// Nutch's TestJexlUtil, as far as a record has the names.
		{`score > 0.5`, false},
		{`2 * 3 + 1 == 7`, true},
		{`url.startsWith('http://')`, true},
		{`url =~ 'https?://.*\.example\.org/.*'`, true},
		{`status.equalsIgnoreCase('DB_FETCHED')`, true},
		{`status.equalsIgnoreCase('FETCHED')`, false},
		{`fetchTime > 2016-03-20T00:00:00Z`, true},
		{`(true ? 1 : 0) == 1`, true},

		// Dates are UTC, every one of them.
		{`modifiedTime > 2016-03-20T00:00:00Z && modifiedTime < 2016-03-20T00:00:02Z`, true},
		{`2016-03-20T00:00:00Z == 1458432000000`, true},
		{`fetchTime == 2026-05-01T00:00:00Z`, true},

		// Operators and their words.
		{`retries eq 2 and interval ge 86400`, true},
		{`retries ne 2 or interval lt 86400`, false},
		{`not (retries gt 2) && !(retries le 1)`, true},
		{`retries == 2 && interval == 2592000 && score == 0.1`, true},
		{`7 / 2 == 3 && 7 div 2 == 3 && 7.0 / 2 == 3.5 && 7 % 4 == 3 && 7 mod 4 == 3 && -7 / 2 == -3 && -7 % 4 == -3`, true},
		{`1 + 2 * 3 - 4 == 3 && (1 + 2) * 3 == 9 && 2 - -1 == 3`, true},
		{`0x1F == 31 && 010 == 8 && 5L == 5 && 1.5f == 1.5 && 1e3 == 1000 && 1.5e-1 == 0.15 && .5 == 0.5`, true},
		{`9223372036854775807 + 1 > 9223372036854775807`, false}, // both are 2^63 as a fraction
		{`9223372036854775807 + 1 == 9223372036854775808`, true},
		{`'a' < 'b' && 'b' >= 'b' && 'a' != "A"`, true},
		{`status == 'db_fetched' ? score < 1 : score > 1`, true},
		{`url =^ 'http:' && url !^ 'ftp:' && url =$ '.html' && url !$ '.pdf'`, true},
		{`status =~ ['db_gone', 'db_fetched'] && status !~ ['db_orphan'] && retries =~ {1, 2, 3}`, true},
		{`url !~ '.*\.pdf'`, true},
		{`url =~ 'example'`, false}, // as a whole
		{`url =~ '(?i)HTTP://.*'`, true},
		{`retries == 2;`, true},
		{`true`, true},
		{`'1' == 1 && 1 == '1.0'`, true},

		// Methods.
		{`url.endsWith('.html') && url.contains("/docs/") && url.matches('http:.*l')`, true},
		{`url.toUpperCase().startsWith('HTTP') && 'ÄB'.toLowerCase() == 'äb'`, true},
		{`url.size() == 38 && url.length() == 38 && size(url) == 38 && size url == 38`, true},
		{`url.indexOf('www') == 7 && url.lastIndexOf('/') == 27 && url.indexOf('nowhere') == -1`, true},
		{`url.substring(0, 4) == 'http' && url.substring(28) == 'index.html'`, true},
		{`' x '.trim() == 'x' && ''.isEmpty() && !'x'.isEmpty() && 'a'.concat('b').equals('ab') && 'aXa'.replace('a', 'bb') == 'bbXbb'`, true},
		{`'a'.compareTo('b') < 0 && '𝄞'.length() == 2`, true},
		{`'a' + 1 + 'b' == 'a1b'`, true},
		{`'it\'s' == "it's" && 'a\\b' == "a\\b" && '\u0041' == 'A' && 'a\nb' == "a\nb"`, true},
		{`signature == 'ab01' && signature.size() == 4`, true},

		// Metadata: '-' is '_', dots are part of names, texts may be numbers.
		{`Content_Type == 'text/html'`, true},
		{`Content_Type.startsWith('text/') && Content_Type =~ 'text/.*'`, true},
		{`_rs_ > 200 && _rs_ < 1000 && _rs_ == 231 && 231 == _rs_`, true},
		{`_rs_ + 9 == 240 && _rs_ * 2 == 462 && fixedInterval * 2 == 7201`, true},
		{`page.author.name == 'Ann' && page.author.name.size() == 3`, true},
		{`flag && true`, true}, {`!flag`, false}, {`flag == true`, true},
		{`lang == 'de' && lang < 'en' && 'x' + lang == 'xde'`, true},

		// Null.
		{`nothing == null`, true}, {`nothing != null`, false}, {`lang != null`, true}, {`null == lang`, false},
		{`nothing == 'x'`, false}, {`nothing != 'x'`, true}, {`nothing =~ '.*'`, false}, {`nothing !~ '.*'`, true},
		{`nothing < 5 || nothing >= 5 || nothing.startsWith('x') || nothing`, false},
		{`!nothing.startsWith('x')`, true},
		{`(nothing + 1 == null) && (nothing.length() == null) && (-nothing == null) && size(nothing) == null`, true},
		{`empty nothing && empty(nothing) && !empty(url) && empty ''`, true},
		{`(nothing ?: 'x') == 'x' && (lang ?: 'x') == 'de' && (nothing ?? 'x') == 'x' && (nothing ?? 5) == 5`, true},
		{`nothing ? false : true`, true},
		{`nothing?.size() == null`, true},
	} {
		f, err := expression.RecordFilter(c.expr)
		if err != nil {
			t.Errorf("%s: %v", c.expr, err)
			continue
		}
		if got, err := f(page()); got != c.want || err != nil {
			t.Errorf("%s: %v, %v, want %v", c.expr, got, err, c.want)
		}
	}
	never := crawldb.Datum{URL: "http://a.org/", Status: crawldb.Unfetched, Score: float32(math.NaN())}
	for _, e := range []string{`fetchTime == 0 && modifiedTime == 0`, `signature == null`, `!(score > 0) && !(score <= 0) && score != 0`} {
		f, err := expression.RecordFilter(e)
		if err != nil {
			t.Fatal(err)
		}
		if ok, err := f(&never); !ok || err != nil {
			t.Errorf("%s: %v, %v", e, ok, err)
		}
	}
}

// A mistake is an error with a place, and never a condition that accepts
// everything.
func TestDoesNotCompile(t *testing.T) {
	for _, c := range []struct {
		expr   string
		column int
		reason string
	}{
		{``, 1, "empty"},
		{`score >`, 8, "ends too early"},
		{`score > 0.5 )`, 13, "unexpected )"},
		{`(score > 0.5`, 13, `missing ")" at the end`},
		{`score = 1`, 7, "nothing can be assigned"},
		{`new java.io.File('/')`, 1, "new is not part"},
		{`new('java.io.File', '/')`, 1, "new is not part"},
		{`x = new java.io.File('/'); true`, 3, "nothing can be assigned"},
		{`while (true) {}`, 1, "while is not part"},
		{`for (x : 1..5) true`, 1, "for is not part"},
		{`function(x) { x }`, 1, "function is not part"},
		{`x -> x`, 4, "unexpected"},
		{`score`, 1, "gives a number where true or false"},
		{`url`, 1, "gives a text where true or false"},
		{`null`, 1, "gives null where"},
		{`'true'`, 1, "gives a text"},
		{`url =~ '(?=x)'`, 8, "invalid or unsupported Perl syntax"},
		{`url =~ 'a)(b'`, 8, "unexpected )"},
		{`url =~ lang`, 8, "must be a constant text"},
		{`url.getClass()`, 5, "unknown method getClass"},
		{`url.class`, 1, "url has no property class"},
		{`url.startsWith()`, 5, "startsWith with 0 arguments"},
		{`score.startsWith('x')`, 7, "a number has no method"},
		{`exec('rm')`, 1, "unknown function exec"},
		{`fetchtime > 5`, 1, "unknown name fetchtime; did you mean fetchTime?"},
		{`URL == 'x'`, 1, "unknown name URL; did you mean url?"},
		{`fetchTime > '2016-03-20'`, 13, `"2016-03-20" is compared with a number`},
		{`fetchTime > 2016-13-20T00:00:00Z`, 13, "invalid date"},
		{`score > 12abc`, 9, "not a number"},
		{`score > 08`, 9, "not a number"},
		{`1 < 2 < 3`, 7, "unexpected <"},
		{`url == 'x`, 8, "text does not end"},
		{`url == '\u00g0'`, 9, "four hexadecimal digits"},
		{`[1, 2]`, 1, "a list is allowed only"},
		{`[1, 2] == 1`, 1, "a list is allowed only"},
		{`lang[0] == 'x'`, 5, "values have no elements"},
		{`true + 1 == 2`, 1, "a number is needed"},
		{`'a' * 2 == 2`, 1, "a number is needed"},
		{`'a' && true`, 1, "a text where true or false"},
		{`score # 1`, 7, "unexpected #"},
		{"score > `x`", 9, "unexpected '`'"},
		{`url == '\u00'`, 9, "four hexadecimal digits"},
		{`url == '\u0'`, 9, "four hexadecimal digits"},
		{`score > 1e999`, 9, "not a number"},
		{`score > 1e5e5`, 9, "not a number"},
		{`score > 0x`, 9, "not a number"},
		{`score > 0xg`, 9, "not a number"},
		{`score > 0x1.5`, 12, "unexpected value"},
		{`score > 1.5.5`, 12, "unexpected value"},
		{`score > 1٣`, 9, "not a number"},
		{`score > .`, 9, "unexpected ."},
		{`score > 1.`, 11, "ends too early"},
		{`score > 1.x`, 11, "a value has no property x"},
		{`score > 1.5 x`, 13, "unexpected name x"},
		{`2016-03-20T00:00:0aZ < 1`, 9, "not a number"},
		{`score(1)`, 1, "unknown function score"},
		{`score.5`, 6, "unexpected value"},
		{`score.x`, 1, "score has no property x"},
		{`(url).x`, 7, "a value has no property x"},
		{`(url).'x'`, 7, "unexpected value"},
		{`url =~ [1 2]`, 11, "want \",\""},
		{`url =~ '('`, 8, "missing closing )"},
		{`url.matches('(')`, 13, "missing closing )"},
		{`url.contains('a', 'b')`, 5, "contains with 2 arguments"},
		{`'a' < score`, 1, ` is compared with a number`},
		{`-'5' == 1`, 2, "a number is needed"},
		{`-true == 1`, 2, "a number is needed"},
		{`-(url == 'x') == 1`, 2, "a number is needed"},
		{`[1] ? true : false`, 1, "a list is allowed only"},
		{`[1] ?: true`, 1, "a list is allowed only"},
		{`[1] ?? true`, 1, "a list is allowed only"},
		{`[1].size() == 1`, 1, "a list is allowed only"},
		{`size [1] == 1`, 6, "a list is allowed only"},
		{`(score > 1).trim()`, 13, "true or false has no method trim"},
		{`null.trim()`, 6, "null has no method trim"},
		{strings.Repeat("x ?: ", 1000) + "true", 496, "nested too deeply"},
		{"score > \x80", 1, "not in UTF-8"},
		{strings.Repeat("(", 1000) + "1", 51, "nested too deeply"},
		{strings.Repeat("!", 1000) + "true", 100, "nested too deeply"},
		{"true" + strings.Repeat(" ", 20000), 16385, "longer than 16384 bytes"},
	} {
		f, err := expression.RecordFilter(c.expr)
		var e *expression.Error
		if f != nil || !errors.As(err, &e) {
			t.Errorf("%.60s: compiles, or error %v", c.expr, err)
			continue
		}
		if !strings.Contains(e.Reason, c.reason) || e.Offset+1 != c.column {
			t.Errorf("%.60s: %v, want column %d: %s", c.expr, err, c.column, c.reason)
		}
	}
}

// What a record makes no value of rejects it, and says so.
func TestNoValue(t *testing.T) {
	for _, e := range []string{`lang`, `lang > 5`, `lang * 2 == 4`, `1 / 0 == 1`, `retries % 0 == 1`, `url.substring(99) == ''`, `_rs_.size() > url`} {
		f, err := expression.RecordFilter(e)
		if err != nil {
			t.Errorf("%s: %v", e, err)
			continue
		}
		if ok, err := f(page()); ok || !errors.Is(err, expression.ErrValue) || strings.ContainsAny(err.Error(), "\n|") {
			t.Errorf("%s: %v, %v", e, ok, err)
		}
	}
}

func host() *hostdb.Host {
	return &hostdb.Host{
		Name: "example.org", Homepage: "http://example.org/", Score: 2.5, DNSFailures: 1, ConnectionFailures: 3, Overdue: 7,
		Pages:  hostdb.Pages{Unfetched: 100, Fetched: 41, NotModified: 9, Gone: 5, RedirTemp: 2, RedirPerm: 1, Duplicate: 50},
		Fields: map[string]float64{"avg._rs_": 120.5, "pct95._rs_": 900, "Content-Type.text/html": 3, "a-b": 1, "a_b": 2},
	}
}

func TestHost(t *testing.T) {
	for _, c := range []struct {
		expr string
		want float64
	}{
		{`unfetched + fetched + notModified + gone + redirTemp + redirPerm`, 158},
		{`numRecords`, 158}, {`redirs`, 3}, {`ok`, 50},
		{`fetched / 2`, 20}, {`fetched / 2.0`, 20.5},
		{`dnsFailures + connectionFailures`, 4}, {`num.overdue`, 7}, {`score`, 2.5},
		{`avg._rs_ * 10`, 1205}, {`pct95._rs_`, 900}, {`a_b`, 2},
		{`gone > 3 ? 10 : 1000`, 10}, {`host == 'example.org' ? 1 : 2`, 1},
		{`min._rs_ ?? 5000`, 5000}, {`empty(homepage) ? 1 : 0`, 0}, {`-1`, -1},
		{`true ? 1 : 0`, 1},
	} {
		f, err := expression.HostNumber(c.expr)
		if err != nil {
			t.Errorf("%s: %v", c.expr, err)
			continue
		}
		if got, err := f(host()); got != c.want || err != nil {
			t.Errorf("%s: %v, %v, want %v", c.expr, got, err, c.want)
		}
	}
	for _, e := range []string{`min._rs_`, `min._rs_ * 2`, `1 / 0`, `nothing ? 1 : null`} {
		f, err := expression.HostNumber(e)
		if err != nil {
			t.Errorf("%s: %v", e, err)
			continue
		}
		if n, err := f(host()); n != 0 || !errors.Is(err, expression.ErrValue) {
			t.Errorf("%s: %v, %v", e, n, err)
		}
	}
	for _, e := range []string{`fetched > 1`, `host`, ``, `fetched +`} {
		if f, err := expression.HostNumber(e); f != nil || err == nil {
			t.Errorf("%s compiles", e)
		}
	}
	filter, err := expression.HostFilter(`numRecords > 100 && dnsFailures < 3`)
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := filter(host()); !ok || err != nil {
		t.Error(ok, err)
	}
	if ok, err := filter(&hostdb.Host{}); ok || err != nil {
		t.Error(ok, err)
	}
}

// Under NutchCompat a missing name fails the expression unless it is guarded, and
// a number needs a fraction.
func TestNutchCompat(t *testing.T) {
	compat := expression.Options{NutchCompat: true}
	for _, c := range []struct {
		expr string
		want bool
		fail bool
	}{
		{`lang == 'de'`, true, false},
		{`nothing != 'x'`, false, true},
		{`nothing == null`, false, true},
		{`!nothing.startsWith('x')`, false, true},
		{`true || nothing`, true, false},
		{`(nothing ?: 'x') == 'x'`, true, false},
		{`(nothing ?? 'x') == 'x'`, true, false},
		{`nothing ? false : true`, true, false},
		{`empty(nothing)`, true, false},
		{`lang ? true : false`, true, false},
		{`lang =~ ['de', nothing]`, false, true}, // a list is computed before it is looked into
		{`lang =~ ['de', nothing ?? 'x']`, true, false},
		{`!lang`, false, false},
		{`lang && true`, true, false},
		{`signature == null`, true, false},
		{`signature == 'ab01'`, false, false},
		{`signature != null || score > 100`, false, false},
		{`signature !~ 'a.*'`, true, false},
		{`signature !^ 'a'`, false, true},
		{`signature > 'a'`, false, true},
	} {
		f, err := compat.RecordFilter(c.expr)
		if err != nil {
			t.Errorf("%s: %v", c.expr, err)
			continue
		}
		d := page()
		if strings.HasPrefix(c.expr, "signature") {
			d.Signature = nil // which is there, and null
		}
		if got, err := f(d); got != c.want || errors.Is(err, expression.ErrValue) != c.fail {
			t.Errorf("%s: %v, %v", c.expr, got, err)
		}
	}
	for e, ok := range map[string]bool{`fetched / 2`: false, `fetched / 2.0`: true, `100`: false, `100.0`: true} {
		f, err := compat.HostNumber(e)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f(host()); (err == nil) != ok {
			t.Errorf("%s: %v", e, err)
		}
	}
	if _, err := compat.RecordFilter(`score >`); err == nil {
		t.Error("a mistake compiles")
	}
}

func TestLocation(t *testing.T) {
	o := expression.Options{Location: time.FixedZone("east", 3600)}
	f, err := o.RecordFilter(`2016-03-20T00:00:00Z == 1458428400000`)
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := f(page()); !ok || err != nil {
		t.Error(ok, err)
	}
}

func TestConcurrently(t *testing.T) {
	f, err := expression.RecordFilter(`url =~ '.*/7\d*' && score > 0.5 && lang != 'x'`)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 500 {
				d := crawldb.Datum{URL: fmt.Sprintf("http://h/%d", i), Score: float32(g)}
				ok, err := f(&d)
				if want := strings.HasPrefix(d.URL, "http://h/7") && g > 0; ok != want || err != nil {
					t.Errorf("%s, %v: %v, %v", d.URL, d.Score, ok, err)
				}
			}
		})
	}
	wg.Wait()
}

func FuzzCompile(f *testing.F) {
	for _, e := range []string{
		`score > 0.5`, `url =~ 'https?://.*\.example\.org/.*'`, `status.equalsIgnoreCase('FETCHED')`, `doc.tags.size() == 2`,
		`true ? 1 : 0`, `fetchTime > 2016-03-20T00:00:00Z`, `new java.io.File('/')`, `a ?: b ?? c`, `!(x !~ ['a', 1.5e3, null])`,
		`-_rs_ * 2 % 3 - 'x'.size()`, `url.substring(1, 2).replace('a', "\u0041") =^ 'x';`, `empty size url`, `1e`, `0x`, `1..2`, `a.eq.b`,
	} {
		f.Add(e)
	}
	d, h := page(), host()
	f.Fuzz(func(t *testing.T, src string) {
		for _, o := range []expression.Options{{}, {NutchCompat: true}} {
			if r, err := o.RecordFilter(src); err == nil {
				if ok, err := r(d); ok && err != nil || err != nil && !errors.Is(err, expression.ErrValue) {
					t.Errorf("%q: %v, %v", src, ok, err)
				}
				if a, err := r(&crawldb.Datum{}); a && err != nil {
					t.Errorf("%q: true with an error", src)
				}
			} else if strings.Contains(err.Error(), "cannot be compiled") {
				t.Errorf("%q: the translation is at fault: %v", src, err)
			}
			if n, err := o.HostNumber(src); err == nil {
				if _, err := n(h); err != nil && !errors.Is(err, expression.ErrValue) {
					t.Errorf("%q: %v", src, err)
				}
			} else if strings.Contains(err.Error(), "cannot be compiled") {
				t.Errorf("%q: the translation is at fault: %v", src, err)
			}
		}
	})
}

func BenchmarkRecord(b *testing.B) {
	d := page()
	for _, e := range []string{`score > 0.05`, `url.startsWith('http://')`, `url =~ 'https?://.*\.example\.org/.*' && score > 0.05`, `Content_Type == 'text/html' && _rs_ > 200`} {
		b.Run(e, func(b *testing.B) {
			f, err := expression.RecordFilter(e)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if ok, err := f(d); !ok || err != nil {
					b.Fatal(ok, err)
				}
			}
		})
	}
}

// Nutch's TestJexlUtil, whose names are metadata here.
func TestJexlUtil(t *testing.T) {
	d := crawldb.Datum{URL: "https://www.example.org/", Status: crawldb.Fetched, Score: 0.75, FetchTime: time.Now(), Meta: crawldb.MetaOf("doc.tags", "ab")}
	for _, e := range []string{
		`score > 0.5`, `2 * 3 + 1 == 7`, `url.startsWith('https://')`, `url =~ 'https?://.*\.example\.org/.*'`,
		`status.equalsIgnoreCase('DB_FETCHED')`, `doc.tags.size() == 2`, `(true ? 1 : 0) == 1`, `fetchTime > 2016-03-20T00:00:00Z`,
	} {
		f, err := expression.RecordFilter(e)
		if err != nil {
			t.Error(err)
			continue
		}
		if ok, err := f(&d); !ok || err != nil {
			t.Errorf("%s: %v, %v", e, ok, err)
		}
	}
	one, err := expression.HostNumber(`true ? 1 : 0`)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := one(&hostdb.Host{}); n != 1 || err != nil {
		t.Error(n, err)
	}
	for _, e := range []string{`new java.io.File('/')`, `score >`, `url.getClass().forName('java.lang.Runtime')`, `''.class`} {
		if f, err := expression.RecordFilter(e); err == nil || f != nil {
			t.Errorf("%s compiles", e)
		}
	}
}
