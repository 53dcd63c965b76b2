package crawldbtest

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/recrawl/recrawl/crawldb"
)

// hostileURLs returns distinct strings, in key order, that are easily confused or
// hard to store.
func hostileURLs() []string {
	urls := []string{
		"", " ", "!", "!!", "\x00", "\x00\x00", "\x01", "\xff", "\xff\xff", "\xff\xff\xff",
		"http://example.com", "http://example.com/", "https://example.com/", "http://example.com./",
		"http://example.com:80/", "http://example.com:8/", "http://example.com:08/",
		"http://www.example.com/", "http://example.com.au/", "http://example.comm/", "http://com/", "http://com,example/",
		"http://example.com/a", "http://example.com/a/", "http://example.com/a/b", "http://example.com/a?b", "http://example.com/a#b",
		"http://example.com/a%2Fb", "http://example.com/A", "http://example.com/a\x00", "http://example.com/a\x00\x00",
		"http://example.com/a\x00b", "http://example.com/a\xff", "http://example.com/a\xff\xff", "http://example.com/\xff\xfe\xc0\x80",
		"http://example.com/\xed\xa0\x80", "http://example.com/é", "http://example.com/e\u0301", "http://example.com/\ufffd", "http://example.com/\u2028",
		"http://example.com/'; DROP TABLE crawldb; --", `http://example.com/"\`, "http://example.com/%", "http://example.com/%s%d%!", "http://example.com/a b\tc\r\nd",
		"http://example.com/?", "http://example.com?", "http://example.com#", "http://example.com)", "http://example.com)http:/",
		"com,example)http:/", "com,example,www)http:/", ")", ",", "*", "http:", "http:/", "http://", "http:///", "http://:80/", "://example.com/",
		"HTTP://EXAMPLE.COM/", "http://EXAMPLE.com/", "http://user:secret@example.com/", "http://user@example.com/",
		"http://192.0.2.1/", "http://1.2.0.192/", "http://[2001:db8::1]/", "http://[2001:db8::1]:8080/", "http://[2001:db8::1", "http://bücher.example/", "http://xn--bcher-kva.example/",
		"http://a..b/", "http://.a/", "http://./", "ftp://example.com/", "file:///etc/passwd", "mailto:a@example.com", "data:text/plain,a",
		"http://example.com/" + strings.Repeat("a", 20_000), "http://example.com/" + strings.Repeat("a", 19_999) + "b",
		"http://" + strings.Repeat("a.", 100) + "example.com/",
	}
	slices.SortFunc(urls, crawldb.Compare)
	return slices.Compact(urls)
}

// samples returns records, in key order, in which each field has its extreme values.
func samples() []crawldb.Datum {
	hostile := "\x00 \xff\xfe\xc0\x80 \xed\xa0\x80 é e\u0301 \ufffd \u2028 '\"\\\r\n\t%s <&>"
	long := strings.Repeat(hostile, 3000)
	at := time.Date(2024, 2, 29, 23, 59, 59, 987_000_000, time.UTC)
	full := crawldb.Datum{
		Status: crawldb.Fetched, FetchTime: at, LastFetch: at.Add(-time.Hour), Interval: 30 * 24 * time.Hour, Modified: at.Add(-2 * time.Hour),
		Retries: 3, Score: 1.5, Priority: 2.5, Signature: []byte("0123456789abcdef"), ETag: `W/"abc"`, LastModified: "Thu, 29 Feb 2024 23:59:59 GMT",
		LeasedUntil: at.Add(time.Hour), LeasedBy: "20240229235959-000", Meta: crawldb.MetaOf("opic.cash", "0.5", "page.title", "A page"),
	}
	var all []crawldb.Datum
	add := func(change func(d *crawldb.Datum)) {
		d := full
		change(&d)
		all = append(all, d)
		// And each field alone, in case it is only kept together with others.
		d = crawldb.Datum{Status: crawldb.Unfetched}
		change(&d)
		all = append(all, d)
	}
	add(func(*crawldb.Datum) {})
	for _, s := range crawldb.Statuses() {
		add(func(d *crawldb.Datum) { d.Status = s })
	}
	times := []time.Time{
		{}, time.UnixMilli(0), time.UnixMilli(1), time.UnixMilli(-1), at, at.Add(123_456), at.In(time.FixedZone("east", 5*3600+1800)),
		time.Date(1, 1, 1, 0, 0, 1, 0, time.UTC), time.Date(9999, 12, 31, 23, 59, 59, 999_000_000, time.UTC), time.Date(1969, 7, 20, 20, 17, 40, 1_500_000, time.UTC),
	}
	for _, v := range times {
		add(func(d *crawldb.Datum) { d.FetchTime = v })
		add(func(d *crawldb.Datum) { d.LastFetch = v })
		add(func(d *crawldb.Datum) { d.Modified = v })
		add(func(d *crawldb.Datum) { d.LeasedUntil = v })
	}
	for _, v := range []time.Duration{0, time.Second, 59 * time.Second, 365 * 24 * time.Hour, math.MaxInt32 * time.Second} {
		add(func(d *crawldb.Datum) { d.Interval = v })
	}
	for _, v := range []int{0, 1, 255, 256, math.MaxInt32} {
		add(func(d *crawldb.Datum) { d.Retries = v })
	}
	inf := float32(math.Inf(1))
	for _, v := range []float32{0, 1, -1, 0.1, 1e-10, math.MaxFloat32, -math.MaxFloat32, math.SmallestNonzeroFloat32, -math.SmallestNonzeroFloat32, inf, -inf} {
		add(func(d *crawldb.Datum) { d.Score = v })
		add(func(d *crawldb.Datum) { d.Priority = v })
		add(func(d *crawldb.Datum) { d.Score, d.Priority = v, v })
	}
	for _, v := range []string{"", "\x00", "\x00\x00", "\xff", "a\x00", hostile, long, "null", "0", " a "} {
		add(func(d *crawldb.Datum) { d.ETag = v })
		add(func(d *crawldb.Datum) { d.LastModified = v })
		add(func(d *crawldb.Datum) { d.LeasedBy = v })
		add(func(d *crawldb.Datum) { d.Signature = []byte(v) })
		add(func(d *crawldb.Datum) { d.Meta = crawldb.MetaOf("key", v) })
		add(func(d *crawldb.Datum) { d.Meta = crawldb.MetaOf(v, "value", "opic.cash", v) })
	}
	add(func(d *crawldb.Datum) { d.Signature = nil })
	add(func(d *crawldb.Datum) { d.Meta = crawldb.Meta{} })
	add(func(d *crawldb.Datum) {
		for i := range 100 {
			d.Meta.Set(fmt.Sprintf("policy%d.state", i), strings.Repeat("v", i))
		}
	})
	for i := range all {
		all[i].URL = fmt.Sprintf("http://example.com/sample/%04d", i)
	}
	return all
}

// same returns an error that says how the record that was read differs from the one
// that was written.
func same(got, want crawldb.Datum) error {
	if got.URL != want.URL {
		return fmt.Errorf("URL is %s, want %s", short(got.URL), short(want.URL))
	}
	differs := func(field string, is, should any) error {
		return fmt.Errorf("%s: %s is %s, want %s", short(want.URL), field, short(fmt.Sprint(is)), short(fmt.Sprint(should)))
	}
	switch {
	case got.Status != want.Status:
		return differs("Status", got.Status, want.Status)
	case got.Interval != want.Interval:
		return differs("Interval", got.Interval, want.Interval)
	case got.Retries != want.Retries:
		return differs("Retries", got.Retries, want.Retries)
	case got.Score != want.Score && !(nan(got.Score) && nan(want.Score)):
		return differs("Score", got.Score, want.Score)
	case got.Priority != want.Priority && !(nan(got.Priority) && nan(want.Priority)):
		return differs("Priority", got.Priority, want.Priority)
	case !bytes.Equal(got.Signature, want.Signature), want.Signature == nil && got.Signature != nil:
		return differs("Signature", fmt.Sprintf("%#v", got.Signature), fmt.Sprintf("%#v", want.Signature))
	case got.ETag != want.ETag:
		return differs("ETag", got.ETag, want.ETag)
	case got.LastModified != want.LastModified:
		return differs("LastModified", got.LastModified, want.LastModified)
	case got.LeasedBy != want.LeasedBy:
		return differs("LeasedBy", got.LeasedBy, want.LeasedBy)
	case got.Meta != want.Meta:
		return differs("Meta", pairs(got.Meta), pairs(want.Meta))
	}
	return errors.Join(
		sameTime(want.URL, "FetchTime", got.FetchTime, want.FetchTime),
		sameTime(want.URL, "LastFetch", got.LastFetch, want.LastFetch),
		sameTime(want.URL, "Modified", got.Modified, want.Modified),
		sameTime(want.URL, "LeasedUntil", got.LeasedUntil, want.LeasedUntil))
}

func nan(f float32) bool { return f != f }

// sameTime demands UTC, and the same millisecond, however it is rounded.
func sameTime(url, field string, got, want time.Time) error {
	diff := got.Sub(want).Abs()
	if got.IsZero() != want.IsZero() || diff >= time.Millisecond || diff != 0 && want.Nanosecond()%1e6 == 0 || got.Nanosecond()%1e6 != 0 {
		return fmt.Errorf("%s: %s is %v, want %v to the millisecond", short(url), field, got, want)
	}
	if got.Location() != time.UTC {
		return fmt.Errorf("%s: %s is in %v, want UTC", short(url), field, got.Location())
	}
	return nil
}

func pairs(m crawldb.Meta) []string {
	var all []string
	for n, v := range m.All() {
		all = append(all, fmt.Sprintf("%q=%q", n, v))
	}
	return all
}

// short quotes a string, and cuts it if it is long.
func short(s string) string {
	if len(s) <= 120 {
		return fmt.Sprintf("%q", s)
	}
	return fmt.Sprintf("%q… (%d bytes)", s[:100], len(s))
}
