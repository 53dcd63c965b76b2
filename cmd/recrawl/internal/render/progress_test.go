package render

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/protocol"
)

func TestProgressLine(t *testing.T) {
	s := recrawl.Status{Stage: "fetch", Rounds: 2, Bytes: 2_500_000, Visits: map[protocol.Code]int{protocol.Success: 90, protocol.NotModified: 7, protocol.Failed: 3},
		Fetch: fetch.Progress{Listed: 150, Done: 100, Hosts: 4}}
	want := "round 3 fetch    100 pages, 12/s, 2.5 MB, 3 errors, 4 hosts active, 50 waiting"
	if got := progressLine(&s, 12.3); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestMeterMeasuresTheLastTenSeconds(t *testing.T) {
	var m Meter
	now := time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)
	if r := m.PerSecond(now, 500); r != 0 {
		t.Errorf("the first reading gives %v", r)
	}
	n := 500
	for range 60 { // a minute at 100 a second
		now, n = now.Add(time.Second), n+100
		if r := m.PerSecond(now, n); r != 100 {
			t.Fatalf("%v a second, want 100", r)
		}
	}
	for range 11 { // then it stands still
		now = now.Add(time.Second)
		if r := m.PerSecond(now, n); r > 100 {
			t.Fatalf("%v a second", r)
		}
	}
	if r := m.PerSecond(now, n); r != 0 {
		t.Errorf("%v a second after eleven seconds of nothing", r)
	}
	if len(m.at) > 14 {
		t.Errorf("%d readings are kept", len(m.at))
	}
}

func TestEntryFitsATerminal(t *testing.T) {
	var b strings.Builder
	entry(&b, "-a N", 6, strings.Repeat("word ", 30))
	entry(&b, "-much-too-long FILE", 6, "what it means")
	for line := range strings.Lines(b.String()) {
		if len(line) > 81 || !strings.HasPrefix(line, "  ") {
			t.Errorf("%q", line)
		}
	}
	if !strings.HasSuffix(b.String(), "  -much-too-long FILE\n         what it means\n") {
		t.Errorf("%q", b.String())
	}
	if word, plain := SplitUsage("the `NAME` of it"); word != "NAME" || plain != "the NAME of it" {
		t.Errorf("%q, %q", word, plain)
	}
}

func TestLongWorkIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b strings.Builder
		ShowWork(&b, "simulating")()
		stop := ShowWork(&b, "simulating")
		time.Sleep(65 * time.Second)
		stop()
		if want := "recrawl: simulating, for 3s so far\nrecrawl: simulating, for 33s so far\nrecrawl: simulating, for 1m3s so far\n"; b.String() != want {
			t.Errorf("%q, want %q", b.String(), want)
		}
	})
}
