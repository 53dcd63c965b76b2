package generate

import (
	"context"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"unicode/utf16"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/urlfilter"
)

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

// asked calls the caller's function, and turns its panic into an error: it runs
// in a goroutine of this package, where the caller cannot recover it.
func asked(ctx context.Context, host string, lookup func(context.Context, string) ([]netip.Addr, error)) (addrs []netip.Addr, err error) {
	defer func() {
		if p := recover(); p != nil {
			addrs, err = nil, fmt.Errorf("Lookup panicked: %v", p)
		}
	}()
	return lookup(ctx, host)
}
