package rank

// SetCollect sets the number of pages from which a graph is searched for pages that are gone.
func (o *Options) SetCollect(pages int) { o.collect = pages }
