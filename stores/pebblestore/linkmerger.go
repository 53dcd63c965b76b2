package pebblestore

import (
	"github.com/cockroachdb/pebble/v2"

	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
)

// merger is the merger of all tables that have sums. Its name is in every table that
// was ever written, so it is that of the engine's own merger, which was never used.
func merger() *pebble.Merger {
	var sums codec.LinkSums
	var tallies codec.TallySums
	return &pebble.Merger{
		Name: pebble.DefaultMerger.Name,
		Merge: func(key, value []byte) (pebble.ValueMerger, error) {
			var m pebble.ValueMerger
			if codec.IsLinkKey(key) {
				l, page, _ := codec.SplitLinkKey(key)
				m = sums.Get(page, l.From > 0)
			} else {
				m = tallies.Get()
			}
			return m, m.MergeNewer(value)
		},
	}
}
