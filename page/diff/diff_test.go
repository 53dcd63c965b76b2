package diff_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/page/diff"
)

// text returns the parts in one line.
func text(parts []diff.Part) string {
	var b strings.Builder
	for _, p := range parts {
		switch p.Op {
		case diff.Skipped:
			fmt.Fprintf(&b, "(%d)", p.Words)
		default:
			b.WriteString([]string{"=", "-", "+"}[p.Op] + "[" + p.Text + "]")
		}
	}
	return b.String()
}

func TestWords(t *testing.T) {
	for _, c := range []struct {
		before, after string
		context       int
		want          string
	}{
		{"", "", -1, ""},
		{"a b", " a\n b ", -1, ""},
		{"", "a b", -1, "+[a b]"},
		{"a b", "", -1, "-[a b]"},
		{"a b c", "a x c", -1, "=[a ]-[b ]+[x ]=[c]"},
		{"the price is 10 euro today", "the price is 12 euro now", -1, "=[the price is ]-[10 ]+[12 ]=[euro ]-[today]+[now]"},
		{"a b c d", "b c d e", -1, "-[a ]=[b c d ]+[e]"},
		{"1 2 3 4 5 6 7 8 9", "1 2 3 4 x 6 7 8 9", 2, "(2)=[3 4 ]-[5 ]+[x ]=[6 7 ](2)"},
		{"x 2 3 4 5 6 7 8 y", "a 2 3 4 5 6 7 8 b", 2, "-[x ]+[a ]=[2 3 ](3)=[7 8 ]-[y]+[b]"},
		{"x 2 3 4 5 y", "a 2 3 4 5 b", 2, "-[x ]+[a ]=[2 3 4 5 ]-[y]+[b]"},
		{"1 2 3", "1 2 3 4", 0, "(3)+[4]"},
		{"a\tb", "a\u3000c", -1, "=[a\u3000]-[b]+[c]"},
	} {
		if got := text(diff.Words(c.before, c.after, c.context)); got != c.want {
			t.Errorf("%q, %q: %s, want %s", c.before, c.after, got, c.want)
		}
	}
}

func fields(parts []diff.Part, without diff.Op) (words []string) {
	for _, p := range parts {
		if p.Op != without {
			words = append(words, strings.Fields(p.Text)...)
		}
	}
	return words
}

// Without what was added the parts are the text before, without what was removed that after, and no
// fewer words could be removed and added.
func TestPartsMakeBothTexts(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		a, b := words(random, random.IntN(12), 3), words(random, random.IntN(12), 3)
		parts := diff.Words(strings.Join(a, " "), strings.Join(b, " "), -1)
		if parts == nil {
			if !slices.Equal(a, b) {
				t.Fatalf("%q and %q are the same", a, b)
			}
			continue
		}
		edits := 0
		for i, p := range parts {
			if n := len(strings.Fields(p.Text)); n != p.Words || n == 0 || i > 0 && parts[i-1].Op == p.Op {
				t.Fatalf("%q, %q: %s", a, b, text(parts))
			}
			if p.Op != diff.Same {
				edits += p.Words
			}
		}
		if want := len(a) + len(b) - 2*longestCommon(a, b); !slices.Equal(fields(parts, diff.Added), a) || !slices.Equal(fields(parts, diff.Removed), b) || edits != want {
			t.Fatalf("%q, %q: %s, with %d edits, want %d", a, b, text(parts), edits, want)
		}
	}
}

func words(random *rand.Rand, n, kinds int) []string {
	w := make([]string, n)
	for i := range w {
		w[i] = string(rune('a' + random.IntN(kinds)))
	}
	return w
}

// longestCommon is the length of the longest common subsequence.
func longestCommon(a, b []string) int {
	row := make([]int, len(b)+1)
	for _, x := range a {
		diagonal := 0
		for j, y := range b {
			above := row[j+1]
			if x == y {
				row[j+1] = diagonal + 1
			} else {
				row[j+1] = max(above, row[j])
			}
			diagonal = above
		}
	}
	return row[len(b)]
}

// Large texts that have nothing in common take little time, and count as replaced.
func TestLargeTextsAreBounded(t *testing.T) {
	var a, b strings.Builder
	for i := range 200_000 {
		fmt.Fprintf(&a, "a%d ", i)
		fmt.Fprintf(&b, "b%d ", i)
	}
	began := time.Now()
	parts := diff.Words("start "+a.String()+" end", "start "+b.String()+" end", 3)
	if len(parts) != 4 || parts[1].Op != diff.Removed || parts[1].Words != 200_000 || parts[2].Words != 200_000 {
		t.Errorf("%d parts", len(parts))
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestPartsAsJSON(t *testing.T) {
	parts := diff.Words("a b c", "a b d", 1)
	raw, err := json.Marshal(parts)
	if want := `[{"op":"skipped","words":1},{"op":"same","text":"b ","words":1},{"op":"removed","text":"c","words":1},{"op":"added","text":"d","words":1}]`; err != nil || string(raw) != want {
		t.Errorf("%s, %v", raw, err)
	}
	var back []diff.Part
	if err := json.Unmarshal(raw, &back); err != nil || !slices.Equal(back, parts) {
		t.Errorf("%v, %v", back, err)
	}
}

func BenchmarkWords(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 2))
	before := words(random, 2000, 26)
	after := slices.Clone(before)
	for range 40 {
		after[random.IntN(len(after))] = "x"
	}
	x, y := strings.Join(before, " "), strings.Join(after, " ")
	for b.Loop() {
		diff.Words(x, y, 5)
	}
}
