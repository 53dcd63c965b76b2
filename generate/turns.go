package generate

import (
	"container/heap"
	"context"
	"iter"
	"strings"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/internal/frontier"
)

// inTurns yields candidates in another order: the places of each registered domain
// stay its own, but parts of a domain that may be endless take turns, with each
// other and with all the rest. So an endless part takes its share and no more, and
// if nothing else is due it takes everything.
func (j *job) inTurns(ctx context.Context, best iter.Seq2[crawldb.Candidate, error]) iter.Seq2[candidate, error] {
	if j.o.ExactTopN || j.o.NutchCompat || j.o.TopN <= 0 {
		return func(yield func(candidate, error) bool) {
			for c, err := range best {
				if err != nil {
					yield(candidate{}, err)
					return
				}
				if !yield(candidate{c.URL, c.Token, j.hostOf(c.URL)}, nil) {
					return
				}
			}
		}
	}
	size := j.windowSize()
	return func(yield func(candidate, error) bool) {
		held := map[string]struct{}{} // an index may yield a record twice
		var urls, tokens []string
		var of []*hostState // the host of each URL
		flush := func() bool {
			order, err := j.turnsOf(ctx, of, func(i int) string { return urls[i] })
			if err != nil {
				yield(candidate{}, err)
				return false
			}
			for _, i := range order {
				if !yield(candidate{urls[i], tokens[i], of[i]}, nil) {
					return false
				}
			}
			urls, tokens, of = urls[:0], tokens[:0], of[:0]
			clear(held)
			j.clearWindow()
			return true
		}
		for c, err := range best {
			if err != nil {
				yield(candidate{}, err)
				return
			}
			if _, again := held[c.URL]; again {
				continue
			}
			held[c.URL] = struct{}{}
			host := j.hostOf(c.URL)
			urls, tokens, of = append(urls, c.URL), append(tokens, c.Token), append(of, host)
			if j.indexed {
				if err := j.countInWindow(ctx, c.URL, host); err != nil {
					yield(candidate{}, err)
					return
				}
			}
			if len(of) >= size && !flush() {
				return
			}
		}
		flush()
	}
}

// A candidate is a crawldb.Candidate with its host.
type candidate struct {
	url, token string
	host       *hostState
}

// turnsOf returns the order in which URLs of these hosts, best first, are taken if the
// parts of each domain take turns.
func (j *job) turnsOf(ctx context.Context, of []*hostState, url func(int) string) ([]int, error) {
	order := make([]int, len(of))
	var domains []*domain
	for i, h := range of {
		d := j.domain(h)
		if order[i] = i; d.places == 0 {
			domains = append(domains, d)
		}
		d.places++
	}
	defer func() {
		for _, d := range domains {
			d.places, d.next = 0, 0
		}
	}()
	// The places of those that may be divided, domain by domain.
	all := 0
	for _, d := range domains {
		if d.next = all; d.places >= fewPlaces {
			all += d.places
		}
	}
	places := make([]int, all)
	for i, h := range of {
		if d := h.domain; d.places >= fewPlaces {
			places[d.next] = i
			d.next++
		}
	}
	for _, d := range domains {
		if d.places < fewPlaces {
			continue
		}
		places := places[d.next-d.places : d.next]
		account, err := j.account(ctx, d)
		if err != nil {
			return nil, err
		}
		if account.Visits < newcomer {
			continue
		}
		d.site().divide(order, places, url)
	}
	return order, nil
}

// A domain is the registered domain of some hosts.
type domain struct {
	name    string
	account *frontier.Account // nil if it was not asked for
	divided *site             // nil if it was not
	// In turnsOf: the number of its URLs, and where its places end.
	places, next int
}

// domain returns the domain of a host, hostdb.Domain, the same for all hosts of it.
func (j *job) domain(h *hostState) *domain {
	if h.domain != nil {
		return h.domain
	}
	name := hostdb.Domain(h.name)
	d := j.domains[name]
	if d == nil {
		d = &domain{name: strings.Clone(name)}
		j.domains[d.name] = d
	}
	h.domain = d
	return d
}

// account returns the account of a domain.
func (j *job) account(ctx context.Context, d *domain) (*frontier.Account, error) {
	if d.account == nil {
		account, _, err := frontier.Load(ctx, j.crawl, d.name)
		if err != nil {
			return nil, err
		}
		d.account = &account
	}
	return d.account, nil
}

// A branch takes turns with its siblings: each as often as its weight says, and
// among those that are next the one with the better page goes first. It has
// either children or leaves.
type branch struct {
	weight   float64
	turn     float64 // when its next turn is
	born     int     // among its siblings
	children map[string]*branch
	waiting  queue // children that are not empty
	leaves   []int // best first
}

// The weights. An older host weighs more than a younger one, since hosts that a name server
// makes up come later; proven hosts weigh more than others. A part weighs as much as the
// share of it that is new, once that is known, but at least a sixteenth; one that differs in
// numbers or parameters weighs three quarters; and the more of a part is waiting the less it
// weighs, slowly: what has an end is finished before what has none. What is beyond doubt
// weighs as much as its parts together. The numbers are those with which sixty pages beside
// eleven traps are all found in 350 visits (internal/hostile, C6).
//
// A site is divided once it has had as many visits as newcomer, and only if it
// has fewPlaces: before that nothing is known about its parts, and the best go
// first.
const (
	newcomer  = 32
	fewPlaces = 8

	judged   = 8
	mostNew  = 0.75
	leastNew = 1.0 / 16
	numbered = 0.75
	backlog  = 16
)

// at returns the branch at the end of a path, which is created if necessary, with the
// weights of the steps.
func (b *branch) at(way []step) *branch {
	for _, st := range way {
		c := b.children[st.name]
		if c == nil {
			if b.children == nil {
				b.children = map[string]*branch{}
			}
			c = &branch{weight: st.weight, born: len(b.children)}
			b.children[st.name] = c
			b.waiting = append(b.waiting, c)
		} else if st.name == sure || st.name == proven {
			c.weight += st.weight
		}
		b = c
	}
	return b
}

// begin determines which part is next, after everything was added.
func (b *branch) begin() {
	for _, c := range b.waiting {
		c.turn = 1/c.weight - 1
		c.begin()
	}
	heap.Init(&b.waiting)
}

// take removes the leaf whose turn it is. There must be one.
func (b *branch) take() int {
	if len(b.waiting) == 0 {
		leaf := b.leaves[0]
		b.leaves = b.leaves[1:]
		return leaf
	}
	c := b.waiting[0]
	leaf := c.take()
	if c.turn += 1 / c.weight; len(c.waiting) == 0 && len(c.leaves) == 0 {
		heap.Pop(&b.waiting)
	} else {
		heap.Fix(&b.waiting, 0)
	}
	return leaf
}

// queue is a heap of branches, the one whose turn it is first.
type queue []*branch

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	if q[i].turn != q[j].turn {
		return q[i].turn < q[j].turn
	}
	return q[i].born < q[j].born
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)   { *q = append(*q, x.(*branch)) }
func (q *queue) Pop() any {
	old := *q
	x := old[len(old)-1]
	*q = old[:len(old)-1]
	return x
}
