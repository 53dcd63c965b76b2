package update

// WithChunk returns the options with n URLs in one step.
func (o Options) WithChunk(n int) Options {
	o.chunk = n
	o.Sweep.chunk = n
	return o
}

// WithChunk returns the options with n records in one step.
func (o SweepOptions) WithChunk(n int) SweepOptions {
	o.chunk = n
	return o
}
