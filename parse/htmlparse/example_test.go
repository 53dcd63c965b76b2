package htmlparse_test

import (
	"context"
	"fmt"

	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/parse/htmlparse"
)

func ExampleParser() {
	p := &htmlparse.Parser{Agent: "examplebot"}
	got, err := p.Parse(context.Background(), &page.Content{
		URL:  "https://www.example.org/fish/",
		Type: "text/html; charset=utf-8",
		Body: []byte(`<!DOCTYPE html>
<title>Of   fish</title>
<meta name="examplebot" content="noindex">
<h1>Fish &amp; chips</h1>
<p>See <a href="cod.html#top">the <b>cod</b></a>,
<a href="/hake" rel="ugc">hake</a> and <a href="#end">the end</a>.</p>`),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%q %q\n", got.Title, got.Text)
	for _, l := range got.Outlinks {
		fmt.Printf("%s %q nofollow=%t\n", l.URL, l.Anchor, l.NoFollow)
	}
	fmt.Println("noindex:", got.NoIndex)
	// Output:
	// "Of fish" "Fish & chips\nSee the cod, hake and the end."
	// https://www.example.org/fish/cod.html "the cod" nofollow=false
	// https://www.example.org/hake "hake" nofollow=true
	// noindex: true
}

func ExampleMux() {
	m := htmlparse.Mux(nil)
	got, err := m.Parse(context.Background(), &page.Content{
		URL:  "https://www.example.org/notes",
		Type: "text/plain; charset=windows-1252",
		Body: []byte("caf\xe9 <b>"),
	})
	fmt.Println(got.Text, got.Charset, err)
	// Output: café <b> windows-1252 <nil>
}
