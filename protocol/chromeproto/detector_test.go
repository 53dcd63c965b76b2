package chromeproto_test

import (
	"strings"
	"testing"

	"github.com/recrawl/recrawl/protocol/chromeproto"
)

// Shapes of pages as frameworks and servers make them, with what is said in them shortened.
func TestNeedsBrowser(t *testing.T) {
	prose := strings.Repeat("<p>The harbour was quiet in the morning, and the boats lay at their moorings.</p>", 12)
	analytics := `<script async src="https://www.googletagmanager.com/gtag/js?id=G-1"></script><script>window.dataLayer=window.dataLayer||[];function gtag(){dataLayer.push(arguments)}gtag('js',new Date());gtag('config','G-1');</script>`
	for _, c := range []struct {
		name string
		page string
		want bool
	}{
		{"Create React App", `<!doctype html><html lang="en"><head><meta charset="utf-8"/><link rel="icon" href="/favicon.ico"/><title>React App</title><script defer="defer" src="/static/js/main.8a7b.js"></script><link href="/static/css/main.css" rel="stylesheet"></head><body><noscript>You need to enable JavaScript to run this app.</noscript><div id="root"></div></body></html>`, true},
		{"Vite, React", `<!doctype html><html><head><title>Vite</title><script type="module" crossorigin src="/assets/index-BjX.js"></script></head><body><div id="root"></div></body></html>`, true},
		{"Vue CLI", `<!DOCTYPE html><html><head><title>shop</title></head><body><noscript><strong>We're sorry but shop doesn't work properly without JavaScript enabled. Please enable it to continue.</strong></noscript><div id=app></div><script src=/js/chunk-vendors.js></script><script src=/js/app.js></script></body></html>`, true},
		{"Angular", `<!doctype html><html><head><base href="/"><title>Admin</title></head><body><app-root><div class="spinner">Loading...</div></app-root><script src="runtime.js" type="module"></script><script src="main.js" type="module"></script></body></html>`, true},
		{"AngularJS with templates in attributes", `<html ng-app="shop"><head><script src="angular.js"></script><script src="app.js"></script></head><body><div ng-view></div></body></html>`, true},
		{"Nuxt, single-page", `<!doctype html><html><head><title>Nuxt</title></head><body><div id="__nuxt"><style>.nuxt-progress{}</style><div id="nuxt-loading">Loading...</div></div><script>window.__NUXT__={config:{}}</script><script src="/_nuxt/app.js"></script></body></html>`, true},
		{"Next.js, client only", `<!DOCTYPE html><html><head><script src="/_next/static/chunks/main.js" defer=""></script></head><body><div id="__next"><div class="loader"></div></div><script id="__NEXT_DATA__" type="application/json">{"props":{}}</script></body></html>`, true},
		{"shell with a menu and a footer", `<html><head><script src="/bundle.js"></script></head><body><header><a href="/">Home</a> <a href="/about">About us</a></header><div id="app"></div><footer>© 2026 Example Ltd. All rights reserved. <a href="/imprint">Imprint</a></footer></body></html>`, true},
		{"no root, written by a script", `<html><head><title>x</title></head><body><script src="/render.js"></script></body></html>`, true},
		{"inline script that writes", `<html><body><script>` + strings.Repeat("document.write('<p>text</p>');", 20) + `</script></body></html>`, true},
		{"quotes.toscrape.com/js", `<html><head><title>Quotes</title></head><body><div class="container"><h1>Quotes to Scrape</h1><script src="/static/jquery.js"></script><script>var data = [` + strings.Repeat(`{"text": "The world as we have created it"},`, 20) + `];for (var i in data) { document.write(data[i].text) }</script></div></body></html>`, true},
		{"cookie wall of scripts", `<html><head><script src="/challenge.js"></script></head><body><noscript>Please activate JavaScript</noscript><p>Checking your browser before you proceed.</p></body></html>`, true},
		{"root that is never closed", `<html><body><script src=a.js></script><div id=root>`, true},
		{"Web component app", `<!doctype html><html><body><script type="module" src="/app.js"></script><my-app></my-app></body></html>`, true},

		{"Lit, from an import map", `<!doctype html><html><body><my-element></my-element><script type="importmap">{"imports": {"lit": "/lit.js"}}</script><script type="module">import {html, render} from "lit"; render(html` + "`<p>text</p>`" + `, document.body)</script></body></html>`, true},
		{"small inline script for an empty root", `<!doctype html><div id=root></div><script>fetch("/api").then(r => r.text()).then(t => root.innerHTML = t)</script>`, true},

		{"static prose", `<html><body><h1>Harbour</h1>` + prose + `</body></html>`, false},
		{"prose with analytics", `<html><head>` + analytics + `</head><body>` + prose + `</body></html>`, false},
		{"Next.js, rendered by the server", `<html><head><script src="/_next/main.js"></script></head><body><div id="__next"><main>` + prose + `</main></div></body></html>`, false},
		{"Nuxt, rendered by the server, short", `<html><head><script src="/_nuxt/a.js"></script></head><body><div id="__nuxt"><div id="__layout"><h1>Opening hours of the library in the old town</h1><p>Monday to Friday, ten to six.</p></div></div></body></html>`, false},
		{"WordPress", `<html><head><script src="/wp-includes/js/jquery.js"></script></head><body class="home"><div id="page"><noscript><img src="https://pixel.example/1.gif"></noscript>` + prose + `</div></body></html>`, false},
		{"short page with analytics", `<html><head>` + analytics + `</head><body><h1>It works!</h1><p>This is the default web page for this server. The web server software is running.</p></body></html>`, false},
		{"tag manager in noscript", `<html><head>` + analytics + `</head><body><noscript><iframe src="https://www.googletagmanager.com/ns.html?id=G"></iframe></noscript><h1>About the harbour master and his boats</h1><p>He has three of them, all painted blue.</p></body></html>`, false},
		{"no scripts at all", `<html><body><div id="root"></div></body></html>`, false},
		{"not found", `<html><head><title>404</title></head><body><h1>Not Found</h1><p>The requested URL was not found on this server.</p><hr><address>Apache</address></body></html>`, false},
		{"list of links with jQuery", `<html><head><script src="jquery.js"></script></head><body><ul><li><a href="a">A</a><li><a href="b">B</a><li><a href="c">C</a></ul></body></html>`, false},
		{"one picture with a counter", `<html><body><img src="harbour.jpg" alt=""><script src="counter.js"></script></body></html>`, false},
		{"login", `<html><head><script src="check.js"></script></head><body><form><input name="user"><input type="password"><button>Go</button></form></body></html>`, false},
		{"meta refresh", `<html><head><meta http-equiv="Refresh" content="0; url=/en/"><script src="/track.js"></script></head><body></body></html>`, false},
		{"frames", `<html><head><script src="x.js"></script></head><frameset cols="20%,80%"><frame src="a"><frame src="b"></frameset></html>`, false},
		{"structured data only", `<html><head><script type="application/ld+json">` + strings.Repeat(`{"@type":"Thing"}`, 50) + `</script></head><body><p>Short.</p></body></html>`, false},
		{"hello", `<p>Hello`, false},
		{"empty", ``, false},
		{"prose that mentions JavaScript in noscript", `<html><body><noscript>Some features require JavaScript.</noscript><script src="a.js"></script>` + prose + `</body></html>`, false},
		{"Chinese prose", `<html><head><script src="a.js"></script></head><body><div id="app">` + strings.Repeat("港口在清晨十分安静。", 80) + `</div></body></html>`, false},
	} {
		if got := chromeproto.NeedsBrowser([]byte(c.page)); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func BenchmarkNeedsBrowser(b *testing.B) {
	page := []byte(`<html><head><script src="a.js"></script></head><body>` + strings.Repeat("<p>The <b>harbour</b> was <a href='/quiet'>quiet</a> in the morning.</p>", 150) + `</body></html>`)
	b.SetBytes(int64(len(page)))
	for b.Loop() {
		chromeproto.NeedsBrowser(page)
	}
}

func FuzzNeedsBrowser(f *testing.F) {
	f.Add([]byte(`<div id=root><script src=a></script></div>`))
	f.Fuzz(func(t *testing.T, body []byte) { chromeproto.NeedsBrowser(body) })
}
