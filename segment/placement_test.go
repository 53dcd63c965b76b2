package segment_test

import (
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/segment"
)

func TestPlacementIsReadAsItWasSet(t *testing.T) {
	for _, c := range []struct{ set, want segment.Placement }{
		{segment.Placement{}, segment.Placement{}},
		{segment.Placement{List: 3, Lists: 7, By: hostdb.ByDomain, Delay: 1500 * time.Millisecond}, segment.Placement{List: 3, Lists: 7, By: hostdb.ByDomain, Delay: 1500 * time.Millisecond}},
		{segment.Placement{Lists: 2, By: hostdb.ByIP}, segment.Placement{Lists: 2, By: hostdb.ByIP}},
		{segment.Placement{Delay: -time.Millisecond}, segment.Placement{Lists: 1, Delay: -time.Millisecond}},
		{segment.Placement{Lists: 1, By: hostdb.ByDomain}, segment.Placement{}}, // one list is none to choose from
		{segment.Placement{Delay: 1<<63 - 1}, segment.Placement{Lists: 1, Delay: (1<<63 - 1) / time.Millisecond * time.Millisecond}},
		{segment.Placement{Delay: -1 << 63}, segment.Placement{Lists: 1, Delay: -(1<<63 - 1) / time.Millisecond * time.Millisecond}},
	} {
		was := crawldb.MetaOf("seed", "x")
		d := crawldb.Datum{URL: "http://a.test/", Meta: was}
		segment.Placement{List: 1, Lists: 2}.Set(&d) // of another list, which it was on before
		c.set.Set(&d)
		if got, err := segment.TakePlacement(&d); err != nil || got != c.want || d.Meta != was {
			t.Errorf("%+v became %+v, want %+v, %v; %q is left", c.set, got, c.want, err, d.Meta.Encoded())
		}
	}
	for _, bad := range []string{"", "1/2", "1/2 byHost", "1/2 byHost 0 0", "2/2 byHost 0", "-1/2 byHost 0", "0/0 byHost 0", "x/2 byHost 0", "0/x byHost 0", "0 byHost 0",
		"0/2 byName 0", "0/2 byHost x", "0/2 byHost 9223372036855", "0/2 byHost -9223372036855", "0/2 byHost 9223372036854775808"} {
		d := crawldb.Datum{URL: "http://a.test/", Meta: crawldb.MetaOf("segment.turn", bad)}
		got, err := segment.TakePlacement(&d)
		if err == nil || got != (segment.Placement{}) || !strings.Contains(err.Error(), "http://a.test/") || d.Meta.Len() > 0 {
			t.Errorf("%q: %+v, %v", bad, got, err)
		}
	}
}
