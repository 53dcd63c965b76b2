package segment_test

import (
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/segment"
)

func TestTurn(t *testing.T) {
	for _, c := range []struct{ turn, want segment.Turn }{
		{segment.Turn{}, segment.Turn{}},
		{segment.Turn{List: 3, Lists: 7, By: hostdb.ByDomain, Delay: 1500 * time.Millisecond}, segment.Turn{List: 3, Lists: 7, By: hostdb.ByDomain, Delay: 1500 * time.Millisecond}},
		{segment.Turn{Lists: 2, By: hostdb.ByIP}, segment.Turn{Lists: 2, By: hostdb.ByIP}},
		{segment.Turn{Delay: -time.Millisecond}, segment.Turn{Lists: 1, Delay: -time.Millisecond}},
		{segment.Turn{Lists: 1, By: hostdb.ByDomain}, segment.Turn{}}, // one list is none to choose from
		{segment.Turn{Delay: 1<<63 - 1}, segment.Turn{Lists: 1, Delay: (1<<63 - 1) / time.Millisecond * time.Millisecond}},
		{segment.Turn{Delay: -1 << 63}, segment.Turn{Lists: 1, Delay: -(1<<63 - 1) / time.Millisecond * time.Millisecond}},
	} {
		was := crawldb.MetaOf("seed", "x")
		d := crawldb.Datum{URL: "http://a.test/", Meta: was}
		segment.Turn{List: 1, Lists: 2}.Mark(&d) // of another list, which it was on before
		c.turn.Mark(&d)
		if got, err := segment.Unmark(&d); err != nil || got != c.want || d.Meta != was {
			t.Errorf("%+v became %+v, want %+v, %v; %q is left", c.turn, got, c.want, err, d.Meta.Encoded())
		}
	}
	for _, bad := range []string{"", "1/2", "1/2 byHost", "1/2 byHost 0 0", "2/2 byHost 0", "-1/2 byHost 0", "0/0 byHost 0", "x/2 byHost 0", "0/x byHost 0", "0 byHost 0",
		"0/2 byName 0", "0/2 byHost x", "0/2 byHost 9223372036855", "0/2 byHost -9223372036855", "0/2 byHost 9223372036854775808"} {
		d := crawldb.Datum{URL: "http://a.test/", Meta: crawldb.MetaOf(segment.TurnKey, bad)}
		got, err := segment.Unmark(&d)
		if err == nil || got != (segment.Turn{}) || !strings.Contains(err.Error(), "http://a.test/") || d.Meta.Len() > 0 {
			t.Errorf("%q: %+v, %v", bad, got, err)
		}
	}
}
