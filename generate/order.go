package generate

import (
	"cmp"
	"context"
	"slices"

	"github.com/cespare/xxhash/v2"
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/segment"
)

// spread orders a fetch list so that a fetcher reading it from the front finds many
// hosts at once: the best URL of every host, then the second best of every host, and
// so on, in each turn in the order of a hash. What is best is decided by turns of the
// parts of a domain, as in the selection. Pages that are not due yet come last, in the order of
// their times.
func (j *job) spread(ctx context.Context, list []crawldb.Datum) error {
	// Sort small items: the records stay where they are.
	best := make([]uint64, len(list)) // the rank of a record and its index
	for i := range list {
		best[i] = uint64(rankOf(list[i].Priority))<<32 | uint64(i)
	}
	slices.Sort(best)
	due := len(best) // how many are due now
	if j.gathering() {
		due = j.soonLast(best, list)
	}
	byKey := func(a, b uint64) int { return crawldb.Compare(list[uint32(a)].URL, list[uint32(b)].URL) }
	for from, i := 0, 1; i <= due; i++ {
		if i < due && best[i]>>32 == best[from]>>32 {
			continue
		}
		if same := best[from:i]; !slices.IsSortedFunc(same, byKey) {
			slices.SortFunc(same, byKey)
		}
		from = i
	}
	hosts := make([]*hostState, len(list))
	for i := range list {
		hosts[i] = j.hostOf(list[i].URL)
		j.countedOf(hosts[i], list[i].URL, list[i].URL).turn = 0
	}
	var order []int
	if !j.o.ExactTopN && j.crawl != nil { // Free has no crawl db
		var err error
		inOrder := make([]*hostState, due)
		for i := range inOrder {
			inOrder[i] = hosts[uint32(best[i])]
		}
		if order, err = j.turnsOf(ctx, inOrder, func(i int) string { return list[uint32(best[i])].URL }); err != nil {
			return err
		}
	}
	type place struct {
		hash uint64
		turn uint32
		at   uint32
	}
	all := make([]place, len(list))
	for i := range all {
		at := uint32(best[i])
		if i < len(order) {
			at = uint32(best[order[i]])
		}
		c := hosts[at].spelled
		all[i] = place{xxhash.Sum64String(list[at].URL), c.turn, at}
		c.turn++
	}
	slices.SortFunc(all, func(a, b place) int {
		if c := cmp.Or(cmp.Compare(a.turn, b.turn), cmp.Compare(a.hash, b.hash)); c != 0 {
			return c
		}
		return cmp.Compare(list[a.at].URL, list[b.at].URL)
	})
	// Move each record to its place, one cycle at a time.
	for i := range all {
		first := list[i]
		for to := i; ; {
			from := int(all[to].at)
			all[to].at = uint32(to)
			if from == i {
				list[to] = first
				break
			}
			list[to], to = list[from], from
		}
	}
	return nil
}

// hashed orders a fetch list as Nutch does.
func hashed(list []crawldb.Datum) {
	slices.SortFunc(list, func(a, b crawldb.Datum) int {
		if c := cmp.Compare(hashOrder(a.URL), hashOrder(b.URL)); c != 0 {
			return c
		}
		return cmp.Compare(a.URL, b.URL)
	})
}

// hashOrder is the number by which Nutch orders the URLs of a fetch list,
// ascending: a hash of the URL as Hadoop writes it, prefixed with its length,
// over the bytes from last to first. (Nutch: Generator's HashComparator.)
func hashOrder(url string) int32 {
	return hashBytes(hashBytes(1, url), string(vint(len(url))))
}

// hashBytes adds the bytes to a hash, the last one first.
func hashBytes(h int32, s string) int32 {
	for i := len(s) - 1; i >= 0; i-- {
		h = 31*h + int32(int8(s[i]))
	}
	return h
}

// vint is a length as Hadoop's WritableUtils writes it.
func vint(n int) []byte {
	if n <= 127 {
		return []byte{byte(n)}
	}
	var b []byte
	for v := n; v > 0; v >>= 8 {
		b = append(b, byte(v))
	}
	b = append(b, byte(-112-len(b)))
	slices.Reverse(b)
	return b
}

// write writes the fetch list of a segment.
func (j *job) write(ctx context.Context, m *making) error {
	if j.o.NutchCompat {
		hashed(m.list)
	} else if err := j.spread(ctx, m.list); err != nil {
		return err
	}
	turns, err := j.turns(ctx, m.list)
	if err != nil {
		return err
	}
	w, err := segment.NewWriter[crawldb.Datum](ctx, j.segments, m.name, 0)
	if err != nil {
		return err
	}
	defer w.Close()
	for i := range m.list {
		turns[i].Set(&m.list[i])
	}
	for block := range slices.Chunk(m.list, listBlock) {
		if err := w.Append(ctx, block); err != nil {
			return err
		}
	}
	return w.Commit(ctx)
}
