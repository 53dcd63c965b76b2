package crawldb

// SeedKey is the name in Meta that marks the record of a URL that was injected. Its value is
// empty. Records of stores written before this mark existed, and those injected as Nutch does, lack
// it.
const SeedKey = "inject.seed"

// IsSeed reports whether the record was injected.
func (d *Datum) IsSeed() bool {
	_, ok := d.Meta.Get(SeedKey)
	return ok
}
