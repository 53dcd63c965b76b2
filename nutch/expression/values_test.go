package expression_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/nutch/expression"
)

// odd is a record whose metadata are spelled in odd ways.
func odd() *crawldb.Datum {
	d := page()
	d.Meta = crawldb.MetaOf("x-y", "1", "x_y", "2", "p-q", "3", "a.eq", "yes", "$n", "4", "hex", "0x10", "inf", "Inf", "void", "", "no", "false",
		"zero", "0", "under", "1_000", "word", "de", "five", "5", "half", "0.5", "long", strings.Repeat("x", 1<<19))
	return d
}

func TestValues(t *testing.T) {
	for _, c := range []struct {
		expr string
		want bool
	}{
		// Numbers and texts as they are written.
		{`0X1f == 31 && 0xAF == 175 && 1E3 == 1000 && 1e+2 == 100 && 2e-1 == 0.2 && .09 == 0.09 && 0 == 00 && 1.9 > 1.8`, true},
		{`3f / 2 == 1.5 && 3d / 2 == 1.5 && 3L / 2 == 1 && 3h / 2 == 1 && 3B / 2 == 1.5`, true},
		{`1.5.size == null`, false},
		{"'\\n' == '\n' && '\\r' == '\r' && '\\t' == '\t' && '\\f' == '\f'", true},
		{"score\t<\r\n1\f", true},
		{`'\d' == '\\d' && '\ud834'.length() == 1`, true},

		// Names.
		{`x_y == 2 && p_q == 3 && $n == 4 && a.eq == 'yes'`, true},
		{`x.y == null && xXy == null && x_z == null && X_Y == null && x_y_ == null`, true},
		{`null.eq == null || true`, true},

		// Logic, and how tightly it binds.
		{`score > 1 || retries == 2`, true}, {`score > 1 || retries == 3 || word == 'de'`, true}, {`score > 1 || retries == 3`, false},
		{`true || false && false`, true}, {`(true || false) && false`, false}, {`!false && false`, false},
		{strings.Repeat("(true) && !false && -1 < 0 && ", 150) + "true", true},
		{`true == (url != 'x') && (url == 'x') == false && !(word == 'x') == true`, true},

		// Truth of what is not true or false.
		{`five && !zero.isEmpty()`, false}, {`retries && 1 && 0.5 && -1`, true}, {`0 || 0.0 || void || nothing || null`, false},
		{`word || no`, false}, {`!word && !no && !void && !nothing && !0`, true},

		// What is chosen has the kind of what it is, not of the first.
		{`(word != 'de' ? 1 : '2') == 2 && (word == 'de' ? 'a' : 1) == 'a' && (true ? word : 1) == 'de'`, true},
		{`(word == 'de' ? url : url).startsWith('http') && (true ? 1 : 2) < 2`, true},
		{`(nothing ?: 5) == 5 && (nothing ?: '5') == 5 && (nothing ?? '5') + 1 == 51 && (five ?: 'x') + 1 == 6`, true},
		{`(void ?: 'x') == 'x' && (no ?: 'x') == 'x' && (0 ?: 7) == 7 && (3 ?: 7) == 3 && (zero ?: 7) == '0' && (0 ?? 7) == 0 && (void ?? 'x') == ''`, true},

		// Comparing texts, numbers and what counts as both.
		{`five < 10 && five <= 5 && five >= 5.0 && half < five && 10 > five && half == .5 && five == '5'`, true},
		{`five < '10'`, false}, // as texts
		{`five < 5 || five > 5 || half < 0.5 || half > 0.5 || word < 'de' || word > 'de'`, false},
		{`five <= 5 && half <= 0.5 && half >= 0.5 && word <= 'de' && word >= 'de' && score <= 0.1 && retries >= 2`, true},
		{`five <= 4 || half >= 0.6 || word <= 'dd' || word >= 'df'`, false},
		{`hex == 16 || inf == 5 || void == 0 || inf == inf + 0`, false},
		{`under == 1000 || word == 5 || 5 == word || true == 1`, false},
		{`nothing == null && null == nothing && !(nothing == 0) && !(0 == nothing) && nothing != ''`, true},
		{`nothing < 5 || 5 < nothing || nothing <= nothing || null >= 1`, false},
		{`nothing =^ 'a' || 'a' =^ nothing || nothing =$ 'a' || 'a' =$ nothing || nothing =~ 'null' || 'null' =^ nothing`, false},
		{`5 =^ '5' && five =$ '5' && 1.5 =^ 1 && retries =~ '\d'`, true},
		{`word =~ ['fr', 'de'] && five =~ [1, 5.0] && nothing =~ [null] && word !~ [] && !(word =~ []) && word =~ ['x', word]`, true},
		{`word =~ ['fr', 'd'] || nothing =~ ['x', 0] || word !~ ['de']`, false},
		{`(word =~ ['de']) =~ [true] && ((word =~ ['de']) =~ [false]) =~ [false]`, true},

		// Arithmetic.
		{`five + 1 == 6 && 1 + five == 6 && five + five == 10 && half + half == 1 && five - half == 4.5 && five * five == 25 && five / 2 == 2 && five % 2 == 1`, true},
		{`word + 1 == 'de1' && 1 + word == '1de' && word + five == 'de5' && five + word == '5de' && 'a' + five == 'a5' && five + 'a' == '5a'`, true},
		{`('5' + 1).size() == 2 && 1 + '5' == '15' && 'a' + true == 'atrue' && 1.5 + 'x' == '1.5x'`, true},
		{`nothing + 'a' == null && 'a' + nothing == null && nothing + 1 == null && 1 - nothing == null && nothing * nothing == null && nothing / 0 == null`, true},
		{`nothing * 2 < 5 || -nothing < 5 || +nothing < 5 || nothing + 1 < 5 || nothing.length() < 5 || size(nothing) < 5`, false},
		{`+five == 5 && +half == 0.5 && +7 / 2 == 3 && -five == -5 && -half == -0.5 && - -5 == 5 && -0.5 < 0`, true},
		{`7 - 3 - 2 == 2 && 8 / 4 / 2 == 1 && 2 * 3 % 4 == 2 && 1 + 2 * 3 == 7`, true},
		{`0 * 5 == 0 && 5 * 0 == 0 && 0 * 0 == 0 && -3 * 4 == -12 && 3 + 0 == 3 && 0 + 0 == 0 && 3 - 0 == 3 && 5 - 9 == -4`, true},
		// Results that do not fit an integer continue as fractions.
		{`9223372036854775807 * 2 > 1.8e19 && -9223372036854775807 - 9 < -9.2e18 && -9223372036854775807 + -9 < -9.2e18 && 9223372036854775807 - -9 > 9.2e18`, true},
		{`(-9223372036854775807 - 1) * -1 > 9.2e18 && -1 * (-9223372036854775807 - 1) > 9.2e18 && (-9223372036854775807 - 1) / -1 > 9.2e18`, true},
		{`-(-9223372036854775807 - 1) > 9.2e18 && (-9223372036854775807 - 1) % -1 == 0 && 7 % -1 == 0 && 7.5 % 2 == 1.5`, true},
		{`3037000500 * 3037000500 > 9.2e18 && 4294967296 * 4294967296 > 1.8e19`, true},
		{`1 / 2.0 == 0.5 && 1.0 / 2 == 0.5 && 1e3 / 3 > 333.3`, true},

		// Methods, also of null.
		{`word.startsWith('d') && word.endsWith('e') && word.contains('d') && word.equals('de') && !word.equals('d')`, true},
		{`word.endsWith('d') || word.contains('x') || word.startsWith('e')`, false},
		{`url.endsWith(nothing) || url.contains(nothing) || nothing.contains('x') || url.equals(nothing)`, false},
		{`url.concat(nothing) == null && url.indexOf(nothing) == null && nothing.trim() == null && url.substring(nothing) == null`, true},
		{`url.indexOf(nothing) < 99 || nothing.compareTo('x') < 99`, false},
		{`url.contains(nothing) == false && nothing.startsWith('x') == false`, true},
		{`'abc'.substring(0) == 'abc' && 'abc'.substring(3) == '' && 'abc'.substring(1, 1) == '' && 'abc'.substring(0, 3) == 'abc'`, true},
		{`'äa'.indexOf('ä') == 0 && 'äa'.indexOf('a') == 1 && 'äaa'.lastIndexOf('a') == 2 && word.length() == 2 && size word == 2`, true},
		{`five.concat(1) == '51' && five.replace(5, 6) == 6 && word.compareTo('de') == 0 && word.compareTo('df') < 0`, true},
		{`word.toUpperCase() == 'DE' && word.toUpperCase().toLowerCase().concat('x').length() == 3`, true},
		{`empty(void) && !empty(zero) && !empty(0) && void.isEmpty() && size(void) == 0`, true},
	} {
		f, err := expression.RecordFilter(c.expr)
		if strings.Contains(c.expr, "1.5.size") || strings.Contains(c.expr, "null.eq") {
			if err == nil {
				t.Errorf("%s compiles", c.expr)
			}
			continue
		}
		if err != nil {
			t.Errorf("%.300s: %v", c.expr, err)
			continue
		}
		if got, err := f(odd()); got != c.want || err != nil {
			t.Errorf("%.300s: %v, %v, want %v", c.expr, got, err, c.want)
		}
	}
}

// An error names the value that was not of the right kind.
func TestValueErrors(t *testing.T) {
	for e, reason := range map[string]string{
		`word < 5`:                                  `"de" and 5 have no order`,
		`5 >= word`:                                 `5 and "de" have no order`,
		`word * 2 == 4`:                             `"de" * 2 is not a number`,
		`2 - word == 4`:                             `2 - "de" is not a number`,
		`-word == 4`:                                `"de" is not a number`,
		`five / 0 == 1`:                             "division by zero",
		`five % zero == 1`:                          "division by zero",
		`1.5 % 0 == 1`:                              "division by zero",
		`'abc'.substring(2, 1) == ''`:               "substring of 3 characters from 2 to 1",
		`'abc'.substring(-1) == ''`:                 "from -1 to null",
		`'abc'.substring(0, 4) == ''`:               "from 0 to 4",
		`'abc'.substring(word) == ''`:               `from "de"`,
		`'abc'.substring(0, word) == ''`:            `to "de"`,
		`(five + 1).trim() == ''`:                   "6 has no method trim",
		`size(five + 1) == 1`:                       "6 has no size",
		`five`:                                      `gives "5" where true or false is needed`,
		`long * 2 == 1`:                             `"` + strings.Repeat("x", 80) + `..." * 2`,
		`(long + 'a') + long == ''`:                 "a text of more than",
		`(long + 'a').concat(long) == ''`:           "a text of more than",
		`long.replace('x', 'yyy') == ''`:            "replace makes a text of more than",
		`long.replace('', long) == ''`:              "replace makes a text of more than",
		`(long + long).toUpperCase() + 'x' == 'XX'`: "a text of more than",
	} {
		f, err := expression.RecordFilter(e)
		if err != nil {
			t.Errorf("%s: %v", e, err)
			continue
		}
		if ok, err := f(odd()); ok || !errors.Is(err, expression.ErrValue) || !strings.Contains(err.Error(), reason) {
			t.Errorf("%s: %v, %v, want %s", e, ok, err, reason)
		}
	}
	// So much is still a text.
	f, err := expression.RecordFilter(`(long + long).size() == 1048576 && long.replace('x', 'yy').size() == 1048576`)
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := f(odd()); !ok || err != nil {
		t.Error(ok, err)
	}
}

// A score that is not a number is neither more nor less than anything, whatever
// it is compared with.
func TestNotANumber(t *testing.T) {
	d := odd()
	d.Score = float32(math.NaN())
	for _, e := range []string{`score < five`, `five < score`, `score >= five`, `score == five`, `score == score`, `score < 0.5`, `score`} {
		f, err := expression.RecordFilter("false || (" + e + ")")
		if err != nil {
			t.Fatal(err)
		}
		if ok, err := f(d); ok || err != nil {
			t.Errorf("%s: %v, %v", e, ok, err)
		}
	}
	h := host()
	h.Score = float32(math.NaN())
	n, err := expression.HostNumber("score")
	if err != nil {
		t.Fatal(err)
	}
	if v, err := n(h); !errors.Is(err, expression.ErrValue) {
		t.Error(v, err)
	}
}

// Machine-made expressions compile in bounded time, too: nested lists once
// doubled the code at each step.
func TestLongExpressions(t *testing.T) {
	for name, e := range map[string]string{
		"many names":           "x" + strings.Repeat("||x", 1000),
		"many signs":           "1 == " + strings.Repeat("1-", 2000) + "1",
		"a long list":          "five =~ [5" + strings.Repeat(",5", 2000) + "]",
		"lists in lists":       strings.Repeat("(", 45) + "word" + strings.Repeat(" =~ ['de', true])", 45),
		"many methods":         "url" + strings.Repeat(".trim()", 2000) + " == url",
		"the greatest of them": "true" + strings.Repeat(" ", 1<<14-4),
	} {
		for _, o := range []expression.Options{{}, {NutchCompat: true}} {
			f, err := o.RecordFilter(e)
			if err != nil {
				t.Errorf("%s: %.300v", name, err)
				continue
			}
			ok, err := f(odd())
			if none := o.NutchCompat && name == "many names"; none != (err != nil) || !none && ok != (name != "many names" && name != "many signs") {
				t.Errorf("%s, %v: %v, %.300v", name, o, ok, err)
			}
		}
	}
}

// What an error shows of a long expression is where the trouble is.
func TestErrorShowsThePlace(t *testing.T) {
	for _, c := range []struct{ src, want string }{
		{`score > ?`, `expression: "score > ?", column 9: unexpected ?`},
		{strings.Repeat("true && ", 100) + "score >> 1" + strings.Repeat(" || true", 100), `&& score >> 1 ||`},
		{"score ? " + strings.Repeat("x", 300), `expression: "...xxx`},
		{strings.Repeat("x", 300) + "?", `xxx?", column 302: ends too early`},
	} {
		_, err := expression.RecordFilter(c.src)
		if err == nil || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 300 {
			t.Errorf("%.50s: %v", c.src, err)
		}
	}
}
