package generate

// WithChunk returns the options with so many URLs in one step.
func (o Options) WithChunk(n int) Options {
	o.chunk = n
	return o
}
