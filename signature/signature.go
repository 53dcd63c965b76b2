// Package signature decides whether content has changed: it boils a page down
// to a few bytes that stay the same as long as the page does ([Signature]).
// Stock are [MD5], over the bytes; [TextMD5], over the text; and [TextProfile],
// over the more frequent words of the text.
package signature

import "github.com/recrawl/recrawl/page"

// A Signature computes the fingerprint of content.
//
// Its methods are functions of their arguments, called from many goroutines at
// once. They change neither argument and keep neither.
type Signature interface {
	// Name identifies the algorithm and its parameters. Sums of different names
	// are not comparable.
	Name() string

	// Sum returns the fingerprint, at most 64 bytes. parsed is nil if the
	// content was not parsed.
	Sum(content *page.Content, parsed *page.Parsed) []byte
}
