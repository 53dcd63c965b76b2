package httpproto_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/protocol/httpproto"
)

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	at := func(d time.Duration) string { return now.Add(d).Format(http.TimeFormat) }
	for _, c := range []struct {
		after, date string
		want        time.Duration
	}{
		{"", "", 0},
		{"0", "", 0},
		{"120", "", 2 * time.Minute},
		{" 120 ", "", 2 * time.Minute},
		{"1.5", "", time.Second},
		{"86400", "", 24 * time.Hour},
		{"86401", "", 24 * time.Hour},
		{"99999999999999999999999999", "", 24 * time.Hour},
		{"-5", "", 0},
		{"+5", "", 0},
		{"soon", "", 0},
		{"1e9", "", 0},
		{".5", "", 0},
		{at(time.Minute), "", time.Minute},
		{at(-time.Minute), "", 0},
		{"Fri, 31 Dec 9999 23:59:59 GMT", "", 24 * time.Hour},
		// The server's clock is an hour ahead of ours, and it asks for a minute.
		{at(time.Hour + time.Minute), at(time.Hour), time.Minute},
		{at(time.Minute), "nonsense", time.Minute},
	} {
		h := http.Header{"Retry-After": {c.after}, "Date": {c.date}}
		if got := httpproto.RetryAfter(h, now); got != c.want {
			t.Errorf("%q at %q: got %v, want %v", c.after, c.date, got, c.want)
		}
	}
}

func FuzzRetryAfter(f *testing.F) {
	for _, s := range []string{"120", "-1", "Fri, 31 Dec 9999 23:59:59 GMT", "2026-01-01T00:00:00Z", "\x00"} {
		f.Add(s, "Fri, 01 May 2026 12:00:00 GMT")
	}
	f.Fuzz(func(t *testing.T, after, date string) {
		h := http.Header{"Retry-After": {after}, "Date": {date}}
		if got := httpproto.RetryAfter(h, time.Unix(1_800_000_000, 0)); got < 0 || got > 24*time.Hour {
			t.Errorf("%q at %q: %v", after, date, got)
		}
	})
}

func TestDate(t *testing.T) {
	want := time.Date(1994, 11, 6, 8, 49, 37, 0, time.UTC)
	for _, s := range []string{
		"Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
		"Sun, 6 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 09:49:37 +0100", "Sun, 6 Nov 1994 09:49:37 +0100",
		"Sun, 06 Nov 1994 08:49:37", "Sun, 06-Nov-1994 08:49:37 GMT", "Sunday, 06-Nov-1994 08:49:37 GMT", "06 Nov 1994 08:49:37 GMT",
		"Sun Nov 6 08:49:37 UTC 1994", "1994-11-06T08:49:37Z", "1994-11-06T09:49:37+01:00", "1994-11-06 08:49:37", " Sun, 06 Nov 1994 08:49:37 GMT ",
	} {
		if got := httpproto.Date(s); !got.Equal(want) {
			t.Errorf("%q: got %v, want %v", s, got, want)
		}
	}
	for _, s := range []string{"", "0", "-1", "now", "Thu, 01 Jan 1970 00:00:00 GMT", "Mon, 01 Jan 1900 00:00:00 GMT", strings.Repeat("9", 100)} {
		if got := httpproto.Date(s); !got.IsZero() {
			t.Errorf("%q: got %v, want none", s, got)
		}
	}
}
