package rank

// SetCollect has pages that are gone looked for in graphs of so many pages.
func (o *Options) SetCollect(pages int) { o.collect = pages }
