package extract

import (
	"context"
	"crypto/md5"
	"strings"
	"unicode"

	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/signature"
)

// MainContent is a [signature.Signature] of headline and main content: letters, digits and signs of currencies
// in lower case, in their order. Around the main content, short texts without links count, too: a price, say.
// Menus, adverts, related pages, and lines that only say when or how often do not change it. What is not
// HTML, and a page without main content, has its [signature.TextMD5].
//
// It extracts the page again, which takes about a third of the time of a visit.
type MainContent struct{}

var _ signature.Signature = MainContent{}

// Name returns "MainContent(1)". The number changes when the extraction does, since pages would then seem
// to have changed.
func (MainContent) Name() string { return "MainContent(1)" }

// Sum returns 16 bytes.
func (MainContent) Sum(c *page.Content, p *page.Parsed) []byte {
	a, err := Extract(context.Background(), c)
	if err != nil || a.Text == "" {
		return signature.TextMD5{}.Sum(c, p)
	}
	h := md5.New()
	var piece []byte
	add := func(s string) {
		piece = piece[:0]
		for _, r := range s {
			if unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.Sc, r) || r == '%' || r == '.' {
				piece = append(piece, string(unicode.ToLower(r))...)
			}
		}
		h.Write(append(piece, '\n'))
	}
	add(a.Title)
	if a.main == nil {
		add(a.Text)
		return h.Sum(nil)
	}
	for _, run := range a.main.facts(a.wide, a.out) {
		if line := a.main.textOf([]int{run}); !isStamp(line) {
			add(line)
		}
	}
	return h.Sum(nil)
}

// isStamp reports whether a line only says when something was, or how often something happened: a date and
// at most three other words, or a count of views and the like.
func isStamp(line string) bool {
	if len(line) > 90 {
		return false
	}
	words := strings.FieldsFunc(strings.ToLower(line), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	if len(words) == 0 || len(words) > 14 {
		return len(words) == 0
	}
	dates, counts, numbers, others := 0, 0, 0, 0
	for _, w := range words {
		switch {
		case dateWord(w):
			dates++
		case countWord(w):
			counts++
		case w[0] >= '0' && w[0] <= '9':
			numbers++
		default:
			others++
		}
	}
	return dates > 0 && numbers > 0 && others <= 3 || counts > 0 && numbers > 0 && others == 0 || isoDate(line) && others <= 3
}

func isoDate(line string) bool {
	for i := 0; i+10 <= len(line); i++ {
		ok := true
		for j, c := range []byte(line[i : i+10]) {
			if j == 4 || j == 7 {
				ok = ok && (c == '-' || c == '/' || c == '.')
			} else {
				ok = ok && c >= '0' && c <= '9'
			}
		}
		if ok {
			return true
		}
	}
	return false
}

// dateWord reports whether a word is of a date: months and days in the larger languages of the web, and
// those of relative times.
func dateWord(w string) bool {
	switch w {
	case "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december",
		"jan", "feb", "mar", "apr", "jun", "jul", "aug", "sep", "sept", "oct", "nov", "dec",
		"januar", "februar", "märz", "mai", "juni", "juli", "oktober", "dezember",
		"janvier", "février", "mars", "avril", "juin", "juillet", "août", "septembre", "octobre", "novembre", "décembre",
		"enero", "febrero", "marzo", "abril", "mayo", "junio", "julio", "agosto", "septiembre", "octubre", "noviembre", "diciembre",
		"gennaio", "febbraio", "aprile", "maggio", "giugno", "luglio", "settembre", "ottobre", "dicembre",
		"janeiro", "fevereiro", "março", "maio", "junho", "julho", "setembro", "outubro", "novembro", "dezembro",
		"ago", "yesterday", "today", "vor", "gestern", "heute", "hace", "ayer", "hoy":
		return true
	}
	return false
}

func countWord(w string) bool {
	switch w {
	case "views", "view", "comments", "comment", "likes", "like", "shares", "share", "min", "mins", "minutes", "minute", "read", "reading", "time", "replies", "reply", "votes", "upvotes", "visits", "visitors", "downloads", "online", "reads":
		return true
	}
	return false
}
