// Package frontier keeps an account of what each site has brought to a crawl:
// how many records links have added to it, how many of its pages were visited,
// and how much of their content was new, for each part of the site. update and
// generate use it to limit endless sites; it limits nothing itself. Start with [Account].
//
// The accounts are progress marks of the crawl db, one for each registered domain.
// A mark is small, a hundred bytes for most domains and some kilobytes at most.
package frontier

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/internal/prefixed"
)

// Account is the account of a domain.
type Account struct {
	// Added counts the records that links have added, Visits the visits that
	// were answered.
	Added, Visits int64
	// Segment is the last segment whose visits are counted.
	Segment string
	// Owed is the cash that links gave to pages that were left out. The next visit of
	// the domain gets it.
	Undistributed float64
	// Parts are the parts of the site with pages that were read, by ascending
	// name.
	Parts []Part
	// sums are the smallest of the different fingerprints of the pages, in ascending
	// order: as many as fit, so in the end those of a random sample of all contents.
	sums []uint32
}

// Part is a part of a site, as [PartOf] names it.
type Part struct {
	Name string
	// Born is the number of parts that existed before it.
	Earlier int64
	// Judged counts the pages that were read for the first time and are in the
	// sample, Fresh those of them whose content was new to the domain.
	Sampled, SampledNew int64
}

// Limits of an account. Half of the parts are for known hosts.
const (
	maxParts = 32
	maxSums  = 256
	maxName  = 64 // bytes
)

// MarkName is the name of the progress mark of a domain. It has the labels in reverse, as
// keys have them, so that marks of neighbours are adjacent when accessed in key
// order.
func MarkName(domain string) string {
	b := append(make([]byte, 0, 64), "site/"...)
	for rest := domain; ; {
		i := strings.LastIndexByte(rest, '.')
		b = append(b, rest[i+1:]...)
		if i < 0 {
			return string(b)
		}
		b = append(b, '.')
		rest = rest[:i]
	}
}

// Load returns the account of a domain; an empty one if there is none. A damaged
// account is started over: a crawl can do without it, but must not be stopped by it
// forever.
func Load(ctx context.Context, crawl crawldb.Store, domain string) (a Account, damaged bool, err error) {
	mark, err := crawl.Mark(ctx, MarkName(domain))
	if err != nil {
		return Account{}, false, err
	}
	if a, err = Decode(mark); err != nil {
		return Account{}, true, nil
	}
	return a, false, nil
}

// Part returns a part, nil if it is unknown.
func (a *Account) Part(name string) *Part {
	if i, ok := a.find(name); ok {
		return &a.Parts[i]
	}
	return nil
}

func (a *Account) find(name string) (int, bool) {
	return slices.BinarySearchFunc(a.Parts, name, func(p Part, name string) int { return cmp.Compare(p.Name, name) })
}

// Hosts returns the hosts with pages that were read, the oldest first.
func (a *Account) Hosts() []string {
	parts := slices.SortedFunc(slices.Values(a.Parts), func(p, q Part) int { return cmp.Compare(p.Earlier, q.Earlier) })
	var hosts []string
	for _, p := range parts {
		if h := HostOf(p.Name); !slices.Contains(hosts, h) {
			hosts = append(hosts, h)
		}
	}
	return hosts
}

// Clone returns a copy that shares nothing.
func (a *Account) Clone() Account {
	b := *a
	b.Parts, b.sums = slices.Clone(a.Parts), slices.Clone(a.sums)
	return b
}

// Read counts a page that was read for the first time, given the fingerprint of
// its content. Pages of parts for which there is no room are not counted.
func (a *Account) Read(part string, sum []byte) {
	i, ok := a.find(part)
	if !ok {
		room := maxParts
		if !slices.Contains(a.Hosts(), HostOf(part)) {
			room /= 2
		}
		if len(a.Parts) >= room {
			return
		}
		a.Parts = slices.Insert(a.Parts, i, Part{Name: part, Earlier: int64(len(a.Parts))})
	}
	var b [4]byte
	copy(b[:], sum)
	h := binary.BigEndian.Uint32(b[:])
	j, seen := slices.BinarySearch(a.sums, h)
	if j == maxSums {
		return
	}
	p := &a.Parts[i]
	if p.Sampled++; seen {
		return
	}
	p.SampledNew++
	a.sums = slices.Insert(a.sums, j, h)
	a.sums = a.sums[:min(len(a.sums), maxSums)]
}

// New returns the share of the pages read that had new content.
func (p *Part) New() float64 {
	if p.Sampled == 0 {
		return 1
	}
	return float64(p.SampledNew) / float64(p.Sampled)
}

// Encode returns the mark of an account.
func (a *Account) Encode() string {
	b := binary.AppendUvarint(nil, uint64(a.Added))
	b = binary.AppendUvarint(b, uint64(a.Visits))
	b = prefixed.Append(b, a.Segment)
	b = binary.AppendUvarint(b, bits.ReverseBytes64(math.Float64bits(a.Undistributed))) // most are 0
	b = binary.AppendUvarint(b, uint64(len(a.sums)))
	for _, s := range a.sums {
		b = binary.BigEndian.AppendUint32(b, s)
	}
	for _, p := range a.Parts {
		b = prefixed.Append(b, p.Name)
		for _, n := range []int64{p.Earlier, p.Sampled, p.SampledNew} {
			b = binary.AppendUvarint(b, uint64(n))
		}
	}
	return string(b)
}

// ErrDamaged says that a mark is not an account.
var ErrDamaged = errors.New("frontier: account is damaged")

// Decode decodes a mark; an empty one is an empty account.
func Decode(mark string) (Account, error) {
	var a Account
	if mark == "" {
		return a, nil
	}
	d := decoder{b: []byte(mark)}
	a.Added, a.Visits, a.Segment = d.number(), d.number(), d.text(1<<10)
	a.Undistributed = math.Float64frombits(bits.ReverseBytes64(d.uvarint()))
	d.bad = d.bad || !(a.Undistributed >= 0) || math.IsInf(a.Undistributed, 0)
	n := d.number()
	if d.bad = d.bad || n > maxSums || int64(len(d.b)) < 4*n; !d.bad {
		for range n {
			a.sums = append(a.sums, binary.BigEndian.Uint32(d.b))
			d.b = d.b[4:]
		}
		d.bad = !ascending(a.sums)
	}
	for len(d.b) > 0 && !d.bad {
		p := Part{Name: d.text(maxName), Earlier: d.number(), Sampled: d.number(), SampledNew: d.number()}
		last := len(a.Parts) - 1
		d.bad = d.bad || last+1 == maxParts || last >= 0 && a.Parts[last].Name >= p.Name || p.SampledNew > p.Sampled
		a.Parts = append(a.Parts, p)
	}
	if d.bad {
		return Account{}, fmt.Errorf("%w: %d bytes", ErrDamaged, len(mark))
	}
	return a, nil
}

func ascending(sums []uint32) bool {
	for i := 1; i < len(sums); i++ {
		if sums[i-1] >= sums[i] {
			return false
		}
	}
	return true
}

type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) uvarint() uint64 {
	n, size := binary.Uvarint(d.b)
	if size <= 0 {
		d.bad, d.b = true, nil
		return 0
	}
	d.b = d.b[size:]
	return n
}

func (d *decoder) number() int64 {
	n := d.uvarint()
	if n > 1<<62 {
		d.bad, d.b = true, nil
		return 0
	}
	return int64(n)
}

func (d *decoder) text(limit int64) string {
	n := d.number()
	if n > limit || n > int64(len(d.b)) {
		d.bad, d.b = true, nil
		return ""
	}
	s := string(d.b[:n])
	d.b = d.b[n:]
	return s
}
