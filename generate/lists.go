package generate

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"unicode/utf16"

	"github.com/cespare/xxhash/v2"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/urlfilter"
)

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

// turns returns for each record the list it is on and how its host is visited.
func (j *job) turns(ctx context.Context, list []crawldb.Datum) ([]segment.Placement, error) {
	turns := make([]segment.Placement, len(list))
	for i, d := range list {
		h, err := j.host(ctx, d.URL)
		if err != nil {
			return nil, err
		}
		turns[i].Delay = h.delay
	}
	if j.o.Lists.Count <= 1 {
		return turns, nil
	}
	// URLs that share a queue must share a list, even if a normalizer tells
	// them apart: the first of a queue by key decides.
	by := hostdb.ByHost
	if j.o.Lists.By == hostdb.ByDomain {
		by = hostdb.ByDomain
	}
	first := map[string]string{}
	for _, d := range list {
		queue := by.Key(d.URL)
		if u, ok := first[queue]; !ok || crawldb.Compare(d.URL, u) < 0 {
			first[queue] = d.URL
		}
	}
	keys := make(map[string]string, len(first))
	for queue, url := range first {
		spelled, ok := j.partitionSpelling(url)
		key := spelled
		if ok {
			// Nutch hashes the host as it is spelled.
			switch key = strings.TrimSuffix(crawldb.Host(spelled), "."); j.o.Lists.By {
			case hostdb.ByDomain:
				key = hostdb.Domain(key)
			case hostdb.ByIP:
				key = by.Key(spelled)
			}
		}
		keys[queue] = key
	}
	hashes := map[string]int32{}
	if j.o.Lists.By == hostdb.ByIP {
		var err error
		if hashes, err = j.addresses(ctx, keys); err != nil {
			return nil, err
		}
	} else {
		for _, key := range keys {
			hashes[key] = javaHash(key)
		}
	}
	for i, d := range list {
		t := &turns[i]
		t.Lists, t.By = j.o.Lists.Count, j.o.Lists.By
		t.List = partition(hashes[keys[by.Key(d.URL)]], j.o.Lists.Seed, j.o.Lists.Count)
	}
	return turns, nil
}

// partitionSpelling is the URL by which a list is chosen. Nutch normalizes here
// whatever its options.
func (j *job) partitionSpelling(url string) (string, bool) {
	if j.o.NutchCompat && j.o.NoNormalize && j.o.Rules != nil {
		k := *j
		k.o.NoNormalize = false
		return k.spelling(urlfilter.Partition, url)
	}
	if u, ok := j.spelling(urlfilter.Partition, url); ok {
		return u, true
	}
	return url, false
}

// partition is Nutch's URLPartitioner: it returns the number of the list, of n,
// for a hash.
func partition(hash, seed int32, n int) int {
	return int((hash^seed)&math.MaxInt32) % n
}

// javaHash is java.lang.String.hashCode.
func javaHash(s string) int32 {
	h := int32(0)
	for _, u := range utf16.Encode([]rune(s)) {
		h = 31*h + int32(u)
	}
	return h
}

// addresses finds the hash of the address of every host; zero if it has none.
func (j *job) addresses(ctx context.Context, keys map[string]string) (map[string]int32, error) {
	lookup := j.o.Lists.Lookup
	if lookup == nil {
		lookup = hostdb.Lookup
	}
	hosts := make([]string, 0, len(keys))
	for _, host := range keys {
		hosts = append(hosts, host)
	}
	slices.Sort(hosts)
	hosts = slices.Compact(hosts)
	found := make([]int32, len(hosts))
	var wg sync.WaitGroup
	work := make(chan int)
	const workers = 25 // Nutch: hostdb.num.resolvers.threads
	for range min(workers, len(hosts)) {
		wg.Go(func() {
			for i := range work {
				found[i] = addressHash(ctx, hosts[i], lookup)
			}
		})
	}
	for i := range hosts {
		work <- i
	}
	close(work)
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	hashes := make(map[string]int32, len(hosts))
	for i, host := range hosts {
		hashes[host] = found[i]
	}
	return hashes, nil
}

// addressHash uses the least address of a host, so that the order of the answer
// does not matter.
func addressHash(ctx context.Context, host string, lookup func(context.Context, string) ([]netip.Addr, error)) int32 {
	if a, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return javaHash(a.Unmap().String())
	}
	if host == "" {
		return 0
	}
	addrs, err := asked(ctx, host, lookup)
	if err != nil || len(addrs) == 0 {
		return 0
	}
	for i := range addrs {
		addrs[i] = addrs[i].Unmap()
	}
	return javaHash(slices.MinFunc(addrs, netip.Addr.Compare).String())
}

// asked calls the caller's function, and turns its panic into an error: nobody
// else could recover it.
func asked(ctx context.Context, host string, lookup func(context.Context, string) ([]netip.Addr, error)) (addrs []netip.Addr, err error) {
	defer func() {
		if p := recover(); p != nil {
			addrs, err = nil, fmt.Errorf("Lookup panicked: %v", p)
		}
	}()
	return lookup(ctx, host)
}

// spread orders a fetch list so that a fetcher reading it from the front finds many
// hosts at once: the best URL of every host, then the second best of every host, and
// so on, in each turn in the order of a hash. What is best is decided by turns of the
// parts of a domain, as in the selection.
func (j *job) spread(ctx context.Context, list []crawldb.Datum) error {
	// Sort small items: the records stay where they are.
	best := make([]uint64, len(list)) // the rank of a record and its index
	for i := range list {
		best[i] = uint64(rankOf(list[i].Priority))<<32 | uint64(i)
	}
	slices.Sort(best)
	byKey := func(a, b uint64) int { return crawldb.Compare(list[uint32(a)].URL, list[uint32(b)].URL) }
	for from, i := 0, 1; i <= len(best); i++ {
		if i < len(best) && best[i]>>32 == best[from]>>32 {
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
		inOrder := make([]*hostState, len(list))
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
		if order != nil {
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
