package recrawl

import (
	"testing"
	"time"

	"github.com/recrawl/recrawl/protocol"
)

// However long a crawl lasts, its history has a bounded number of points, in the order of time, that add up to all
// visits, and its last point is kept.
func TestHistoryIsThinned(t *testing.T) {
	var points []HistoryPoint
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	const n = 3000
	for i := range n {
		points = thinHistory(append(points, HistoryPoint{Time: start.Add(time.Duration(i) * time.Minute), Visits: map[protocol.Code]int{protocol.Success: 2, protocol.Gone: i % 2}, Bytes: 3}))
		if len(points) > maxHistory {
			t.Fatalf("%d points", len(points))
		}
	}
	success, gone, bytes := 0, 0, int64(0)
	for i, p := range points {
		if i > 0 && !p.Time.After(points[i-1].Time) {
			t.Errorf("%v after %v", p.Time, points[i-1].Time)
		}
		success, gone, bytes = success+p.Visits[protocol.Success], gone+p.Visits[protocol.Gone], bytes+p.Bytes
	}
	if success != 2*n || gone != n/2 || bytes != 3*n || len(points) < maxHistory/4 || !points[len(points)-1].Time.Equal(start.Add((n-1)*time.Minute)) {
		t.Errorf("%d points, %d success, %d gone, %d bytes, last %v", len(points), success, gone, bytes, points[len(points)-1].Time)
	}
}
