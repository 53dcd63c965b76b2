package generate

import (
	"iter"

	"github.com/recrawl/recrawl/crawldb"
)

// WithChunk returns the options with n URLs in one step.
func (o Options) WithChunk(n int) Options {
	o.chunk = n
	return o
}

func HashOrder(url string) int32 { return hashOrder(url) }

// HashBytes is HashOrder without the length; JavaHash and Partition are what
// chooses a list.
func HashBytes(url string) int32 { return hashBytes(1, url) }

func JavaHash(s string) int32 { return javaHash(s) }

func Partition(hash, seed int32, n int) int { return partition(hash, seed, n) }

// Ordered is what the candidates of an index pass through.
func Ordered(hints iter.Seq2[crawldb.Candidate, error], most int) iter.Seq2[crawldb.Candidate, error] {
	return ordered(hints, most)
}
