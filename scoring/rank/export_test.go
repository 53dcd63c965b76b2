package rank

// SetPruneFrom sets the number of pages from which a graph is searched for gone pages.
func (o *Options) SetPruneFrom(pages int) { o.pruneFrom = pages }
