package fetch_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/update"
)

// A crawl that never parses knows what has changed if it signs.
func TestSign(t *testing.T) {
	for _, compat := range []bool{false, true} {
		for _, sign := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				version := 1
				s := &site{answer: func(url string) protocol.Response {
					if url == "http://"+host+"/changes" {
						return body("text/html", fmt.Sprint("version ", version))
					}
					return body("text/html", "always the same")
				}}
				r := newRig(t, s)
				r.o.Parser, r.o.Parsing.SignUnparsed, r.o.NutchCompat = nil, sign, compat
				urls := []string{"http://" + host + "/changes", "http://" + host + "/stays"}
				for _, name := range []string{"s1", "s2"} {
					r.listAgain(name, urls...)
					r.run(name)
					if _, err := update.Run(t.Context(), r.db.Crawl(), r.db.Segments(), name, update.Options{NutchCompat: compat}); err != nil {
						t.Fatal(err)
					}
					version++
					time.Sleep(40 * 24 * time.Hour)
				}
				want := map[string]crawldb.Status{urls[0]: crawldb.Fetched, urls[1]: crawldb.Fetched}
				if sign {
					want[urls[1]] = crawldb.NotModified
				}
				for url, status := range want {
					d, err := r.db.Crawl().Get(t.Context(), url)
					if err != nil || d.Status != status || (d.Signature != nil) != sign {
						t.Errorf("sign %t, compat %t: %+v, %v, want %v", sign, compat, d, err, status)
					}
				}
				for url, v := range r.visits("s2") {
					if (v.Signature != nil) != sign {
						t.Errorf("%s: %+v", url, v)
					}
				}
			})
		}
	}
}

// A page that is parsed has the signature of its parse alone.
func TestSignOfWhatIsParsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, &site{}, "http://"+host+"/")
		r.o.Parsing.SignUnparsed = true
		r.run(seg)
		if v := r.visits(seg)["http://"+host+"/"]; v.Signature != nil {
			t.Errorf("%+v", v)
		}
	})
}

// listAgain writes a fetch list of pages as the crawl db has them.
func (r *rig) listAgain(name string, urls ...string) {
	r.t.Helper()
	var data []crawldb.Datum
	for _, u := range urls {
		d, err := r.db.Crawl().Get(r.t.Context(), u)
		if err != nil {
			d = crawldb.Datum{URL: u, Status: crawldb.Unfetched}
		}
		data = append(data, d)
	}
	r.write(name, data)
}
