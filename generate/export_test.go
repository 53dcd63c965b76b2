package generate

// WithChunk returns the options with so many URLs in one step.
func (o Options) WithChunk(n int) Options {
	o.chunk = n
	return o
}

// HashBytes is HashOrder without the length; JavaHash and Partition are what
// chooses a list.
func HashBytes(url string) int32 { return hashBytes(1, url) }

func JavaHash(s string) int32 { return javaHash(s) }

func Partition(hash, seed int32, n int) int { return partition(hash, seed, n) }
