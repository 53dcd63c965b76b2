package extract

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// chromeWord reports whether a word in an id or class names what surrounds the main content. weak says that it
// also names parts of the content now and then.
func chromeWord(w string) (chrome, weak bool) {
	switch w {
	case "nav", "navbar", "navigation", "navi", "menu", "menus", "submenu", "megamenu", "topnav", "subnav", "sidenav", "sidebar", "sidebars", "footer", "breadcrumb", "breadcrumbs", "crumbs",
		"share", "sharing", "shares", "sharedaddy", "social", "socials", "addtoany", "addthis", "related", "relatedposts", "recommended", "recommendations", "recirc", "trending", "mostread",
		"cookie", "cookies", "consent", "gdpr", "onetrust", "ad", "ads", "adsense", "adslot", "advert", "adverts", "advertisement", "advertising", "sponsored", "sponsors",
		"newsletter", "subscribe", "subscription", "signup", "login", "signin", "popup", "modal", "lightbox", "tooltip", "pagination", "pager", "paging", "masthead", "copyright",
		"outbrain", "taboola", "taglist", "tagcloud", "offcanvas", "hamburger", "searchform", "searchbox", "jumplinks", "paywall", "printfriendly",
		"postmeta", "nextprev", "prevnext", "respond", "disqus", "bio", "biography", "authorbio", "authorbox", "aboutauthor", "disclosure", "testimonial", "testimonials", "dateline", "navbox", "noprint", "editsection":
		return true, false
	case "widget", "widgets", "dropdown", "foot", "popular", "recommend", "sponsor", "promo", "promos", "promotion", "overlay", "toolbar", "skip", "tags", "rail", "aside", "banner", "search", "toc", "print",
		"rating", "ratings", "byline", "teaser", "teasers", "reply", "metadata", "infobox", "disclaimer":
		return true, true
	}
	return false, false
}

// contentWord are the words in ids and classes of the main content.
func contentWord(w string) bool {
	switch w {
	case "article", "articlebody", "articletext", "articlecontent", "story", "storybody", "entry", "post", "postbody", "postcontent", "postentry", "main", "maincontent", "content", "body", "blogpost", "hentry", "bodytext", "prose", "markdown", "documentation", "docs", "wiki", "readme", "description", "text", "thread", "topic", "message":
		return true
	}
	return false
}

// commentWord are the words in ids and classes of what readers wrote below an article.
func commentWord(w string) bool {
	switch w {
	case "comment", "comments", "commentlist", "commentarea", "disqus", "respond", "replies", "discussion":
		return true
	}
	return false
}

// hintsOf reads tag, role, id and class of an element.
func hintsOf(n *html.Node) (h hint) {
	switch n.DataAtom {
	case atom.Body:
		return 0
	case atom.Nav, atom.Footer, atom.Aside, atom.Menu, atom.Dialog:
		h |= hintChrome
	case atom.Article, atom.Main:
		h |= hintContent
	}
	for i := range n.Attr {
		switch a := &n.Attr[i]; a.Key {
		case "hidden":
			h |= hintHidden
		case "aria-hidden":
			if a.Val == "true" {
				h |= hintHidden
			}
		case "style":
			if hiddenStyle(a.Val) {
				h |= hintHidden
			}
		case "role":
			switch a.Val {
			case "navigation", "banner", "contentinfo", "complementary", "search", "dialog", "alertdialog", "menu", "menubar", "toolbar", "tablist":
				h |= hintChrome
			case "main", "article":
				h |= hintContent
			}
		case "itemprop":
			if a.Val == "articleBody" || a.Val == "description" || a.Val == "text" {
				h |= hintContent
			}
		case "id", "class":
			h |= namesHint(a.Val)
		}
	}
	return h
}

func hiddenStyle(s string) bool {
	for _, p := range [...]string{"display:none", "display: none", "visibility:hidden", "visibility: hidden"} {
		if strings.Contains(s, p) {
			return true
		}
	}
	return false
}

// namesHint looks at the words of a list of names, as in "post-content siteFooter".
func namesHint(s string) (h hint) {
	var word [24]byte
	n := 0
	negated := false
	end := func() {
		if n >= 2 && n < len(word) {
			w := string(word[:n])
			switch chrome, weak := chromeWord(w); {
			case negated:
			case weak:
				h |= hintWeak
			case chrome:
				h |= hintChrome
			case contentWord(w):
				h |= hintContent
			}
			if commentWord(w) && !negated {
				h |= hintComment
			}
			switch w {
			case "has", "no", "with", "without", "is", "hide", "off":
				negated = true
			default:
				negated = false
			}
		}
		n = 0
	}
	lower := false
	for i := 0; i < len(s) && i < 512; i++ {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z':
			lower = true
		case 'A' <= c && c <= 'Z':
			if lower {
				end()
			}
			lower = false
			c += 'a' - 'A'
		default:
			lower = false
			end()
			if isSpace(c) {
				negated = false
			}
			continue
		}
		if n < len(word) {
			word[n] = c
			n++
		}
	}
	end()
	return h
}
