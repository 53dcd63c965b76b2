package hostdb

import (
	"bytes"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
)

func ms(n int64) time.Time { return time.UnixMilli(n).UTC() }

var sampleHosts = []Host{
	{},
	{NextFetch: ms(1)},
	{LastFetch: ms(-1), Grants: []time.Time{ms(math.MaxInt32)}},
	{Grants: []time.Time{ms(1), ms(2), ms(2)}, Elapsed: time.Second, Spent: Spent{Day: ms(86_400_000), Requests: 1, Bytes: 1 << 40}},
	{Elapsed: -1, Spent: Spent{Bytes: -1}},
	{CrawlDelay: 3 * time.Second, Backoff: 4},
	{NextFetch: ms(0), Stats: Stats{Fetched: 1, NotModified: 2, Redirected: 3, Gone: 4, Failed: 5, RobotsDenied: 6, Bytes: 1 << 40, Failures: 8}},
	{CrawlDelay: -1, Backoff: -1, Stats: Stats{Bytes: -1}},
	{Counted: ms(0)},
	{Signals: SignalStats{Hits: 1}},
	{Signals: SignalStats{Hits: -1, False: 1 << 40, Misses: 3, Segment: "20260105080000-000"}, CrawlDelay: 1},
	{LastCheck: ms(-1), DNSFailures: 3, Overdue: math.MaxInt64},
	{Pages: Pages{ParseFailed: -1}, ConnectionFailures: 1 << 40},
	{
		NextFetch: ms(7), Pages: Pages{Unfetched: 1, Fetched: 2, Gone: 3, RedirTemp: 4, RedirPerm: 5, NotModified: 6, Duplicate: 7, Orphan: 8, ParseFailed: 9},
		Homepage: "https://a.example/", Score: -0.5, Fields: map[string]float64{"": 0, "min._rs_": 1.5, "Content-Type.text/html": math.Inf(1)}, Counted: ms(8),
	},
}

var sampleRobots = [][]Robots{
	nil,
	{{}},
	{{Origin: "http://a.example", Status: 200, Body: []byte{}, Fetched: ms(5), Expires: ms(6)}},
	{
		{Origin: "http://a.example:8080", Status: 503, FailingSince: ms(7), ETag: `"1"`, LastModified: "yesterday"},
		{Origin: "https://a.example", Status: -1, Body: []byte(strings.Repeat("User-agent: *\n", 1000))},
	},
}

func TestEncodedHostIsReadAsItWas(t *testing.T) {
	for _, want := range sampleHosts {
		for _, files := range sampleRobots {
			want.Robots = files
			h, has, err := DecodeHost("h", AppendHost(nil, &want))
			if err != nil || has != HasDetail(&want) {
				t.Errorf("%+v: side value %t, %v", want, has, err)
				continue
			}
			if has {
				if err = DecodeDetail(&h, AppendDetail(nil, &want)); err != nil {
					t.Errorf("%+v: %v", want, err)
				}
			}
			want.Name = "h"
			if !reflect.DeepEqual(h, want) {
				t.Errorf("read %+v\nwant %+v", h, want)
			}
		}
	}
}

// What was written before hosts had statistics still reads.
func TestEncodingBeforeStatisticsIsRead(t *testing.T) {
	old := []byte("\x01\x01\x10http://a.example\x90\x03\x02hi")
	var h Host
	want := Host{Robots: []Robots{{Origin: "http://a.example", Status: 200, Body: []byte("hi")}}}
	if err := DecodeDetail(&h, old); err != nil || !reflect.DeepEqual(h, want) {
		t.Errorf("read %+v, %v", h, err)
	}
}

// A host whose times alone change takes a few bytes, whatever its robots.txt.
func TestEncodedTurnIsSmall(t *testing.T) {
	h := Host{NextFetch: time.Now(), LastFetch: time.Now(), Robots: sampleRobots[3], Stats: Stats{Fetched: 1000, Bytes: 1 << 30}}
	if n := len(AppendHost(nil, &h)); n > 40 {
		t.Errorf("a host takes %d bytes", n)
	}
}

// What is decoded, encodes to something that decodes to the same.
func FuzzHostEncoding(f *testing.F) {
	for _, h := range sampleHosts {
		f.Add(AppendHost(nil, &h))
	}
	f.Add([]byte{hostVersion, 0xff, 0xff, 0x03})
	f.Fuzz(func(t *testing.T, b []byte) {
		h, has, err := DecodeHost("h", b)
		if err != nil {
			return
		}
		if has {
			h.Robots = make([]Robots, 1)
		}
		again, has2, err := DecodeHost("h", AppendHost(nil, &h))
		h.Robots = nil
		if err != nil || has != has2 || !reflect.DeepEqual(h, again) {
			t.Errorf("%x reads as %+v and then as %+v, %v", b, h, again, err)
		}
	})
}

func FuzzDetailEncoding(f *testing.F) {
	for _, h := range sampleHosts {
		for _, h.Robots = range sampleRobots {
			f.Add(AppendDetail(nil, &h))
		}
	}
	f.Add([]byte{hostVersion, 1, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Add([]byte{detailVersion, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Add([]byte{detailVersion, 0x80, 1, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, b []byte) {
		var h, again Host
		if err := DecodeDetail(&h, b); err != nil {
			return
		}
		enc := AppendDetail(nil, &h)
		if err := DecodeDetail(&again, enc); err != nil || !bytes.Equal(enc, AppendDetail(nil, &again)) || !SameDetail(&h, &again) {
			t.Errorf("%x reads as %+v and then as %+v, %v", b, h, again, err)
		}
	})
}
