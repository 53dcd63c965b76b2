package simulate

import (
	"bufio"
	"fmt"
	"io"
	"slices"
)

// Sight is what a signature sees of the pages of a history.
type Sight struct {
	Signature string
	// Changes counts the changes it saw after pages had appeared, Changed the pages on which it
	// saw any. Restless counts the pages on which it differs at every visit: there it sees dates or
	// tokens, and a crawl that compares it cannot tell when they change.
	Changes, Changed, Restless int
}

// Sights returns what each signature in a history sees, ordered by name.
func Sights(pages []Page) []Sight {
	var all []Sight
	for _, name := range signatures(pages) {
		s := Sight{Signature: name}
		for i := range pages {
			n := 0
			for _, e := range pages[i].Signatures[name] {
				if e.Kind == Modified {
					n++
				}
			}
			if s.Changes += n; n > 0 {
				s.Changed++
			}
			if slices.Contains(pages[i].Restless, name) {
				s.Restless++
			}
		}
		all = append(all, s)
	}
	return all
}

// WriteSights prints a line for each signature.
func WriteSights(w io.Writer, pages int, sights []Sight) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "%-14s %12s %14s %20s\n", "signature", "changes", "pages that", "pages of which it is")
	fmt.Fprintf(b, "%-14s %12s %14s %20s\n", "", "a page", "changed", "another each time")
	for _, s := range sights {
		fmt.Fprintf(b, "%-14s %12.2f %13.1f%% %19.1f%%\n", s.Signature, float64(s.Changes)/float64(pages), 100*float64(s.Changed)/float64(pages), 100*float64(s.Restless)/float64(pages))
	}
	return b.Flush()
}
