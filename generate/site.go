package generate

import (
	"math"
	"slices"
	"strings"

	"github.com/recrawl/recrawl/internal/frontier"
)

// A site is the tree of the doubtful parts of a domain: hosts, directories, and pages
// of one kind. The rest is one branch.
type site struct {
	branch
	account *frontier.Account
	domain  string
	rank    map[string]int // of the known hosts, the oldest first
	hosts   map[string]*siteHost
	parts   map[string]*sitePart
	dirs    map[string]*siteDir
	steps   []step   // scratch, like the names
	names   []string // of the steps to a directory
}

// step is one step from a domain to a URL: the name of a branch and its weight.
type step struct {
	name   string
	weight float64
}

type siteHost struct {
	name          string
	rank          int
	known, proven bool // proven: enough of it was read, and most of that was new
	counted       bool // its weight was added
}

type sitePart struct {
	name    string
	host    *siteHost
	due     int // how many URLs it has
	weight  float64
	told    bool // it is kept apart from the rest
	counted bool // its weight was added
}

// A siteDir is what URLs in the same directory have in common.
type siteDir struct {
	part    *sitePart
	repeats bool
	below   []step     // steps that continue from the part
	leaves  [2]*branch // of the URLs beyond doubt, and of the others
}

// site returns the site of a domain with empty branches. A list is divided like the
// windows before it, so the directories and parts are kept.
func (d *domain) site() *site {
	s := d.divided
	if s == nil {
		s = plant(d.account, d.name)
		d.divided = s
		return s
	}
	s.branch = branch{}
	for _, h := range s.hosts {
		h.counted = false
	}
	for _, p := range s.parts {
		p.due, p.counted = 0, false
	}
	for _, d := range s.dirs {
		d.leaves = [2]*branch{}
	}
	return s
}

func plant(a *frontier.Account, domain string) *site {
	s := &site{account: a, domain: domain, rank: map[string]int{}, hosts: map[string]*siteHost{}, parts: map[string]*sitePart{}, dirs: map[string]*siteDir{}}
	for i, h := range a.Hosts() {
		s.rank[h] = i
	}
	return s
}

// divide makes the URLs in these places of an order take turns there.
func (s *site) divide(order, places []int, url func(int) string) {
	of := make([]*siteDir, len(places))
	for k, i := range places {
		of[k] = s.dir(url(i))
		of[k].part.due++
	}
	for _, p := range s.parts {
		s.weigh(p)
	}
	for k, i := range places {
		d, told := of[k], 0
		if d.part.told || d.repeats || frontier.Endless(url(i), s.domain) {
			told = 1
		}
		if d.leaves[told] == nil {
			d.leaves[told] = s.at(s.way(d, told == 1))
		}
		d.leaves[told].leaves = append(d.leaves[told].leaves, i)
	}
	s.begin()
	for _, at := range places {
		order[at] = s.take()
	}
}

// dir returns the directory of a URL. A URL with a query has one of its own, since its
// name is a step, too.
func (s *site) dir(url string) *siteDir {
	name := ""
	if i := strings.LastIndexByte(url, '/'); i > 0 && url[i-1] != '/' && strings.IndexByte(url, '?') < 0 && strings.IndexByte(url, '#') < 0 {
		name = url[:i+1]
		if d := s.dirs[name]; d != nil {
			return d
		}
	}
	s.names = slices.AppendSeq(s.names[:0], frontier.Steps(url))
	d := &siteDir{part: s.part(frontier.PartOf(url)), repeats: repeats(s.names)}
	path := d.part.name
	for i, dir := range s.names {
		if i == 0 { // it is in the name of the part
			continue
		}
		path += dir
		if k := kindWeight(dir); k < 1 && len(d.below) < maxSteps {
			d.below = append(d.below, step{path, k})
		}
	}
	if name != "" {
		s.dirs[name] = d
	}
	return d
}

func (s *site) part(name string) *sitePart {
	p := s.parts[name]
	if p == nil {
		p = &sitePart{name: name, host: s.host(frontier.HostOf(name))}
		s.parts[name] = p
	}
	return p
}

func (s *site) host(name string) *siteHost {
	h := s.hosts[name]
	if h != nil {
		return h
	}
	h = &siteHost{name: name}
	h.rank, h.known = s.rank[name]
	var read, fresh int64
	for i := range s.account.Parts {
		if p := &s.account.Parts[i]; frontier.HostOf(p.Name) == name {
			read, fresh = read+p.Sampled, fresh+p.SampledNew
		}
	}
	h.proven = read >= judged && float64(fresh) >= mostNew*float64(read)
	s.hosts[name] = h
	return h
}

// weigh sets the weight of a part, once the number of its URLs is known.
func (s *site) weigh(p *sitePart) {
	w, fresh := kindWeight(p.name[len(p.host.name):]), 1.0
	p.told = w < 1
	if a := s.account.Part(p.name); a != nil && a.Sampled >= judged {
		fresh = a.New()
		w *= max(fresh, leastNew)
	}
	p.told = p.told || fresh < mostNew
	p.weight = w / (1 + math.Log2(1+float64(p.due)/backlog))
}

// maxSteps is the depth to which parts are kept apart.
const maxSteps = 6

// way returns the steps to the URLs of a directory: those that may lead to something
// endless. Everything beyond doubt is one branch, so it stays in the order of its
// priorities, whatever part it belongs to. In doubt are hosts of which little was read,
// or little that was new; parts that repeated what others said; URLs that differ in
// numbers, tokens or parameters; and paths in which a name occurs twice. The branch
// "host" holds hosts of which nothing was read yet; no branch of another kind has that
// name.
func (s *site) way(d *siteDir, told bool) []step {
	p, h := d.part, d.part.host
	steps := s.steps[:0]
	switch {
	case !h.known:
		steps = append(steps, step{"host", hostWeight(len(s.rank))}, step{h.name, kindWeight(h.name)})
	case h.proven:
		steps = append(steps, step{proven, once(&h.counted, 1/float64(1+h.rank))})
	default:
		steps = append(steps, step{h.name + "/", hostWeight(h.rank)})
	}
	if told {
		steps = append(steps, step{p.name, p.weight})
	}
	for _, below := range d.below {
		if len(steps) >= maxSteps {
			break
		}
		if !told {
			steps, told = append(steps, step{p.name, p.weight}), true
		}
		steps = append(steps, below)
	}
	if told {
		steps = append(steps, step{"", 1})
	} else {
		steps = append(steps, step{sure, once(&p.counted, p.weight)})
	}
	s.steps = steps
	return steps
}

// The branches of all hosts, and of all parts of a host, that are beyond doubt. They
// weigh as much as these together.
const (
	proven = "proven"
	sure   = "sure"
)

// hostWeight is the weight of the n-th unproven host of a domain, counted from 0: so
// little that all hosts that a name server makes up come to a fifth of the first.
func hostWeight(n int) float64 {
	h := float64(1 + n)
	return 1 / (h * h * h)
}

// once returns the weight that a host or part adds: none the second time.
func once(counted *bool, weight float64) float64 {
	if *counted {
		return 0
	}
	*counted = true
	return weight
}

// repeats reports whether one of the first sixteen names of a path occurs
// twice.
func repeats(names []string) bool {
	for i, name := range names {
		if slices.Contains(names[:min(i, 16)], name) {
			return true
		}
	}
	return false
}

// kindWeight is the weight of a branch with that name.
func kindWeight(name string) float64 {
	if strings.ContainsAny(name, "#*?") {
		return numbered
	}
	return 1
}
