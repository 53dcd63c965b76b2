package chromeproto

import (
	"bytes"
	"strings"
	"unicode"

	"golang.org/x/net/html"
)

const (
	// A page with more letters than enoughText has text of its own; a shell has a few links of
	// a menu or a line of loading at most.
	enoughText = 600
	// fewLetters is what a page without an app root may have to count as empty, and
	// loadingLetters what an app root may.
	fewLetters     = 60
	loadingLetters = 40
	// someScript is how many bytes of inline script may make a page.
	someScript = 400
	// maxDetected limits how much of a page is looked at.
	maxDetected = 1 << 20
)

// NeedsBrowser reports whether an HTML page, in any encoding that contains ASCII, seems to be empty
// without its scripts: it has scripts and little text, and beside that an element in which an app
// will be mounted and that is empty, or a notice that JavaScript must be enabled, or nothing to see
// at all. Pages that only lead elsewhere (meta refresh, frames) do not need one.
func NeedsBrowser(body []byte) bool {
	s := inspect(body[:min(len(body), maxDetected)])
	switch {
	case s.externals == 0 && s.inline == 0, s.letters >= enoughText, s.leads:
		return false
	case s.emptyRoot, s.asks:
		return true
	case s.externals == 0 && s.inline < someScript:
		return false
	}
	return s.letters < fewLetters && s.links < 3 && s.objects == 0 && !s.filledRoot
}

// signs are what the detector sees in a page.
type signs struct {
	letters               int // letters and digits of visible text
	links                 int
	objects               int // images, fields of forms, media
	externals             int // scripts with a source
	inline                int // bytes of other scripts
	emptyRoot, filledRoot bool
	asks                  bool // for JavaScript
	leads                 bool // elsewhere
}

// root is the element in which an app is mounted, while it is open.
type root struct {
	tag            string
	depth          int // of elements of this tag
	letters, links int // before it
}

func inspect(body []byte) (s signs) {
	z := html.NewTokenizer(bytes.NewReader(body))
	hidden, hiddenDepth := "", 0 // the element whose text is not visible
	var script, noscript bool
	var r *root
	attr := map[string]string{}
	for {
		kind := z.Next()
		switch kind {
		case html.ErrorToken:
			if r != nil && s.letters-r.letters < loadingLetters && s.links == r.links {
				s.emptyRoot = true // it was never closed
			}
			return s
		case html.TextToken:
			text := z.Text()
			switch {
			case script:
				s.inline += len(text)
			case noscript:
				s.asks = s.asks || asksForScripts(text)
			case hidden == "":
				if s.letters += letters(text); s.letters >= enoughText {
					return s
				}
			}
		case html.StartTagToken, html.SelfClosingTagToken:
			name, more := z.TagName()
			tag := string(name)
			if noscript {
				continue
			}
			clear(attr)
			for more {
				var k, v []byte
				k, v, more = z.TagAttr()
				attr[string(k)] = string(v)
			}
			switch tag {
			case "script":
				kind := strings.ToLower(attr["type"])
				script = kind == "" || kind == "module" || strings.Contains(kind, "javascript")
				if script && attr["src"] != "" || kind == "module" { // modules import others
					s.externals++
				}
				hidden, hiddenDepth = tag, 1
			case "noscript":
				noscript = true
			case "style", "template", "svg", "title", "textarea":
				if kind == html.StartTagToken && hidden == "" {
					hidden, hiddenDepth = tag, 1
				} else if hidden == tag {
					hiddenDepth++
				}
			case "a":
				if attr["href"] != "" {
					s.links++
				}
			case "img", "input", "select", "button", "video", "audio", "object", "embed":
				if attr["type"] != "hidden" {
					s.objects++
				}
			case "iframe":
				s.objects++
			case "frameset":
				s.leads = true
			case "meta":
				s.leads = s.leads || strings.EqualFold(attr["http-equiv"], "refresh")
			}
			if kind == html.SelfClosingTagToken {
				continue
			}
			if r != nil && tag == r.tag {
				r.depth++
			} else if r == nil && !s.emptyRoot && mountsApp(tag, attr) {
				r = &root{tag: tag, depth: 1, letters: s.letters, links: s.links}
			}
		case html.EndTagToken:
			name, _ := z.TagName()
			tag := string(name)
			switch {
			case tag == "script":
				script, hidden = false, ""
			case tag == "noscript":
				noscript = false
			case tag == hidden:
				if hiddenDepth--; hiddenDepth == 0 {
					hidden = ""
				}
			}
			if r != nil && tag == r.tag && !noscript {
				if r.depth--; r.depth == 0 {
					s.emptyRoot = s.letters-r.letters < loadingLetters && s.links == r.links
					s.filledRoot = !s.emptyRoot
					r = nil
				}
			}
		}
	}
}

// mountsApp reports whether frameworks mount apps in an element of this kind.
func mountsApp(tag string, attr map[string]string) bool {
	switch tag {
	case "app-root", "app", "my-app", "app-shell", "ion-app", "main-app", "flutter-view":
		return true
	case "body":
		_, ng := attr["ng-app"]
		return ng
	case "div", "main", "section", "article":
	default:
		return false
	}
	for _, name := range []string{"ng-app", "data-ng-app", "data-reactroot", "data-v-app", "ng-view", "ui-view", "data-app", "data-page", "data-server-rendered"} {
		if _, ok := attr[name]; ok {
			return true
		}
	}
	switch strings.ToLower(attr["id"]) {
	case "root", "app", "__next", "__nuxt", "___gatsby", "react-root", "react-app", "reactroot", "app-root", "approot", "app-container",
		"app-mount", "main-app", "svelte", "svelte-app", "ember-app", "ember-basic-dropdown-wormhole", "q-app", "vue-app", "mount", "app-wrapper", "spa-root", "page-root", "blazor-app", "elm", "appmountpoint":
		return true
	}
	return false
}

// asksForScripts reports whether the text of a noscript element says that the page is nothing
// without JavaScript.
func asksForScripts(text []byte) bool {
	t := strings.ToLower(string(text))
	if !strings.Contains(t, "javascript") && !strings.Contains(t, "java script") {
		return false
	}
	for _, word := range []string{"enable", "need", "requir", "activ", "turn on", "aktiv", "habilit", "without", "support", "включ", "启用", "有効"} {
		if strings.Contains(t, word) {
			return true
		}
	}
	return false
}

func letters(text []byte) (n int) {
	for _, r := range string(text) {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			n++
		}
	}
	return n
}
