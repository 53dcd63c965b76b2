package signature_test

import (
	"bytes"
	"fmt"

	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/signature"
)

// A page that counts its visitors is a new page at every visit by its bytes, and
// the same one by its words.
func Example() {
	visit := func(n int) (*page.Content, *page.Parsed) {
		text := fmt.Sprintf("Welcome to our pages. Our pages are about fish. Visitor %d.", n)
		return &page.Content{Body: []byte("<p>" + text)}, &page.Parsed{Text: text}
	}
	for _, s := range []signature.Signature{signature.MD5{}, signature.TextProfile{}} {
		first := s.Sum(visit(1006))
		second := s.Sum(visit(1007))
		fmt.Println(s.Name(), "unchanged:", bytes.Equal(first, second))
	}
	// Output:
	// MD5 unchanged: false
	// TextProfile(2,0.01) unchanged: true
}
