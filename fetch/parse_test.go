package fetch_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/parse"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/update"
)

// A crawl that never parses knows what has changed if it signs.
func TestSignUnparsed(t *testing.T) {
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
func TestSignUnparsedLeavesParsedPagesAlone(t *testing.T) {
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

func TestSkipTruncated(t *testing.T) {
	resp := body("text/html", "http://x/1")
	resp.Content.Truncated = true
	for skip, want := range map[bool]string{false: "http://x/1=1 rejected 0 cut 0", true: "rejected 0 cut 0"} {
		if got := accepted(t, fetch.Options{Parsing: fetch.Parsing{SkipTruncated: skip}}, false, resp); got != want {
			t.Errorf("skip %v: %s, want %s", skip, got, want)
		}
	}
}

// What no parser takes has a signature, but not of Nutch's parse stage.
func TestSignatureOfContentWithoutParser(t *testing.T) {
	none := parserFunc(func(context.Context, *page.Content) (page.Parsed, error) { return page.Parsed{}, parse.ErrUnsupported })
	for _, c := range []struct{ nutch, apart, signed bool }{
		{false, false, true}, {false, true, true}, {true, false, true}, {true, true, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, &site{answer: func(string) protocol.Response {
				return protocol.Response{Outcome: protocol.Outcome{Code: protocol.Success, Status: 200}, Content: page.Content{Type: "application/pdf", Body: []byte("%PDF-")}}
			}})
			const seg = "s"
			w, err := segment.NewWriter[crawldb.Datum](t.Context(), r.db.Segments(), seg, 0)
			if err := errors.Join(err, w.Append(t.Context(), []crawldb.Datum{{URL: from}}), w.Commit(t.Context())); err != nil {
				t.Fatal(err)
			}
			r.o.NutchCompat, r.o.Parser = c.nutch, nil
			if !c.apart {
				r.o.Parser = none
			}
			r.run(seg)
			if r.o.Parser = none; c.apart {
				if _, err := fetch.Parse(t.Context(), r.db.Segments(), seg, r.o); err != nil {
					t.Fatal(err)
				}
			}
			if p := r.parses(seg)[from]; p.Signature != nil != c.signed || p.Error != "" {
				t.Errorf("%+v: signature %x, error %q", c, p.Signature, p.Error)
			}
		})
	}
}

// A page has its time to be parsed, in the fetch and in the parse stage. What a
// parser found by then is kept; an error fails that page; and one that does not
// look at its context is waited for, and named.
func TestParseTimeout(t *testing.T) {
	const limit = 3 * time.Second
	p := parserFunc(func(ctx context.Context, c *page.Content) (page.Parsed, error) {
		found := page.Parsed{Text: "some", Outlinks: []page.Outlink{{URL: "http://a.example.test/found"}}}
		switch {
		case strings.HasSuffix(c.URL, "/partial"):
			<-ctx.Done()
			found.Truncated = true
			return found, nil
		case strings.HasSuffix(c.URL, "/fails"):
			<-ctx.Done()
			return page.Parsed{}, ctx.Err()
		case strings.HasSuffix(c.URL, "/deaf"):
			time.Sleep(4 * limit)
		}
		return found, nil
	})
	for _, later := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			r := newRig(t, &site{}, "http://a.example.test/partial", "http://b.example.test/fails", "http://c.example.test/deaf", "http://d.example.test/quick")
			r.o.Parser, r.o.Parsing.Timeout, r.o.Politeness.NoRobots = p, limit, true
			r.o.Logger = slog.New(slog.NewTextHandler(&log, nil))
			start := time.Now()
			var rep fetch.Report
			if later {
				o := r.o
				r.o.Parser = nil
				r.run(seg)
				var err error
				if rep, err = fetch.Parse(t.Context(), r.db.Segments(), seg, o); err != nil {
					t.Fatal(err)
				}
			} else {
				rep = r.run(seg)
			}
			want := 4 * limit
			if later {
				want += 2 * limit // one after the other
			}
			if took := time.Since(start).Round(time.Second); took != want {
				t.Errorf("it took %v, want %v", took, want)
			}
			if rep.Parsed != 3 || rep.ParseFailed != 1 || rep.ParseCut != 1 || rep.Links != 3 {
				t.Errorf("%+v", rep)
			}
			all := r.parses(seg)
			if got := all["http://a.example.test/partial"]; len(got.Links) != 1 || got.Signature == nil {
				t.Errorf("what was found in time is lost: %+v", got)
			}
			if got := all["http://b.example.test/fails"]; !strings.Contains(got.Error, "deadline") {
				t.Errorf("%+v", got)
			}
			if n := strings.Count(log.String(), "the parser did not end in time"); n != 1 || !strings.Contains(log.String(), "/deaf") {
				t.Errorf("log: %s", log.String())
			}
		})
	}
}

// Without a word a page has half a minute, and no bound only if that is asked for.
func TestParseTimeoutByDefault(t *testing.T) {
	for limit, want := range map[time.Duration]time.Duration{0: 30 * time.Second, -1: time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, &site{}, "http://a.example.test/")
			r.o.Politeness.NoRobots, r.o.Parsing.Timeout = true, limit
			r.o.Parser = parserFunc(func(ctx context.Context, c *page.Content) (page.Parsed, error) {
				select {
				case <-ctx.Done():
				case <-time.After(time.Hour):
				}
				return page.Parsed{Text: "some"}, nil
			})
			start := time.Now()
			if rep := r.run(seg); rep.Parsed != 1 {
				t.Errorf("%+v", rep)
			}
			if took := time.Since(start).Round(time.Second); took != want {
				t.Errorf("with %v it took %v, want %v", limit, took, want)
			}
		})
	}
}
