package simulate

import (
	"bufio"
	"fmt"
	"io"
	"slices"
)

// SignatureStats are the changes that a signature detects on the pages of a history.
type SignatureStats struct {
	Signature string
	// Changes counts the changes that it detected after pages had appeared.
	Changes int
	// ChangedPages counts the pages on which it detected any.
	ChangedPages int
	// AlwaysDiffers counts the pages on which it differs at every visit, because of dates or tokens: a
	// crawl that compares it there cannot know when they change.
	AlwaysDiffers int
}

// StatsOfSignatures returns the statistics of each signature in a history, ordered by name.
func StatsOfSignatures(pages []Page) []SignatureStats {
	var all []SignatureStats
	for _, name := range signatures(pages) {
		s := SignatureStats{Signature: name}
		for i := range pages {
			n := 0
			for _, e := range pages[i].Signatures[name] {
				if e.Kind == Modified {
					n++
				}
			}
			if s.Changes += n; n > 0 {
				s.ChangedPages++
			}
			if slices.Contains(pages[i].AlwaysDiffer, name) {
				s.AlwaysDiffers++
			}
		}
		all = append(all, s)
	}
	return all
}

// WriteSignatureStats prints a line for each signature.
func WriteSignatureStats(w io.Writer, pages int, sights []SignatureStats) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "%-14s %12s %14s %20s\n", "signature", "changes", "pages that", "pages of which it is")
	fmt.Fprintf(b, "%-14s %12s %14s %20s\n", "", "a page", "changed", "another each time")
	for _, s := range sights {
		fmt.Fprintf(b, "%-14s %12.2f %13.1f%% %19.1f%%\n", s.Signature, float64(s.Changes)/float64(pages), 100*float64(s.ChangedPages)/float64(pages), 100*float64(s.AlwaysDiffers)/float64(pages))
	}
	return b.Flush()
}
