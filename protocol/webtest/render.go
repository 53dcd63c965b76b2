package webtest

import (
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// link is where a link of a page leads.
type link struct{ host, page int }

// outlinks appends the targets of a page in its order, each once. A page never
// links to itself.
func (w *Web) outlinks(to []link, s *state) []link {
	h, p := s.host, s.page
	if p == hub {
		n := min(w.HubLinks, w.hosts()*w.pages())
		for i := range n {
			to = append(to, link{(h + i/w.pages()) % w.hosts(), i % w.pages()})
		}
		return to
	}
	if p != 0 {
		to = append(to, link{h, 0}) // the navigation
	} else if w.HubLinks > 0 {
		to = append(to, link{h, hub})
	}
	add := func(l link) {
		if l != (link{h, p}) && !slices.Contains(to, l) {
			to = append(to, l)
		}
	}
	fan, n, pages := w.fan(), w.links(), w.pages()
	for i := range fan {
		if c := p*fan + 1 + i; c < pages {
			add(link{h, c})
		}
	}
	for i := fan; i < n; i++ {
		version := 0
		if i == n-1 {
			version = s.version // the last link is a new one with every change
		}
		r := w.hash(saltLink, h, p, version*n+i)
		l := link{h, int(r % uint64(pages))}
		if other := r >> 32; other%4 == 0 {
			l.host = int(other >> 2 % uint64(w.hosts()))
		}
		add(l)
	}
	return to
}

// href spells a link the way its place on the page asks for: in full, from the
// root of the host, or from the directory of the page.
func (w *Web) href(b []byte, from string, h int, l link, place int) []byte {
	path := w.path(l.host, l.page)
	switch {
	case l.host != h && place%2 == 0:
		b = append(b, "//"...)
		b = append(b, w.Host(l.host)...)
	case l.host != h || place%4 == 0:
		b = append(b, "http://"...)
		b = append(b, w.Host(l.host)...)
	case place%4 == 1:
		dir := from[:strings.LastIndexByte(from, '/')+1]
		if rest, ok := strings.CutPrefix(path, dir); ok && rest != "" {
			path = rest
		}
	}
	return append(b, path...)
}

// render appends a page as HTML in the charset of its host.
func (w *Web) render(b []byte, s *state) []byte {
	h, from := s.host, len(b)
	charset := w.charset(h)
	b = append(b, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n"...)
	if charset == "windows-1251" {
		b = append(b, "<meta charset=\"windows-1251\">\n"...)
	}
	b = append(b, "<title>"...)
	b = w.title(b, h, s.page)
	b = append(b, "</title>\n"...)
	switch s.kind {
	case noIndex:
		b = append(b, "<meta name=\"robots\" content=\"noindex\">\n"...)
	case noFollow:
		b = append(b, "<meta name=\"robots\" content=\"nofollow\">\n"...)
	}
	b = append(b, "</head>\n<body>\n"...)

	var space [32]link
	links := w.outlinks(space[:0], s)
	path := w.path(h, s.page)
	anchor := func(i int) {
		b = append(b, "<a href=\""...)
		b = w.href(b, path, h, links[i], i)
		b = append(b, "\">"...)
		b = w.title(b, links[i].host, links[i].page)
		b = append(b, "</a>"...)
	}
	next := 0
	b = append(b, "<nav>"...)
	if s.page == 0 && w.HubLinks > 0 || s.page > 0 {
		anchor(0)
		next++
	}
	b = append(b, " <a href=\"mailto:editor"...)
	b = append(b, domain...)
	b = append(b, "\">Write to us</a></nav>\n<h1>"...)
	b = w.title(b, h, s.page)
	b = append(b, "</h1>\n<p>Revision "...)
	b = strconv.AppendInt(b, int64(s.version), 10)
	b = append(b, " of "...)
	b = s.changed.AppendFormat(b, time.DateOnly)
	b = append(b, ".</p>\n"...)

	// A change replaces one paragraph. Each paragraph carries its share of the
	// links.
	const paragraphs = 4
	for i := range paragraphs {
		edition := (s.version + i) / paragraphs
		r := w.hash(saltText, h, s.page, edition*paragraphs+i)
		b = append(b, "<p>"...)
		b = words(b, r, max(1, w.words()/paragraphs), charset, true)
		b = append(b, ".</p>\n"...)
		end := len(links)
		if i < paragraphs-1 {
			end = next + (len(links)-next)/(paragraphs-i)
		}
		if next == end {
			continue
		}
		b = append(b, "<ul>\n"...)
		for ; next < end; next++ {
			b = append(b, "<li>"...)
			anchor(next)
			b = append(b, "</li>\n"...)
		}
		b = append(b, "</ul>\n"...)
	}
	b = append(b, "</body>\n</html>\n"...)
	return encode(b, from, charset)
}

// title appends the title of a page: plain words, so that it can be said in the
// charset of any host that links to it.
func (w *Web) title(b []byte, h, p int) []byte {
	switch p {
	case 0:
		b = append(b, "Home of "...)
		return append(b, w.Host(h)...)
	case hub:
		return append(b, "All pages"...)
	}
	from := len(b)
	b = words(b, w.hash(saltTitle, h, p, 0), 3, "", false)
	b[from] -= 'a' - 'A'
	b = append(b, ' ')
	return strconv.AppendInt(b, int64(p), 10)
}

// words appends n words, as sentences if asked to.
func words(b []byte, r uint64, n int, charset string, sentences bool) []byte {
	foreign := foreignWords[charset]
	capital := sentences
	for i := range n {
		if i > 0 {
			if sentences && r%11 == 0 {
				b = append(b, '.')
				capital = true
			}
			b = append(b, ' ')
		}
		r = mix(r)
		word := plainWords[r%uint64(len(plainWords))]
		if len(foreign) > 0 && r>>32%4 == 0 {
			word = foreign[r>>40%uint64(len(foreign))]
		}
		if c := word[0]; capital && c < utf8.RuneSelf {
			b = append(b, c-('a'-'A'))
			word = word[1:]
		}
		b = append(b, word...)
		capital = false
	}
	return b
}

// encode turns b[from:], which is UTF-8, into a charset in place.
func encode(b []byte, from int, charset string) []byte {
	if charset == "utf-8" {
		return b
	}
	to := from
	for i := from; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		i += n
		switch {
		case charset == "windows-1251" && r >= 'А' && r <= 'я':
			r += 0xc0 - 'А'
		case r > 0xff || charset == "windows-1251" && r >= utf8.RuneSelf:
			r = '?' // the word lists have no such rune
		}
		b[to] = byte(r)
		to++
	}
	return b[:to]
}

var foreignWords = map[string][]string{
	"utf-8":        {"café", "naïve", "Übung", "Ελλάδα", "москва", "東京", "정보", "façade"},
	"iso-8859-1":   {"café", "naïve", "Übung", "señor", "smörgås", "garçon", "fjällräven", "à"},
	"windows-1251": {"погода", "новости", "книга", "Москва", "река", "письмо", "город", "время"},
}

var plainWords = strings.Fields(`
able above across add after again age air all along also always animal answer
apple area around art ask back ball base bear beat bed before begin behind bell
best better between big bird black blue boat body book both bottom bound box boy
branch bread break bright bring brother brown build busy buy call camp capital
car care carry case catch cause cell center chair chance change chart check chief
child choose circle city claim class clean clear climb clock close cloud coast
coat cold collect color column come common compare complete consider contain
continue control cook cool copy corn correct cost count country course cover
cross crowd cry current cut dance danger dark day deal decide deep degree depend
describe desert design detail develop differ dinner direct discuss distant
divide doctor dollar door double draw dream dress drink drive drop dry during
each early earth ease east edge effect egg eight electric element end energy
engine enough enter equal even evening event ever exact example except excite
exercise expect explain eye face fact fair fall family famous far farm fast
father favor fear feed feel field fig fight figure fill final find fine finger
finish fire first fish fit five flat floor flow flower follow food foot force
forest form forward found four fraction free fresh friend front fruit full game
garden gas gather general gentle glad glass gold good govern grand grass great
green ground group grow guess guide hand happen happy hard hat head hear heart
heat heavy help high hill history hold hole home hope horse hot hour house huge
human hundred hunt hurry ice idea imagine inch include industry insect instant
instrument interest iron island join joy jump just keep key kind king knew know
lake land language large last late laugh law lay lead learn least leave left
length less letter level lie life lift light line list listen little live local
locate log lone long look lost lot loud love low machine magnet main major make
map mark market mass master match material matter mean measure meat meet melody
metal method middle mile milk million mind mine minute miss mix modern molecule
moment money month moon morning most mother motion mount mountain mouth move
much multiply music name nation nature near neck need neighbor never new night
nine noise noon north nose note noun number object observe occur ocean offer
office oil old once open operate opposite order organ original other oxygen
`)
