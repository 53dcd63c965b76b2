package update_test

import (
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/update"
)

// What is noted of a visit: Content-Type|nutch.protocol.code|_rs_|_pst_.
func noted(m crawldb.Meta) string {
	var all []string
	for _, name := range []string{"Content-Type", "nutch.protocol.code", "_rs_", "_pst_"} {
		v, ok := m.Get(name)
		if !ok {
			v = "-"
		}
		all = append(all, v)
	}
	return strings.Join(all, "|")
}

func TestVisitMeta(t *testing.T) {
	const was = "image/png|200|7|success(1), lastModified=0"
	type outcome = protocol.Outcome
	for _, c := range []struct {
		name        string
		v           segment.Visit
		ours, nutch string // nutch is empty if it is the same
	}{
		{"success", segment.Visit{Outcome: outcome{Code: protocol.Success, Status: 200}, ContentType: "text/html", Elapsed: 1234567 * time.Microsecond, Modified: time.UnixMilli(1e12)},
			"text/html|200|1234|success(1), lastModified=1000000000000", ""},
		{"no type", segment.Visit{Outcome: outcome{Code: protocol.Success, Status: 200}},
			"-|200|0|success(1), lastModified=0", "image/png|200|0|success(1), lastModified=0"},
		{"nothing to read", segment.Visit{Outcome: outcome{Code: protocol.Success, Status: 204}, ContentType: "text/plain"},
			"text/plain|204|0|exception(16), lastModified=0: Http code=204, url=" + page, "image/png|204|0|exception(16), lastModified=0: Http code=204, url=" + page},
		{"not modified", segment.Visit{Outcome: outcome{Code: protocol.NotModified, Status: 304}, Elapsed: time.Millisecond},
			"image/png|304|1|notmodified(21), lastModified=0: " + page, ""},
		{"moved", segment.Visit{Outcome: outcome{Code: protocol.MovedPerm, Status: 301, Location: "http://x.example/"}},
			"-|301|0|moved(12), lastModified=0: http://x.example/", "image/png|301|0|moved(12), lastModified=0: http://x.example/"},
		{"moved for now", segment.Visit{Outcome: outcome{Code: protocol.MovedTemp, Status: 307, Location: "http://x.example/"}},
			"-|307|0|temp_moved(13), lastModified=0: http://x.example/", "image/png|307|0|temp_moved(13), lastModified=0: http://x.example/"},
		{"not found", segment.Visit{Outcome: outcome{Code: protocol.NotFound, Status: 404}},
			"-|404|0|notfound(14), lastModified=0: " + page, "image/png|404|0|notfound(14), lastModified=0: " + page},
		{"gone", segment.Visit{Outcome: outcome{Code: protocol.Gone, Status: 410}},
			"-|410|0|gone(11), lastModified=0: Http: 410 url=" + page, "image/png|410|0|gone(11), lastModified=0: Http: 410 url=" + page},
		{"unauthorized", segment.Visit{Outcome: outcome{Code: protocol.Denied, Status: 401}},
			"-|401|0|access_denied(17), lastModified=0: Authentication required: " + page, "image/png|401|0|access_denied(17), lastModified=0: Authentication required: " + page},
		{"forbidden", segment.Visit{Outcome: outcome{Code: protocol.Denied, Status: 403}},
			"-|403|0|exception(16), lastModified=0: Http code=403, url=" + page, "image/png|403|0|exception(16), lastModified=0: Http code=403, url=" + page},
		{"busy", segment.Visit{Outcome: outcome{Code: protocol.Busy, Status: 503}},
			"-|503|0|exception(16), lastModified=0: Http code=503, url=" + page, "image/png|503|0|exception(16), lastModified=0: Http code=503, url=" + page},
		{"no answer", segment.Visit{Outcome: outcome{Code: protocol.Failed, Reason: "connection refused"}},
			"-|-|-|exception(16), lastModified=0: connection refused", "image/png|200|7|exception(16), lastModified=0: connection refused"},
		{"robots.txt", segment.Visit{Outcome: outcome{Code: protocol.RobotsDenied, Reason: "robots.txt"}},
			"-|-|-|robots_denied(18), lastModified=0", "image/png|200|7|robots_denied(18), lastModified=0"},
		{"skipped", segment.Visit{Outcome: outcome{Code: protocol.Skipped}}, was, ""},
	} {
		for _, nutch := range []bool{false, true} {
			d := known(crawldb.Fetched, 0, "A")
			for _, pair := range [][2]string{{"Content-Type", "image/png"}, {"nutch.protocol.code", "200"}, {"_rs_", "7"}, {"_pst_", "success(1), lastModified=0"}} {
				d.Meta.Set(pair[0], pair[1])
			}
			old, in := listed(d)
			c.v.URL, c.v.Time = page, noon
			in.Visit = &c.v
			want := c.ours
			if nutch && c.nutch != "" {
				want = c.nutch
			}
			got := update.Next(old, in, update.Options{VisitMeta: !nutch, NutchCompat: nutch})
			if noted(got.Meta) != want {
				t.Errorf("%s, NutchCompat %v: %s, want %s", c.name, nutch, noted(got.Meta), want)
			}
			if off := update.Next(old, in, update.Options{}); !nutch && noted(off.Meta) != was {
				t.Errorf("%s: without VisitMeta: %s", c.name, noted(off.Meta))
			}
		}
	}
}

func TestFileHasNoHTTPStatus(t *testing.T) {
	v := segment.Visit{URL: "file:/x", Time: noon, Outcome: protocol.Outcome{Code: protocol.Denied, Reason: "file: permission denied"}}
	d := update.Next(nil, update.Input{URL: "file:/x", Visit: &v}, update.Options{NutchCompat: true})
	if got, want := noted(d.Meta), "-|-|-|access_denied(17), lastModified=0: file: permission denied"; got != want || d.Status != crawldb.Gone {
		t.Errorf("%v %s", d.Status, got)
	}
}
