package fetch

import "testing"

func TestRepresentative(t *testing.T) {
	const (
		a, b, s = "http://www.a.com", "http://www.b.com", "http://www.news.a.com"
		q       = a + "?y=1"
		p, p2   = a + "/xyz/index.html", a + "/abc/page.html"
		p3      = s + "/abc/page.html"
	)
	for _, c := range []struct {
		src, dst  string
		temporary bool
		want      string
	}{
		{a, b, true, b}, {a, b, false, b}, {a, q, false, a}, {a, p, false, a}, {p, a, false, a}, {p, p2, false, p2},
		{a, p, true, a}, {p, a, true, a}, {p, p2, true, p2}, {p, p3, true, p}, {a, s, true, a},
		// Also what Nutch's own method says.
		{"http://a.com:8080/a//", "http://a.com/?q", true, "http://a.com/?q"},
		{"http://A.com/a/b", "http://a.com/xyz/", true, "http://A.com/a/b"},
		{"http://a.com/a", "http://a.com/a/", true, "http://a.com/a"},
		{"http://a.com/a/", "http://a.com/a", true, "http://a.com/a"},
		{"http://a.com/ab/c?x=/y/z", "http://a.com:8080/%61", true, "http://a.com:8080/%61"},
		{"http://", "http://a.com/", true, "http://a.com/"},
		{"http://a.com/", "x", false, "x"},
	} {
		if got := representative(c.src, c.dst, c.temporary); got != c.want {
			t.Errorf("%s to %s, temporary %v: %s, want %s", c.src, c.dst, c.temporary, got, c.want)
		}
	}
}
