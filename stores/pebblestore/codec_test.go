package pebblestore

import (
	"bytes"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/linkdb"
)

func ms(n int64) time.Time { return time.UnixMilli(n).UTC() }

var sampleHosts = []hostdb.Host{
	{},
	{NextFetch: ms(1)},
	{LastFetch: ms(-1), Busy: []time.Time{ms(math.MaxInt32)}},
	{Busy: []time.Time{ms(1), ms(2), ms(2)}, Elapsed: time.Second, Spent: hostdb.Spent{Day: ms(86_400_000), Requests: 1, Bytes: 1 << 40}},
	{Elapsed: -1, Spent: hostdb.Spent{Bytes: -1}},
	{CrawlDelay: 3 * time.Second, Backoff: 4},
	{NextFetch: ms(0), Stats: hostdb.Stats{Fetched: 1, NotModified: 2, Redirected: 3, Gone: 4, Failed: 5, RobotsDenied: 6, Bytes: 1 << 40, Failures: 8}},
	{CrawlDelay: -1, Backoff: -1, Stats: hostdb.Stats{Bytes: -1}},
	{Counted: ms(0)},
	{Lastmod: hostdb.Lastmod{Hits: 1}},
	{Lastmod: hostdb.Lastmod{Hits: -1, False: 1 << 40, Misses: 3, Segment: "20260105080000-000"}, CrawlDelay: 1},
	{LastCheck: ms(-1), DNSFailures: 3, Overdue: math.MaxInt64},
	{Pages: hostdb.Pages{ParseFailed: -1}, ConnectionFailures: 1 << 40},
	{
		NextFetch: ms(7), Pages: hostdb.Pages{Unfetched: 1, Fetched: 2, Gone: 3, RedirTemp: 4, RedirPerm: 5, NotModified: 6, Duplicate: 7, Orphan: 8, ParseFailed: 9},
		Homepage: "https://a.example/", Score: -0.5, Fields: map[string]float64{"": 0, "min._rs_": 1.5, "Content-Type.text/html": math.Inf(1)}, Counted: ms(8),
	},
}

var sampleRobots = [][]hostdb.Robots{
	nil,
	{{}},
	{{Origin: "http://a.example", Status: 200, Body: []byte{}, Fetched: ms(5), Expires: ms(6)}},
	{
		{Origin: "http://a.example:8080", Status: 503, FailingSince: ms(7), ETag: `"1"`, LastModified: "yesterday"},
		{Origin: "https://a.example", Status: -1, Body: []byte(strings.Repeat("User-agent: *\n", 1000))},
	},
}

func TestHostCodec(t *testing.T) {
	for _, want := range sampleHosts {
		for _, files := range sampleRobots {
			want.Robots = files
			h, has, err := decodeHost("h", appendHost(nil, &want))
			if err != nil || has != hasSideValue(&want) {
				t.Errorf("%+v: side value %t, %v", want, has, err)
				continue
			}
			if has {
				if err = decodeSide(&h, appendSide(nil, &want)); err != nil {
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
func TestOldHost(t *testing.T) {
	old := []byte("\x01\x01\x10http://a.example\x90\x03\x02hi")
	var h hostdb.Host
	want := hostdb.Host{Robots: []hostdb.Robots{{Origin: "http://a.example", Status: 200, Body: []byte("hi")}}}
	if err := decodeSide(&h, old); err != nil || !reflect.DeepEqual(h, want) {
		t.Errorf("read %+v, %v", h, err)
	}
}

// A host of which only times change takes a few bytes, whatever its robots.txt.
func TestTurnIsSmall(t *testing.T) {
	h := hostdb.Host{NextFetch: time.Now(), LastFetch: time.Now(), Robots: sampleRobots[3], Stats: hostdb.Stats{Fetched: 1000, Bytes: 1 << 30}}
	if n := len(appendHost(nil, &h)); n > 40 {
		t.Errorf("a host takes %d bytes", n)
	}
}

func TestInlinkCodec(t *testing.T) {
	long := strings.Repeat("x", 3000)
	for _, want := range [][]linkdb.Inlink{
		nil,
		{{}},
		{{From: "http://a.example/"}},
		{{From: "http://a.example/1", Anchor: "home"}, {From: "http://a.example/2", Anchor: "home"}, {From: "http://a.example/2", Anchor: "homes"}, {From: "!", Anchor: long}, {From: long}},
	} {
		b, err := appendInlinks(nil, want)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := decodeInlinks(b); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("read %v, %v\nwant %v", got, err, want)
		}
	}
}

func TestInlinksAreBounded(t *testing.T) {
	links := []linkdb.Inlink{{From: strings.Repeat("x", 1<<20)}}
	b, err := appendInlinks(nil, links)
	if err != nil {
		t.Fatal(err)
	}
	// Each of these five bytes stands for the whole of the first link.
	for range maxInlinks >> 20 {
		b = append(b, 0x80, 0x80, 0x40, 0, 0, 0)
	}
	if _, err := decodeInlinks(b); err == nil {
		t.Error("a value that unpacks to more than the bound was read")
	}
	for range 257 {
		links = append(links, links[0])
	}
	if _, err := appendInlinks(nil, links); err == nil {
		t.Error("inlinks above the bound were encoded")
	}
}

// What is decoded, encodes to something that decodes to the same.
func FuzzHostCodec(f *testing.F) {
	for _, h := range sampleHosts {
		f.Add(appendHost(nil, &h))
	}
	f.Add([]byte{hostVersion, 0xff, 0xff, 0x03})
	f.Fuzz(func(t *testing.T, b []byte) {
		h, has, err := decodeHost("h", b)
		if err != nil {
			return
		}
		if has {
			h.Robots = make([]hostdb.Robots, 1)
		}
		again, has2, err := decodeHost("h", appendHost(nil, &h))
		h.Robots = nil
		if err != nil || has != has2 || !reflect.DeepEqual(h, again) {
			t.Errorf("%x reads as %+v and then as %+v, %v", b, h, again, err)
		}
	})
}

func FuzzSideCodec(f *testing.F) {
	for _, h := range sampleHosts {
		for _, h.Robots = range sampleRobots {
			f.Add(appendSide(nil, &h))
		}
	}
	f.Add([]byte{hostVersion, 1, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Add([]byte{sideVersion, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Add([]byte{sideVersion, 0x80, 1, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, b []byte) {
		var h, again hostdb.Host
		if err := decodeSide(&h, b); err != nil {
			return
		}
		enc := appendSide(nil, &h)
		if err := decodeSide(&again, enc); err != nil || !bytes.Equal(enc, appendSide(nil, &again)) || !sameSide(&h, &again) {
			t.Errorf("%x reads as %+v and then as %+v, %v", b, h, again, err)
		}
	})
}

func FuzzInlinkCodec(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{linkVersion, 0, 1, 'a', 0, 0, 1, 0, 0, 1, 'b'})
	f.Add([]byte{linkVersion, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		links, err := decodeInlinks(b)
		if err != nil {
			return
		}
		enc, err := appendInlinks(nil, links)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := decodeInlinks(enc); err != nil || !reflect.DeepEqual(links, again) {
			t.Errorf("%x reads as %+v and then as %+v, %v", b, links, again, err)
		}
		if len(enc) > len(b) && !bytes.Equal(enc, b) {
			t.Errorf("%d bytes became %d", len(b), len(enc))
		}
	})
}
