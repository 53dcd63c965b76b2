package bleve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	engine "github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/search"
	"github.com/blevesearch/bleve/v2/search/query"

	"github.com/recrawl/recrawl/index"
)

// Query says what to search for.
type Query struct {
	// Text has words, all of which a page must have in its title, its text or the links to it;
	// "several words" in quotation marks stand one after another. A minus before either leaves out pages that
	// have it. host:NAME, type:MEDIATYPE and title:WORD ask for a field. Without words, all pages are
	// found.
	Text string
	// Offset leaves out the first results, Limit is how many there are at most. Zero means ten.
	Offset, Limit int
}

// Results are the best pages for a query, the best first.
type Results struct {
	Total   int // all pages that were found
	Results []Result
}

// Result is one page that was found.
type Result struct {
	Document index.Document
	Score    float64
	// Snippet is the part of the text with the most words of the query, its beginning if it has none.
	// Matches are the places of the words in it: offset of the first byte, and of that behind
	// the last. It may have any character that the page has, also those that command a terminal.
	Snippet string
	Matches [][2]int
}

// ErrQuery says that a query cannot be read.
var ErrQuery = errors.New("cannot read the query")

// Search returns the best pages for a query.
func (x *Index) Search(ctx context.Context, q Query) (Results, error) {
	parsed, err := parseQuery(q.Text)
	if err != nil {
		return Results{}, err
	}
	if err := x.acquire(); err != nil {
		return Results{}, err
	}
	defer func() { _ = x.release() }()
	if q.Limit <= 0 {
		q.Limit = 10
	}
	r := engine.NewSearchRequestOptions(parsed, q.Limit, max(0, q.Offset), false)
	r.IncludeLocations = true
	r.SortBy([]string{"-_score", "_id"})
	found, err := x.open.SearchInContext(ctx, r)
	if err != nil {
		return Results{}, fmt.Errorf("bleve: search: %w", err)
	}
	all := Results{Total: int(found.Total)}
	for _, hit := range found.Hits {
		d, ok, err := x.document(hit.ID)
		if err != nil {
			return Results{}, err
		}
		if !ok { // deleted meanwhile
			continue
		}
		result := Result{Document: d, Score: hit.Score}
		result.Snippet, result.Matches = snippet(d.Text, places(hit.Locations["text"]))
		all.Results = append(all.Results, result)
	}
	return all, nil
}

// parseQuery reads the text of a query.
func parseQuery(text string) (query.Query, error) {
	all := engine.NewBooleanQuery()
	words := false
	for _, t := range terms(text) {
		q, err := t.query()
		if err != nil {
			return nil, err
		}
		if t.without {
			all.AddMustNot(q)
			continue
		}
		all.AddMust(q)
		words = true
	}
	if !words {
		all.AddMust(engine.NewMatchAllQuery())
	}
	return all, nil
}

// term is a word or phrase of a query.
type term struct {
	field, text     string
	phrase, without bool
}

// terms divides the text of a query.
func terms(text string) (all []term) {
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(text) {
		var t term
		if rest, ok := strings.CutPrefix(text, "-"); ok && rest != "" {
			t.without, text = true, rest
		}
		for _, field := range []string{"host", "type", "title"} {
			if rest, ok := strings.CutPrefix(text, field+":"); ok {
				t.field, text = field, rest
				break
			}
		}
		if rest, ok := strings.CutPrefix(text, `"`); ok {
			t.phrase = true
			t.text, text, _ = strings.Cut(rest, `"`)
		} else {
			end := strings.IndexAny(text, " \t\r\n")
			if end < 0 {
				end = len(text)
			}
			t.text, text = text[:end], text[end:]
		}
		if strings.TrimSpace(t.text) != "" {
			all = append(all, t)
		}
	}
	return all
}

// query returns the query of a term. A word in the title weighs most, then one in links to the page.
func (t *term) query() (query.Query, error) {
	if !utf8.ValidString(t.text) {
		return nil, fmt.Errorf("bleve: %w: %q is not UTF-8", ErrQuery, t.text)
	}
	in := func(field string, weight float64) query.Query {
		if t.phrase {
			q := engine.NewMatchPhraseQuery(t.text)
			q.SetField(field)
			q.SetBoost(weight)
			return q
		}
		q := engine.NewMatchQuery(t.text)
		q.SetField(field)
		q.SetBoost(weight)
		q.SetOperator(query.MatchQueryOperatorAnd)
		return q
	}
	switch t.field {
	case "host", "type":
		q := engine.NewTermQuery(strings.ToLower(t.text))
		q.SetField(t.field)
		return q, nil
	case "title":
		return in("title", 1), nil
	}
	return engine.NewDisjunctionQuery(in("title", 3), in("anchors", 2), in("text", 1)), nil
}

// places returns the places of matches in a field, in order and none within another.
func places(matches search.TermLocationMap) (all [][2]int) {
	for _, locations := range matches {
		for _, l := range locations {
			all = append(all, [2]int{int(l.Start), int(l.End)})
		}
	}
	slices.SortFunc(all, func(a, b [2]int) int { return cmp.Or(a[0]-b[0], b[1]-a[1]) })
	end := 0
	return slices.DeleteFunc(all, func(p [2]int) bool {
		if p[0] < end {
			return true
		}
		end = p[1]
		return false
	})
}

const (
	snippetBytes = 240
	snippetLead  = 60 // before the first match
)

// snippet cuts the part with the most matches out of a text.
func snippet(text string, matches [][2]int) (string, [][2]int) {
	best, most := 0, 0
	for first, last := 0, 0; first < len(matches); first++ {
		for last < len(matches) && matches[last][1] <= matches[first][0]+snippetBytes-snippetLead {
			last++
		}
		if last-first > most {
			best, most = first, last-first
		}
	}
	from := 0
	if most > 0 {
		from = wordStart(text, max(0, matches[best][0]-snippetLead), matches[best][0])
	}
	to := min(len(text), from+snippetBytes)
	if to < len(text) {
		to = wordStart(text, to-snippetLead/2, to)
	}
	var within [][2]int
	for _, m := range matches[best:] {
		if m[0] >= from && m[1] <= to {
			within = append(within, [2]int{m[0] - from, m[1] - from})
		}
	}
	return text[from:to], within
}

// wordStart returns the first beginning of a word in text[from:to], or to, or the beginning of a character
// near it.
func wordStart(text string, from, to int) int {
	if from == 0 {
		return 0
	}
	if i := strings.IndexAny(text[from:to], " \n\t"); i >= 0 {
		return from + i + 1
	}
	for from < to && !utf8.RuneStart(text[from]) {
		from++
	}
	return from
}
