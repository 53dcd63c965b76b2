package render

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
)

func TestRecordsWithDistantTimesAreWritten(t *testing.T) {
	for _, at := range []time.Time{time.UnixMilli(1 << 62).UTC(), time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC), time.UnixMilli(-1 << 62).UTC()} {
		d := crawldb.Datum{URL: "http://a.test/", FetchTime: at, LastFetch: at, Modified: at, LeasedUntil: at}
		b, err := json.Marshal(NewRecordJSON(&d))
		if err != nil || !strings.Contains(string(b), `"fetchTime":"9999-12-31T23:59:59Z"`) && !strings.Contains(string(b), `"fetchTime":"0001-`) {
			t.Errorf("%v: %s, %v", at, b, err)
		}
	}
}
