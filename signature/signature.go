// Package signature decides whether content has changed: it reduces a page to a
// few bytes that stay the same as long as the page does ([Signature]). The
// stock signatures are [MD5], over the bytes; [TextMD5], over the text; and
// [TextProfile], over the more frequent words of the text. It compares nothing and stores nothing:
// package update does. Start with the choice between the three.
//
// [MD5], Nutch's default, is the most sensitive: each byte counts, and a page
// with a date or a token in it changes at every visit. [TextProfile] is the
// least sensitive, for a crawler that wants to know of changes a reader would
// see. [TextMD5] is in between.
//
// With NutchCompat all three give the same digests as Nutch for the same text: see
// testdata/nutch.jsonl. What counts as text is up to the parser. Letters are those
// of Go's Unicode version, as Nutch's are those of its Java.
package signature

import "github.com/recrawl/recrawl/page"

// A Signature computes the fingerprint of content.
//
// Its methods are pure functions, called from many goroutines at once. They
// neither change nor retain their arguments.
type Signature interface {
	// Name identifies the algorithm and its parameters. Sums of different names
	// are not comparable.
	Name() string

	// Sum returns the fingerprint, at most 64 bytes. parsed is nil if the
	// content was not parsed.
	Sum(content *page.Content, parsed *page.Parsed) []byte
}
