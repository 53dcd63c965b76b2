package segment

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
)

// placementKey is the metadata key under which a record on a fetch list keeps its
// [Placement]. It belongs to the fetch list alone: no record of the crawl db has it.
const placementKey = "segment.turn"

// Placement says on which fetch list a URL is, and how long to wait between visits: what
// generate decided besides selecting its record. The zero value is that of the only list.
type Placement struct {
	// List is the number of the fetch list that the URL is on, of Lists in all,
	// from zero. Zero Lists means that there is one.
	List, Lists int
	// By says what shares a list: two URLs with the same host, domain or
	// address are on the same list.
	By hostdb.By
	// Delay is the pause between two visits to the host; zero means that of the
	// fetch, negative none. (Nutch: _variableFetchDelay_.)
	Delay time.Duration
}

// ListPart returns the name of the part in which a fetch of one list keeps what
// belongs in part, until all lists are fetched and it is moved there.
func ListPart(part string, list int) string { return part + "-" + strconv.Itoa(list) }

// Set writes the placement into a record of a fetch list.
func (p Placement) Set(d *crawldb.Datum) {
	if p.Lists <= 1 && p.Delay == 0 {
		d.Meta.Delete(placementKey)
		return
	}
	d.Meta.Set(placementKey, fmt.Sprintf("%d/%d %v %d", p.List, max(p.Lists, 1), p.By, p.Delay.Milliseconds()))
}

// TakePlacement removes the placement from a record of a fetch list, and returns it.
func TakePlacement(d *crawldb.Datum) (Placement, error) {
	v, ok := d.Meta.Get(placementKey)
	if !ok {
		return Placement{}, nil
	}
	d.Meta.Delete(placementKey)
	bad := fmt.Errorf("segment: %s of %s is %q", placementKey, d.URL, v)
	f := strings.Split(v, " ")
	if len(f) != 3 {
		return Placement{}, bad
	}
	list, lists, _ := strings.Cut(f[0], "/")
	var p Placement
	var ms int64
	var errs [4]error
	p.List, errs[0] = strconv.Atoi(list)
	p.Lists, errs[1] = strconv.Atoi(lists)
	p.By, errs[2] = hostdb.ParseBy(f[1])
	ms, errs[3] = strconv.ParseInt(f[2], 10, 64)
	for _, err := range errs {
		if err != nil {
			return Placement{}, bad
		}
	}
	const most = int64(1<<63-1) / int64(time.Millisecond)
	if p.List < 0 || p.List >= p.Lists || ms > most || ms < -most {
		return Placement{}, bad
	}
	p.Delay = time.Duration(ms) * time.Millisecond
	return p, nil
}
