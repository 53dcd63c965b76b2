package httpapi

import (
	"slices"
	"strings"
	"unicode"
)

// diffPart is a part of two texts, which both have, or which was added or removed.
type diffPart struct {
	Op   string `json:"op"` // "same", "added", "removed" or "skipped"
	Text string `json:"text"`
}

const (
	diffWords   = 20_000    // of each text; what follows is not compared
	diffCells   = 4_000_000 // of the table
	diffContext = 12        // words beside a change
)

// diffTexts returns how two texts differ in their words. If they differ in too many for a table of
// diffCells, all between the first and the last difference counts as removed and added.
func diffTexts(before, after string) (parts []diffPart) {
	a, b := words(before), words(after)
	start := 0
	for start < min(len(a), len(b)) && a[start] == b[start] {
		start++
	}
	end := 0
	for end < min(len(a), len(b))-start && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	add := func(op string, w []string) {
		if len(w) > 0 {
			parts = append(parts, diffPart{op, strings.Join(w, " ")})
		}
	}
	same := func(w []string, first, last bool) {
		if first && len(w) > diffContext {
			add("skipped", []string{number(len(w) - diffContext)})
			w = w[len(w)-diffContext:]
		}
		if last && len(w) > diffContext {
			add("same", w[:diffContext])
			add("skipped", []string{number(len(w) - diffContext)})
			return
		}
		if !first && !last && len(w) > 2*diffContext {
			add("same", w[:diffContext])
			add("skipped", []string{number(len(w) - 2*diffContext)})
			w = w[len(w)-diffContext:]
		}
		add("same", w)
	}
	middleA, middleB := a[start:len(a)-end], b[start:len(b)-end]
	if len(middleA)+len(middleB) == 0 {
		return nil
	}
	same(a[:start], true, false)
	if len(middleA)*len(middleB) > diffCells {
		add("removed", middleA)
		add("added", middleB)
	} else {
		for _, s := range compareWords(middleA, middleB) {
			if s.op == "same" {
				same(s.words, false, false)
			} else {
				add(s.op, s.words)
			}
		}
	}
	same(a[len(a)-end:], false, true)
	return parts
}

func words(text string) []string {
	w := strings.FieldsFunc(text, unicode.IsSpace)
	return w[:min(len(w), diffWords)]
}

type wordRun struct {
	op    string
	words []string
}

// compareWords is a diff by the longest common subsequence.
func compareWords(a, b []string) []wordRun {
	width := len(b) + 1
	length := make([]uint16, (len(a)+1)*width)
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				length[i*width+j] = length[(i+1)*width+j+1] + 1
			} else {
				length[i*width+j] = max(length[(i+1)*width+j], length[i*width+j+1])
			}
		}
	}
	var runs []wordRun
	add := func(op, word string) {
		if n := len(runs); n > 0 && runs[n-1].op == op {
			runs[n-1].words = append(runs[n-1].words, word)
		} else {
			runs = append(runs, wordRun{op, []string{word}})
		}
	}
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			add("same", a[i])
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && length[(i+1)*width+j] >= length[i*width+j+1]:
			add("removed", a[i])
			i++
		default:
			add("added", b[j])
			j++
		}
	}
	return slices.Clip(runs)
}
