package ordering

import (
	"math"
	"math/rand/v2"
	"strconv"
)

// Generate makes up a web of about that many pages: hosts of very different sizes, the
// largest with up to an eighth of all pages, with directories of very different sizes. Most
// pages link to the start page of their host, some to a menu that is the same on the whole
// host, to their directory and to their neighbours; a few link to other hosts, mostly to
// pages that others link to as well. One page in seven has no links. The same arguments give
// the same web.
func Generate(pages int, seed uint64) *Web {
	rnd := rand.New(rand.NewPCG(seed, 0))
	pages = max(pages, 2)
	power := func(exponent, scale float64, most int) int {
		return max(1, int(min(math.Pow(1-rnd.Float64(), -exponent)*scale, float64(most))))
	}
	b := builder{}
	type host struct{ begin, end int }
	var hosts []host
	for at := 0; at < pages; {
		n := power(1.1, 3, max(1, min(pages/8, pages-at)))
		hosts = append(hosts, host{at, at + n})
		at += n
	}
	popular := make([]int, 0, 2*len(hosts)) // a page once for each link to it
	for _, h := range hosts {
		popular = append(popular, h.begin)
	}
	for number, h := range hosts {
		type dir struct{ begin, end, kind int }
		var dirs []dir
		for at := h.begin; at < h.end; {
			n := power(0.9, 4, h.end-at)
			dirs = append(dirs, dir{at, at + n, rnd.IntN(4)})
			at += n
		}
		menu := min(h.end-h.begin-1, rnd.IntN(12))
		for i, d := range dirs {
			for p := d.begin; p < d.end; p++ {
				b.names = append(b.names, "http://h"+strconv.Itoa(number)+".example/"+strconv.Itoa(i)+"/"+strconv.Itoa(p-d.begin))
				add := func(to int) { b.link(uint32(p), uint32(to)) }
				if rnd.Float64() < 0.15 {
					continue
				}
				if rnd.Float64() < 0.8 {
					add(h.begin)
				}
				if d.kind != 3 {
					for k := range menu {
						add(h.begin + 1 + k)
					}
				}
				if d.kind == 0 {
					for q := d.begin; q < min(d.end, d.begin+30); q++ {
						add(q)
					}
				} else {
					add(d.begin)
					add(max(p-1, d.begin))
					add(min(p+1, d.end-1))
				}
				if p == d.begin {
					for q := p; q < min(d.end, p+100); q++ {
						add(q)
					}
					add(dirs[i/3].begin)
					for k := 3 * i; k < min(3*i+3, len(dirs)); k++ {
						add(dirs[k].begin)
					}
				}
				for rnd.Float64() < 0.4 {
					add(dirs[rnd.IntN(len(dirs))].begin)
				}
				for rnd.Float64() < 0.2 {
					to := popular[rnd.IntN(len(popular))]
					add(to)
					popular = append(popular, to)
					if rnd.Float64() < 0.3 {
						o := hosts[rnd.IntN(len(hosts))]
						popular = append(popular, o.begin+rnd.IntN(o.end-o.begin))
					}
				}
			}
		}
	}
	return b.web()
}
