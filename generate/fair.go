package generate

import (
	"container/heap"
	"context"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/internal/frontier"
)

// How many candidates are looked at to divide the room for some: twice as many, and
// so many.
const (
	windowFactor = 2
	windowExtra  = 4096
)

// window is how many candidates are looked at together; none if all are selected.
func (j *job) window() int {
	if j.o.TopN <= 0 {
		return math.MaxInt / 2
	}
	return windowFactor*j.o.TopN*j.o.Segments + windowExtra
}

// fairly yields candidates in another order: how many of each registered domain come
// in which places stays as it is, but those parts of a domain that may have no end
// take turns, with each other and with all the rest. So a part that has no end takes
// its share and no more, and where nothing else is due it takes all.
func (j *job) fairly(ctx context.Context, best iter.Seq2[crawldb.Candidate, error]) iter.Seq2[crawldb.Candidate, error] {
	if j.o.Exact || j.o.NutchCompat || j.o.TopN <= 0 {
		return best
	}
	size := j.window()
	return func(yield func(crawldb.Candidate, error) bool) {
		var some []crawldb.Candidate
		held := map[string]struct{}{} // an index may yield a record twice
		flush := func() bool {
			order, err := j.turnsOf(ctx, len(some), func(i int) string { return some[i].URL })
			if err != nil {
				yield(crawldb.Candidate{}, err)
				return false
			}
			for _, i := range order {
				if !yield(some[i], nil) {
					return false
				}
			}
			some = some[:0]
			clear(held)
			clear(j.waiting)
			return true
		}
		for c, err := range best {
			if err != nil {
				yield(crawldb.Candidate{}, err)
				return
			}
			if _, twice := held[c.URL]; twice {
				continue
			}
			held[c.URL] = struct{}{}
			some = append(some, c)
			if j.indexed {
				if err := j.lookAt(ctx, c.URL); err != nil {
					yield(crawldb.Candidate{}, err)
					return
				}
			}
			if len(some) >= size && !flush() {
				return
			}
		}
		flush()
	}
}

// turnsOf returns the order in which n URLs, the best first, are taken if the parts
// of each domain take turns.
func (j *job) turnsOf(ctx context.Context, n int, url func(int) string) ([]int, error) {
	order := make([]int, n)
	numbers := map[string]int{}
	var domains []string
	var counts, next []int
	of := make([]int32, n)
	for i := range order {
		order[i] = i
		domain := j.domain(crawldb.Host(url(i)))
		k, ok := numbers[domain]
		if !ok {
			k = len(domains)
			numbers[domain] = k
			domains, counts = append(domains, domain), append(counts, 0)
		}
		counts[k]++
		of[i] = int32(k)
	}
	// The places of those that may be divided, one domain behind the other.
	next = make([]int, len(domains))
	all := 0
	for k, c := range counts {
		if next[k] = all; c >= fewPlaces {
			all += c
		}
	}
	places := make([]int, all)
	for i, k := range of {
		if counts[k] >= fewPlaces {
			places[next[k]] = i
			next[k]++
		}
	}
	for k, domain := range domains {
		if counts[k] < fewPlaces {
			continue
		}
		places := places[next[k]-counts[k] : next[k]]
		account, err := j.account(ctx, domain)
		if err != nil {
			return nil, err
		}
		if account.Visits < newcomer {
			continue
		}
		site := plant(&account, domain)
		for _, i := range places {
			site.due[frontier.PartOf(url(i))]++
		}
		for _, i := range places {
			site.add(i, site.way(url(i)))
		}
		site.begin()
		for _, at := range places {
			order[at] = site.take()
		}
	}
	return order, nil
}

// domain is hostdb.Domain, and remembers what it said.
func (j *job) domain(host string) string {
	domain, ok := j.domains[host]
	if !ok {
		domain = hostdb.Domain(host)
		j.domains[strings.Clone(host)] = domain
	}
	return domain
}

// account returns the account of a domain.
func (j *job) account(ctx context.Context, domain string) (frontier.Account, error) {
	account, ok := j.accounts[domain]
	if !ok {
		var err error
		if account, _, err = frontier.Load(ctx, j.crawl, domain); err != nil {
			return account, err
		}
		j.accounts[domain] = account
	}
	return account, nil
}

// A site is the tree of those parts of a domain that are in doubt: hosts, directories,
// and pages of one kind. The rest is one branch.
type site struct {
	branch
	account *frontier.Account
	domain  string
	rank    map[string]int      // of the hosts that are known, the oldest first
	due     map[string]int      // how many URLs each part has
	counted map[string]struct{} // hosts and parts whose weight was added
	known   map[string]bool     // what proven said
	steps   []step
}

// A branch takes turns with its siblings: each comes as often as it weighs, and of
// those that are next the one that has the better page. It has either children or
// leaves.
type branch struct {
	weight   float64
	turn     float64 // when it is next
	born     int     // among its siblings
	children map[string]*branch
	waiting  queue // those children that have something
	leaves   []int // the best first
}

// step is one step from a domain to a URL: the name of a branch and what it weighs.
type step struct {
	name   string
	weight float64
}

func plant(a *frontier.Account, domain string) *site {
	s := &site{account: a, domain: domain, rank: map[string]int{}, due: map[string]int{}, counted: map[string]struct{}{}, known: map[string]bool{}}
	for i, h := range a.Hosts() {
		s.rank[h] = i
	}
	return s
}

// The weights. An older host has more than a younger one, since those that a name
// server makes up come later; hosts that are proven have more than others. A part has as much as what it says is new, once that
// can be told, but a sixteenth at least; what differs in numbers or parameters has
// three quarters; and the more of a part is waiting the less it has, slowly: what has
// an end is done before what has none. What is beyond doubt has what its parts have
// together. The numbers are those with which sixty pages beside eleven traps are all
// found in 350 visits (internal/hostile, C6).
//
// A site is divided once it has had as many visits as newcomer, and only if it has
// fewPlaces: before that nothing is known of its parts, and the best go first.
const (
	newcomer  = 32
	fewPlaces = 8

	judged   = 8
	mostNew  = 0.75
	leastNew = 1.0 / 16
	numbered = 0.75
	backlog  = 16
)

// maxSteps is how far down parts are told apart.
const maxSteps = 6

// way returns the steps to a URL: those that may lead to what has no end. What is
// beyond doubt is one branch, so it stays in the order of its priorities, whatever
// part it is of. In doubt are hosts of which little was read, or little that was
// new; parts that said what others had said; what differs in numbers, tokens or
// parameters; and paths that come by one name twice. The branch "host" holds hosts
// of which nothing was read yet; no name of a branch is that of another kind.
func (s *site) way(url string) []step {
	s.steps = s.steps[:0]
	part := frontier.PartOf(url)
	host := frontier.HostOf(part)
	if n, ok := s.rank[host]; !ok {
		s.steps = append(s.steps, step{"host", hostWeight(len(s.rank))}, step{host, kindWeight(host)})
	} else if s.proven(host) {
		s.steps = append(s.steps, step{proven, s.once(host, 1/float64(1+n))})
	} else {
		s.steps = append(s.steps, step{host + "/", hostWeight(n)})
	}
	w, fresh := kindWeight(part[len(host):]), 1.0
	told := w < 1
	if p := s.account.Part(part); p != nil && p.Judged >= judged {
		fresh = p.New()
		w *= max(fresh, leastNew)
	}
	told = told || fresh < mostNew || frontier.Endless(url, s.domain) || repeats(url)
	w /= 1 + math.Log2(1+float64(s.due[part])/backlog)
	if told {
		s.steps = append(s.steps, step{part, w})
	}
	name, first := part, true
	for dir := range frontier.Steps(url) {
		if first { // it is in the name of the part
			first = false
			continue
		}
		if len(s.steps) >= maxSteps {
			break
		}
		name += dir
		if k := kindWeight(dir); k < 1 {
			if !told {
				s.steps, told = append(s.steps, step{part, w}), true
			}
			s.steps = append(s.steps, step{name, k})
		}
	}
	if told {
		return append(s.steps, step{"", 1})
	}
	return append(s.steps, step{sure, s.once(part, w)})
}

// The branches of all hosts, and of all parts of a host, that are beyond doubt. They
// weigh what these weigh together.
const (
	proven = "proven"
	sure   = "sure"
)

// hostWeight is what the n-th host of a domain weighs that is not proven, from 0 on: so
// little that all of them that a name server makes up come to a fifth of the first.
func hostWeight(n int) float64 {
	h := float64(1 + n)
	return 1 / (h * h * h)
}

// once returns the weight that a host or part adds: none the second time.
func (s *site) once(name string, weight float64) float64 {
	if _, again := s.counted[name]; again {
		return 0
	}
	s.counted[name] = struct{}{}
	return weight
}

// proven reports whether enough of a host was read, and most of it was new.
func (s *site) proven(host string) bool {
	if is, ok := s.known[host]; ok {
		return is
	}
	var read, fresh int64
	for i := range s.account.Parts {
		if p := &s.account.Parts[i]; frontier.HostOf(p.Name) == host {
			read, fresh = read+p.Judged, fresh+p.Fresh
		}
	}
	s.known[host] = read >= judged && float64(fresh) >= mostNew*float64(read)
	return s.known[host]
}

// repeats reports whether the path of a URL comes by a name twice.
func repeats(url string) bool {
	seen := make([]string, 0, 16)
	for dir := range frontier.Steps(url) {
		if slices.Contains(seen, dir) {
			return true
		}
		if len(seen) < cap(seen) {
			seen = append(seen, dir)
		}
	}
	return false
}

// kindWeight is what a branch of that name weighs.
func kindWeight(name string) float64 {
	if strings.ContainsAny(name, "#*?") {
		return numbered
	}
	return 1
}

// add puts a leaf at the end of a way.
func (b *branch) add(leaf int, way []step) {
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
	b.leaves = append(b.leaves, leaf)
}

// begin says who is next, once all is added.
func (b *branch) begin() {
	for _, c := range b.waiting {
		c.turn = 1/c.weight - 1
		c.begin()
	}
	heap.Init(&b.waiting)
}

// take removes the leaf whose turn it is. There is one.
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

// queue is a heap of branches, that whose turn it is first.
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
