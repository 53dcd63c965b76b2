// Package diff compares two texts word by word. It knows nothing of pages and their fields: those are
// compared by recrawl.PageEvent.Diff. Start with Words.
package diff

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Op says which of two texts a part is from.
type Op uint8

const (
	// Same is in both texts.
	Same Op = iota
	// Removed is only in the text before, Added only in the text after.
	Removed
	Added
	// Skipped is in both texts and left out.
	Skipped
)

// String returns "same", "removed", "added" or "skipped".
func (o Op) String() string {
	names := [...]string{"same", "removed", "added", "skipped"}
	if int(o) < len(names) {
		return names[o]
	}
	return "unknown"
}

// MarshalText returns what String returns.
func (o Op) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (o *Op) UnmarshalText(text []byte) error {
	for op := Same; op <= Skipped; op++ {
		if op.String() == string(text) {
			*o = op
			return nil
		}
	}
	return fmt.Errorf("diff: unknown op %q", text)
}

// Part is a run of words. Text has them with the white space behind each, in the spelling of the text
// after if they are the Same, and is empty if they are Skipped. Words is their number.
type Part struct {
	Op    Op     `json:"op"`
	Text  string `json:"text,omitempty"`
	Words int    `json:"words"`
}

// maxEdits and maxSteps bound the time and memory of Words: a few hundredths of a second, and 4 MB. Between
// two texts with more edits, all from the first difference to the last counts as removed and added.
const (
	maxEdits = 1000
	maxSteps = 20_000_000
)

// Words returns how two texts differ: the parts in the order of the texts, nil if they have the same
// words. White space does not count. Of a part that is the Same, the context words beside a change are
// kept and the others Skipped; a negative context keeps all. It is Myers' algorithm: the number of words
// that are removed and added is the least possible, unless it is more than a thousand.
func Words(before, after string, context int) []Part {
	a, b := split(before), split(after)
	start := 0
	for start < min(len(a), len(b)) && a[start].word == b[start].word {
		start++
	}
	end := 0
	for end < min(len(a), len(b))-start && a[len(a)-1-end].word == b[len(b)-1-end].word {
		end++
	}
	if start == len(a)-end && start == len(b)-end {
		return nil
	}
	var w writer
	w.add(Same, b[:start])
	compare(&w, a[start:len(a)-end], b[start:len(b)-end])
	w.add(Same, b[len(b)-end:])
	return w.parts(context)
}

// token is a word with the white space behind it.
type token struct{ word, text string }

func split(text string) (tokens []token) {
	text = strings.TrimLeftFunc(text, unicode.IsSpace)
	for text != "" {
		n := strings.IndexFunc(text, unicode.IsSpace)
		if n < 0 {
			n = len(text)
		}
		all := n
		for all < len(text) {
			r, size := utf8.DecodeRuneInString(text[all:])
			if !unicode.IsSpace(r) {
				break
			}
			all += size
		}
		tokens = append(tokens, token{text[:n], text[:all]})
		text = text[all:]
	}
	return tokens
}

// run is a part with its tokens.
type run struct {
	op     Op
	tokens []token
}

// writer collects runs.
type writer struct{ runs []run }

// add appends tokens, which follow those of the last run in memory if that has the same op.
func (w *writer) add(op Op, tokens []token) {
	if len(tokens) == 0 {
		return
	}
	if n := len(w.runs); n > 0 && w.runs[n-1].op == op {
		w.runs[n-1].tokens = append(w.runs[n-1].tokens[:len(w.runs[n-1].tokens):len(w.runs[n-1].tokens)], tokens...)
		return
	}
	w.runs = append(w.runs, run{op, tokens})
}

// compare appends the difference of two texts with the fewest edits: E. W. Myers, An O(ND) difference
// algorithm and its variations, Algorithmica 1 (1986).
func compare(w *writer, a, b []token) {
	most := min(maxEdits, maxSteps/(len(a)+len(b)+1), len(a)+len(b))
	var rows [][]int32 // of each number of edits, how far each diagonal has come in a
	furthest := make([]int32, 2*most+3)
	at := func(k int) *int32 { return &furthest[k+most+1] }
	found := -1
	for edits := 0; edits <= most && found < 0; edits++ {
		for k := -edits; k <= edits; k += 2 {
			x := 0
			switch {
			case edits == 0:
			case k == -edits || k != edits && *at(k - 1) < *at(k + 1):
				x = int(*at(k + 1))
			default:
				x = int(*at(k - 1)) + 1
			}
			for x < len(a) && x-k < len(b) && x-k >= 0 && a[x].word == b[x-k].word {
				x++
			}
			*at(k) = int32(x)
			if x >= len(a) && x-k >= len(b) {
				found = edits
			}
		}
		row := make([]int32, 2*edits+1)
		copy(row, furthest[most+1-edits:])
		rows = append(rows, row)
	}
	if found < 0 {
		w.add(Removed, a)
		w.add(Added, b)
		return
	}
	// The edits are found from the last to the first.
	var reversed []run
	x, y := len(a), len(b)
	for edits := found; edits > 0; edits-- {
		previous := rows[edits-1]
		value := func(k int) int {
			if k < -(edits-1) || k > edits-1 {
				return -1
			}
			return int(previous[k+edits-1])
		}
		k := x - y
		var px, py int
		if k == -edits || k != edits && value(k-1) < value(k+1) {
			px = value(k + 1)
			py = px - (k + 1)
			reversed = append(reversed, run{Same, b[py+1 : y]}, run{Added, b[py : py+1]})
		} else {
			px = value(k - 1)
			py = px - (k - 1)
			reversed = append(reversed, run{Same, b[py:y]}, run{Removed, a[px : px+1]})
		}
		x, y = px, py
	}
	w.add(Same, b[:y])
	// Between two words that are the same, what was removed comes before what was added.
	var removed, added []token
	flush := func() {
		w.add(Removed, removed)
		w.add(Added, added)
		removed, added = nil, nil
	}
	for i := len(reversed) - 1; i >= 0; i-- {
		switch r := reversed[i]; {
		case len(r.tokens) == 0:
		case r.op == Removed:
			removed = append(removed, r.tokens...)
		case r.op == Added:
			added = append(added, r.tokens...)
		default:
			flush()
			w.add(Same, r.tokens)
		}
	}
	flush()
}

// parts returns the runs as parts.
func (w *writer) parts(context int) (parts []Part) {
	add := func(op Op, tokens []token) {
		if len(tokens) == 0 {
			return
		}
		p := Part{Op: op, Words: len(tokens)}
		if op != Skipped {
			var text strings.Builder
			for _, t := range tokens {
				text.WriteString(t.text)
			}
			p.Text = text.String()
		}
		parts = append(parts, p)
	}
	for i, r := range w.runs {
		head, tail := context, context
		if i == 0 {
			head = 0
		}
		if i == len(w.runs)-1 {
			tail = 0
		}
		if n := len(r.tokens); r.op == Same && context >= 0 && n > head+tail {
			add(Same, r.tokens[:head])
			add(Skipped, r.tokens[head:n-tail])
			add(Same, r.tokens[n-tail:])
			continue
		}
		add(r.op, r.tokens)
	}
	return parts
}
