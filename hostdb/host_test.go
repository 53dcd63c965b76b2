package hostdb_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
)

func TestHostAfterCrash(t *testing.T) {
	alive := time.Date(2024, 6, 1, 12, 0, 0, 0, time.UTC)
	now := alive.Add(10 * time.Minute)
	sec := time.Second
	for _, test := range []struct {
		name string
		h    hostdb.Host
		next time.Time // zero: the record stays as it is
	}{
		{"never asked", hostdb.Host{}, time.Time{}},
		{"never asked, but to wait", hostdb.Host{NextFetch: now.Add(time.Hour)}, time.Time{}},
		{"asked long ago", hostdb.Host{LastFetch: alive.Add(-61 * sec), NextFetch: alive.Add(-56 * sec)}, time.Time{}},
		{"asked a minute ago", hostdb.Host{LastFetch: alive.Add(-60 * sec), NextFetch: alive.Add(-55 * sec)}, now.Add(5 * sec)},
		{"asked just now", hostdb.Host{LastFetch: alive, NextFetch: alive.Add(5 * sec)}, now.Add(5 * sec)},
		{"asked after the last sign of life", hostdb.Host{LastFetch: alive.Add(sec), NextFetch: alive.Add(6 * sec)}, now.Add(5 * sec)},
		{"no pause", hostdb.Host{LastFetch: alive, NextFetch: alive}, now},
		{"a next time before the last", hostdb.Host{LastFetch: alive, NextFetch: alive.Add(-time.Hour)}, now},
		{"a larger Crawl-delay", hostdb.Host{LastFetch: alive, NextFetch: alive.Add(5 * sec), CrawlDelay: 20 * sec}, now.Add(20 * sec)},
		{"a smaller Crawl-delay", hostdb.Host{LastFetch: alive, NextFetch: alive.Add(5 * sec), CrawlDelay: sec}, now.Add(5 * sec)},
		{"a long pause is not run anew beyond an hour", hostdb.Host{LastFetch: alive, NextFetch: alive.Add(3 * time.Hour)}, alive.Add(3 * time.Hour)},
		{"a long pause that is over", hostdb.Host{LastFetch: alive, NextFetch: alive.Add(65 * time.Minute), CrawlDelay: 2 * time.Hour}, now.Add(time.Hour)},
		{"busy", hostdb.Host{LastFetch: alive.Add(-time.Hour), NextFetch: alive.Add(-time.Hour + 7*sec), Grants: []time.Time{alive.Add(sec)}}, now.Add(7 * sec)},
		{"busy since long ago", hostdb.Host{LastFetch: alive.Add(-2 * time.Hour), NextFetch: alive.Add(-2*time.Hour + 7*sec), Grants: []time.Time{alive.Add(-time.Hour)}}, now.Add(7 * sec)},
		{"busy a day after the last request", hostdb.Host{LastFetch: alive.Add(-24 * time.Hour), NextFetch: alive.Add(4 * sec), Grants: []time.Time{alive.Add(hostdb.MaxGrant - sec)}}, now.Add(5 * sec)},
		{"busy without a pause", hostdb.Host{LastFetch: alive.Add(-24 * time.Hour), NextFetch: alive.Add(-sec), Grants: []time.Time{alive.Add(hostdb.MaxGrant - sec)}}, now},
		{"busy for the first time, with a pause", hostdb.Host{NextFetch: alive.Add(4 * sec), Grants: []time.Time{alive.Add(hostdb.MaxGrant - sec)}}, now.Add(5 * sec)},
		{"busy again and again", hostdb.Host{LastFetch: alive.Add(-2 * sec), NextFetch: alive.Add(4 * sec), Grants: []time.Time{alive.Add(hostdb.MaxGrant - 9*sec), alive.Add(hostdb.MaxGrant - sec)}}, now.Add(5 * sec)},
		{"busy for the first time", hostdb.Host{Grants: []time.Time{alive.Add(sec)}}, now},
		{"busy for the first time, with a Crawl-delay", hostdb.Host{Grants: []time.Time{alive.Add(sec)}, CrawlDelay: 3 * sec}, now.Add(3 * sec)},
	} {
		got, want := test.h.AfterCrash(alive, now), test.h
		if !test.next.IsZero() {
			want.NextFetch, want.Grants = test.next, nil
		}
		if got.NextFetch != want.NextFetch || !slices.Equal(got.Grants, want.Grants) || got.LastFetch != want.LastFetch || got.CrawlDelay != want.CrawlDelay {
			t.Errorf("%s: %+v, want %+v", test.name, got, want)
		}
		if got.NextFetch.Before(test.h.NextFetch) {
			t.Errorf("%s: the host may be asked sooner", test.name)
		}
		again := got.AfterCrash(alive, now)
		if again.NextFetch.Before(got.NextFetch) {
			t.Errorf("%s: a second crash lets the host be asked sooner", test.name)
		}
	}
}

// A request that was under way when the clock was ahead does not block the host until that
// time comes.
func TestHostAfterCrashOfClockAhead(t *testing.T) {
	now := time.Date(2024, 6, 1, 12, 0, 0, 0, time.UTC)
	for _, ahead := range []time.Duration{time.Hour, 10 * 365 * 24 * time.Hour} {
		began := now.Add(ahead)
		for _, pause := range []time.Duration{0, 5 * time.Second} {
			for _, last := range []time.Time{{}, now.Add(-time.Minute)} {
				h := hostdb.Host{LastFetch: last, NextFetch: began.Add(pause), Grants: []time.Time{began.Add(hostdb.MaxGrant)}}
				if got := h.AfterCrash(now, now); !got.NextFetch.Equal(now.Add(pause)) || got.Grants != nil {
					t.Errorf("%v ahead, with a pause of %v: %+v", ahead, pause, got)
				}
			}
		}
	}
}

// What Nutch's TestURLUtil expects of domain names, suffixes and top-level
// domains.
func TestDomainNutch(t *testing.T) {
	for _, test := range []struct{ url, domain, suffix, tld string }{
		{"http://lucene.apache.org/nutch", "apache.org", "org", "org"},
		{"https://lucene.apache.org./nutch", "apache.org", "org", "org"},
		{"http://en.wikipedia.org/wiki/Java_coffee", "wikipedia.org", "org", "org"},
		{"http://140.211.11.130/foundation/contributing.html", "140.211.11.130", "", ""},
		{"http://www.example.co.uk:8080/index.html", "example.co.uk", "co.uk", "uk"},
		{"http://com", "com", "com", "com"},
		{"http://www.example.co.uk.com", "uk.com", "com", "com"},
		{"http://example.com.nn", "example.com.nn", "", ""},
		{"http://", "", "", ""},
		{"http://www.edu.tr.xyz", "tr.xyz", "xyz", "xyz"},
		{"http://subdomain.example.edu.tr", "example.edu.tr", "edu.tr", "tr"},
		{"http://subdomain.example.presse.fr", "presse.fr", "fr", "fr"},
		{"http://subdomain.example.presse.tr", "presse.tr", "tr", "tr"},
		{"http://www.example.c.se", "example.c.se", "c.se", "se"},
		{"http://www.example.plc.co.im", "example.plc.co.im", "plc.co.im", "im"},
		{"http://www.example.2000.hu", "example.2000.hu", "2000.hu", "hu"},
		{"http://www.example.flå.no", "example.flå.no", "xn--fl-zia.no", "no"},
		{"http://www.example.栃木.jp", "example.栃木.jp", "xn--4pvxs.jp", "jp"},
		{"http://www.taiuru.māori.nz", "taiuru.māori.nz", "xn--mori-qsa.nz", "nz"},
		{"http://nic.삼성", "nic.삼성", "xn--cg4bki", "xn--cg4bki"},
		{"http://example.blogspot.com", "blogspot.com", "com", "com"},
		{"file:/path/index.html", "", "", ""},
	} {
		host := hostdb.ByHost.Key(test.url)
		if got := hostdb.Domain(strings.TrimSuffix(crawldb.Host(test.url), ".")); got != test.domain {
			t.Errorf("the domain of %s is %q, want %q", test.url, got, test.domain)
		}
		if got := hostdb.Suffix(host); got != test.suffix {
			t.Errorf("the suffix of %s is %q, want %q", test.url, got, test.suffix)
		}
		if got := hostdb.TLD(host); got != test.tld {
			t.Errorf("the top-level domain of %s is %q, want %q", test.url, got, test.tld)
		}
	}
}

func TestSuffix(t *testing.T) {
	for _, test := range []struct{ host, suffix, tld string }{
		{"www.example.com", "com", "com"},
		{"www.example.co.uk", "co.uk", "uk"},
		{"co.uk", "co.uk", "uk"},
		{"com", "com", "com"},
		{"a.github.io", "io", "io"},
		{"a.s3.amazonaws.com", "com", "com"},
		{"www.example.com.", "com", "com"},
		{"a.b.nosuchtld", "", ""},
		{"localhost", "", ""},
		{"192.0.2.1", "", ""},
		{"[2001:db8::1]", "", ""},
		{"", "", ""},
		{".", "", ""},
	} {
		if got := hostdb.Suffix(test.host); got != test.suffix {
			t.Errorf("Suffix(%q) = %q, want %q", test.host, got, test.suffix)
		}
		if got := hostdb.TLD(test.host); got != test.tld {
			t.Errorf("TLD(%q) = %q, want %q", test.host, got, test.tld)
		}
	}
}
