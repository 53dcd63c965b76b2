// Package signature decides whether content has changed: it boils a page down
// to a few bytes that stay the same as long as the page does ([Signature]).
// Stock are [MD5], over the bytes; [TextMD5], over the text; and [TextProfile],
// over the more frequent words of the text.
//
// [MD5], which is Nutch's default, tells most: each byte counts, and a page with
// a date or a token in it is another one at every visit. [TextProfile] tells
// least, and is for a crawler that wants to know of changes a reader would see.
// [TextMD5] stands between.
//
// With NutchCompat all three give the digests that Nutch gives, for the same text:
// see testdata/nutch.jsonl. What is text is up to the parser. Letters are those of
// the Unicode version of the Go release, as Nutch's are those of its Java.
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
