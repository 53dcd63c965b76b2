package fetch_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/urlfilter"
)

func TestNormalizeListAndFilterList(t *testing.T) {
	list := []string{"http://" + host + "/rejected", "http://" + host + "/%61", "http://" + host + "/./a", "http://" + host + "/./b", "http://" + host + "/b", "http://" + host + "/c"}
	for _, c := range []struct {
		normalize, filter bool
		asked             string
	}{
		{false, false, "/%61 /./a /./b /b /c /rejected"},
		{false, true, "/%61 /./a /./b /b /c"},
		{true, false, "/a /b /c /rejected"},
		{true, true, "/a /b /c"},
	} {
		for _, cut := range []time.Duration{time.Hour, 200 * time.Millisecond, 6 * time.Second, 12 * time.Second, 18 * time.Second} {
			synctest.Test(t, func(t *testing.T) {
				s := &site{latency: time.Second}
				r := newRig(t, s, list...)
				r.o.Rules = &urlfilter.Rules{Normalizers: []urlfilter.Normalizer{&urlfilter.Basic{}}, Filters: []urlfilter.Filter{without("rejected")}}
				r.o.NormalizeList, r.o.FilterList = c.normalize, c.filter
				ctx, cancel := context.WithTimeout(t.Context(), cut)
				defer cancel()
				rep, err := fetch.Run(ctx, r.db.Segments(), seg, r.o)
				filtered := rep.Filtered
				if err != nil {
					filtered += r.run(seg).Filtered
				}
				var asked []string
				for _, a := range s.of(host) {
					if path := strings.TrimPrefix(a.url, "http://"+host); path != "/robots.txt" && !a.cut {
						asked = append(asked, path)
					}
				}
				slices.Sort(asked)
				if got := strings.Join(asked, " "); got != c.asked {
					t.Errorf("normalize %t, filter %t, cut after %v: asked for %s, want %s", c.normalize, c.filter, cut, got, c.asked)
				}
				if c.filter != (filtered == 1) {
					t.Errorf("%d were filtered", filtered)
				}
				visits := r.visits(seg)
				for _, url := range list {
					v, ok := visits[url]
					if why := v.Outcome.Reason; !ok || v.Outcome.Code == protocol.Skipped && !strings.Contains(why, "its normal form is http://") && !strings.Contains(why, "the rules reject it: ") {
						t.Errorf("%s: %+v", url, v)
					}
				}
			})
		}
	}
}
