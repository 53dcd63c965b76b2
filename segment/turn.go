package segment

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
)

// TurnKey is the metadata key under which a record on a fetch list keeps its
// [Turn]. It belongs to the fetch list alone: no record of the crawl db has it.
const TurnKey = "segment.turn"

// Turn says how to visit a URL: what generate decided besides selecting
// its record. A record that says nothing has the zero value.
type Turn struct {
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

// Mark writes the turn into a record of a fetch list.
func (t Turn) Mark(d *crawldb.Datum) {
	if t.Lists <= 1 && t.Delay == 0 {
		d.Meta.Delete(TurnKey)
		return
	}
	d.Meta.Set(TurnKey, fmt.Sprintf("%d/%d %v %d", t.List, max(t.Lists, 1), t.By, t.Delay.Milliseconds()))
}

// Unmark removes the turn from a record of a fetch list.
func Unmark(d *crawldb.Datum) (Turn, error) {
	v, ok := d.Meta.Get(TurnKey)
	if !ok {
		return Turn{}, nil
	}
	d.Meta.Delete(TurnKey)
	bad := fmt.Errorf("segment: %s of %s is %q", TurnKey, d.URL, v)
	f := strings.Split(v, " ")
	if len(f) != 3 {
		return Turn{}, bad
	}
	list, lists, _ := strings.Cut(f[0], "/")
	var t Turn
	var ms int64
	var errs [4]error
	t.List, errs[0] = strconv.Atoi(list)
	t.Lists, errs[1] = strconv.Atoi(lists)
	t.By, errs[2] = hostdb.ParseBy(f[1])
	ms, errs[3] = strconv.ParseInt(f[2], 10, 64)
	for _, err := range errs {
		if err != nil {
			return Turn{}, bad
		}
	}
	const most = int64(1<<63-1) / int64(time.Millisecond)
	if t.List < 0 || t.List >= t.Lists || ms > most || ms < -most {
		return Turn{}, bad
	}
	t.Delay = time.Duration(ms) * time.Millisecond
	return t, nil
}
