package httpproto_test

import (
	"testing"

	"github.com/recrawl/recrawl/protocol/httpproto"
)

func TestRobotsTag(t *testing.T) {
	for _, tt := range []struct {
		values []string
		want   string
	}{
		{[]string{"noindex, nofollow"}, "noindex,nofollow"},
		{[]string{"otherbot: noindex, nofollow"}, ""},
		{[]string{"otherbot: noindex, Bot: nofollow, noarchive"}, "nofollow,noarchive"},
		{[]string{"bot: noindex", "nofollow"}, "noindex,nofollow"},
		{[]string{"other: noindex, *: nofollow"}, "nofollow"},
		{[]string{"max-snippet: 20, noindex"}, "max-snippet: 20,noindex"},
		{[]string{"unavailable_after: Wed, 03 Oct 2029 10:00:00 GMT, noindex"}, "unavailable_after: wed,03 oct 2029 10:00:00 gmt,noindex"},
		{[]string{"unavailable_after: 25 Jun 2030 15:00:00 PST, noindex"}, "unavailable_after: 25 jun 2030 15:00:00 pst,noindex"},
		{[]string{"unavailable_after: Wednesday, 03-Oct-29 10:00:00 GMT", "none"}, "unavailable_after: wednesday,03-oct-29 10:00:00 gmt,none"},
		{[]string{": noindex", "a b: noindex"}, ": noindex,a b: noindex"},
	} {
		if got := httpproto.RobotsTag(tt.values, "bot"); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.values, got, tt.want)
		}
	}
}
