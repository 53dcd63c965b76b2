package crawldb

import (
	"encoding/binary"
	"errors"
	"iter"
	"slices"
	"strings"

	"github.com/recrawl/recrawl/internal/prefixed"
)

// Meta is a small set of names and values in the order of the names. The zero
// value is empty. It stays encoded, so that a scan over a million records does
// not allocate a million maps, and is immutable underneath: changing a copy of
// a Meta does not change the original.
//
// A policy keeps its state under names that begin with its own name and a dot
// ("opic.cash"). What a page says of itself is kept under "page." and can set
// nothing else; what sitemaps say of it is under "sitemap." ([Sitemap], [SitemapEntry]).
// Seeds may set any name.
type Meta struct{ enc string }

// Get returns the value of a name, and whether there is one.
func (m Meta) Get(name string) (string, bool) {
	for rest := m.enc; rest != ""; {
		var n, v string
		n, rest, _ = prefixed.Cut(rest)
		v, rest, _ = prefixed.Cut(rest)
		if n == name {
			return v, true
		}
		if n > name {
			break
		}
	}
	return "", false
}

// Set gives name a value, replacing the one it had.
func (m *Meta) Set(name, value string) { m.edit(name, &value) }

// SetAll sets all pairs of name and value. Of pairs with equal names the last counts; a last
// name without a value gets the empty value. It costs little more than setting one pair if
// the names ascend, and a sort of the pairs otherwise.
func (m *Meta) SetAll(pairs ...string) {
	for i := 2; i < len(pairs); i += 2 {
		if pairs[i-2] >= pairs[i] {
			pairs = sortedPairs(pairs)
			break
		}
	}
	var space [128]byte
	out, rest := space[:0], m.enc
	for i := 0; i < len(pairs); i += 2 {
		for rest != "" {
			n, r, _ := prefixed.Cut(rest)
			_, r, _ = prefixed.Cut(r)
			if n >= pairs[i] {
				if n == pairs[i] {
					rest = r
				}
				break
			}
			out, rest = append(out, rest[:len(rest)-len(r)]...), r
		}
		out = prefixed.Append(prefixed.Append(out, pairs[i]), valueAt(pairs, i+1))
	}
	m.enc = string(append(out, rest...))
}

// sortedPairs returns pairs in ascending order of their names, the last of those with equal
// names.
func sortedPairs(pairs []string) []string {
	order := make([]int, 0, len(pairs)/2+1)
	for i := 0; i < len(pairs); i += 2 {
		order = append(order, i)
	}
	slices.SortStableFunc(order, func(a, b int) int { return strings.Compare(pairs[a], pairs[b]) })
	sorted := make([]string, 0, len(pairs)+1)
	for i, at := range order {
		if i+1 == len(order) || pairs[order[i+1]] != pairs[at] {
			sorted = append(sorted, pairs[at], valueAt(pairs, at+1))
		}
	}
	return sorted
}

// valueAt returns the value at an index, empty after the end.
func valueAt(pairs []string, i int) string {
	if i < len(pairs) {
		return pairs[i]
	}
	return ""
}

// Merge sets all pairs of another Meta, at the cost of reading both once.
func (m *Meta) Merge(from Meta) {
	pairs := make([]string, 0, 16)
	for name, value := range from.All() {
		pairs = append(pairs, name, value)
	}
	m.SetAll(pairs...)
}

// Delete removes name.
func (m *Meta) Delete(name string) { m.edit(name, nil) }

// All yields the pairs in ascending order of the names.
func (m Meta) All() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for rest := m.enc; rest != ""; {
			var n, v string
			n, rest, _ = prefixed.Cut(rest)
			v, rest, _ = prefixed.Cut(rest)
			if !yield(n, v) {
				return
			}
		}
	}
}

// Len returns the number of pairs.
func (m Meta) Len() int {
	n := 0
	for range m.All() {
		n++
	}
	return n
}

func (m *Meta) edit(name string, value *string) {
	// What precedes the pair, and what follows it.
	before, behind := len(m.enc), ""
	for rest := m.enc; rest != ""; {
		n, r, _ := prefixed.Cut(rest)
		_, r, _ = prefixed.Cut(r)
		if n >= name {
			before, behind = len(m.enc)-len(rest), rest
			if n == name {
				behind = r
			}
			break
		}
		rest = r
	}
	if value == nil && before+len(behind) == len(m.enc) {
		return
	}
	var b strings.Builder
	if value == nil {
		b.Grow(before + len(behind))
		b.WriteString(m.enc[:before])
	} else {
		var head, tail [binary.MaxVarintLen64]byte
		h := binary.AppendUvarint(head[:0], uint64(len(name)))
		t := binary.AppendUvarint(tail[:0], uint64(len(*value)))
		b.Grow(before + len(h) + len(name) + len(t) + len(*value) + len(behind))
		b.WriteString(m.enc[:before])
		b.Write(h)
		b.WriteString(name)
		b.Write(t)
		b.WriteString(*value)
	}
	b.WriteString(behind)
	m.enc = b.String()
}

// validMeta reports whether enc is as edit writes it: whole pairs, names
// ascending.
func validMeta(enc string) bool {
	last, first := "", true
	for rest := enc; rest != ""; first = false {
		n, r, ok := prefixed.Cut(rest)
		if !ok || !first && n <= last {
			return false
		}
		if _, rest, ok = prefixed.Cut(r); !ok {
			return false
		}
		last = n
	}
	return true
}

// Encoded returns the pairs as one string, which [DecodeMeta] reads; empty if
// there are none.
func (m Meta) Encoded() string { return m.enc }

// DecodeMeta reads what [Meta.Encoded] returned, and shares its memory.
func DecodeMeta(enc string) (Meta, error) {
	if !validMeta(enc) {
		return Meta{}, errMeta
	}
	return Meta{enc}, nil
}

var errMeta = errors.New("crawldb: not an encoded Meta")

// MetaOf builds a Meta from pairs of name and value. It is meant for literals
// in programs and tests; a last name without a value has the empty value.
func MetaOf(pairs ...string) Meta {
	var m Meta
	m.SetAll(pairs...)
	return m
}
