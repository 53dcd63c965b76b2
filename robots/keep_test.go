package robots_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/robots"
)

// TestMegabyteOfAHost: whatever a host shows at its ports, little of it is kept,
// and what is forgotten is asked for again.
func TestMegabyteOfAHost(t *testing.T) {
	ctx, s, db := t.Context(), new(site), new(hosts)
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	c := &robots.Cache{Protocol: s, Hosts: db, Now: func() time.Time { return now }, MaxOrigins: 1}
	port := func(i int) string { return fmt.Sprintf("http://h:%d", 8000+i) }
	kept := func() (names []string, size int) {
		for _, r := range db.m["h"].Robots {
			names, size = append(names, r.Origin), size+len(r.Body)
		}
		return names, size
	}
	for i := range 10 {
		body := noX + strings.Repeat("# filling\n", 40_000)
		if i == 8 {
			body = noX
		}
		s.set(port(i)+"/robots.txt", status(200, body))
		now = now.Add(time.Second)
		if _, err := c.Fetch(ctx, port(i)); err != nil {
			t.Fatal(err)
		}
		if _, size := kept(); size > 1<<20 {
			t.Fatalf("%d bytes are kept of one host", size)
		}
	}
	if names, _ := kept(); !slices.Equal(names, []string{port(7), port(8), port(9)}) {
		t.Errorf("kept are %q, want the newest", names)
	}
	for i, want := range []bool{7: true, 8: true, 9: true} {
		if _, ok, err := c.Cached(ctx, port(i)); ok != want || err != nil {
			t.Errorf("port %d is remembered: %v, %v", i, ok, err)
		}
	}
	// One file that is longer than all may be: it alone.
	c.MaxBytes = 2 << 20
	s.set(port(0)+"/robots.txt", status(200, noX+strings.Repeat("# filling\n", 160_000)))
	if r, err := c.Fetch(ctx, port(0)); err != nil || r.Allowed("/x") {
		t.Errorf("%v, %v", r, err)
	}
	if names, size := kept(); !slices.Equal(names, []string{port(0), port(8)}) && !slices.Equal(names, []string{port(0), port(8), port(9)}) || size > 2<<20 {
		t.Errorf("kept are %q of %d bytes", names, size)
	}
}

func TestMaxBytes(t *testing.T) {
	for _, tt := range []struct {
		max  int
		want string
	}{
		{0, "all"}, {-1, "all"}, {1000, "all"}, {robots.MaxBytes, "all"}, {1 << 20, "file"},
	} {
		s, db := new(site), new(hosts)
		c := &robots.Cache{Protocol: s, Hosts: db, MaxBytes: tt.max}
		s.set(file, status(200, strings.Repeat("# filling\n", robots.MaxBytes/10), noX))
		r, err := c.Fetch(t.Context(), origin)
		if err != nil || says(r) != tt.want {
			t.Errorf("MaxBytes %d: it is %q, %v; want %q", tt.max, says(r), err, tt.want)
		}
		if r := robots.Parse(db.m["example.com"].Robots[0].Body, ""); says(r) != "all" {
			t.Errorf("Parse reads beyond its limit: %q", says(r))
		}
		s.answers = nil
		again := &robots.Cache{Hosts: db, MaxBytes: tt.max}
		if r, ok, err := again.Cached(t.Context(), origin); !ok || err != nil || says(r) != tt.want {
			t.Errorf("MaxBytes %d: out of Hosts it is %q, %v", tt.max, says(r), err)
		}
	}
}

// A file is asked for again with the validators of what is kept, and an answer
// that it has not been modified is as good as the file.
func TestValidators(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, s, db := t.Context(), new(site), new(hosts)
		c := &robots.Cache{Protocol: s, Hosts: db}
		fetch := func(etag, modified, want string) {
			t.Helper()
			r, err := c.Fetch(ctx, origin)
			if err != nil || says(r) != want {
				t.Errorf("it is %q, %v; want %q", says(r), err, want)
			}
			if s.last.ETag != etag || s.last.LastModified != modified {
				t.Errorf("asked with validators %q and %q, want %q and %q", s.last.ETag, s.last.LastModified, etag, modified)
			}
			time.Sleep(25 * time.Hour)
		}
		const tag, date = `"1"`, "Thu, 29 Feb 2024 00:00:00 GMT"
		with := func(r protocol.Response) protocol.Response {
			r.ETag, r.LastModified = tag, date
			return r
		}
		s.set(file, with(status(200, noX)))
		fetch("", "", "file")
		s.set(file, status(304))
		fetch(tag, date, "file")
		fetch(tag, date, "file") // without a word of validators in the answer
		if rec := db.m["example.com"].Robots[0]; rec.Status != 304 || !rec.FailingSince.IsZero() || rec.Expires.Sub(rec.Fetched) != 24*time.Hour {
			t.Errorf("after a 304 the record is %+v", rec)
		}
		s.set(file, status(503))
		fetch(tag, date, "file")
		s.set(file, status(304))
		fetch(tag, date, "file")
		if rec := db.m["example.com"].Robots[0]; !rec.FailingSince.IsZero() {
			t.Error("a 304 after a failure does not end the run of failures")
		}
		// Another file, without validators.
		s.set(file, status(200, "User-agent: *\nDisallow: /\n"))
		fetch(tag, date, "none")
		fetch("", "", "none")
		// A 304 that was not asked for says nothing: the copy holds, as of a failure.
		s.set(file, status(304))
		fetch("", "", "none")
		if rec := db.m["example.com"].Robots[0]; rec.FailingSince.IsZero() {
			t.Error("a 304 to a request without validators is good")
		}
		// The validators of a redirect's target are not those of the file.
		s.set(file, redirect(origin+"/other"))
		s.set(origin+"/other", with(status(200, noX)))
		fetch("", "", "file")
		fetch("", "", "file")
		// A file that is cut must come whole again: the limit may be another then.
		long := with(status(200, noX, strings.Repeat("# filling\n", 1<<17)))
		s.set(file, long)
		fetch("", "", "file")
		fetch("", "", "file")
		long.Content.Body, long.Content.Truncated = []byte(noX+"Disallow"), true
		s.set(file, long)
		fetch("", "", "file")
		fetch("", "", "file")
		// No file, no validators.
		s.set(file, with(status(200, noX)))
		fetch("", "", "file")
		s.set(file, status(404))
		fetch(tag, date, "all")
		fetch("", "", "all")
	})
}

// The limit does not tear a line apart in UTF-16 either.
func TestLimitInUTF16(t *testing.T) {
	// Of each of these characters a byte is one that ends lines.
	for _, filling := range []string{"\u010a", "\u0a01", "\u0d0d"} {
		for _, order := range []bool{true, false} {
			var b bytes.Buffer
			write := func(s string) {
				for _, r := range s {
					if hi, lo := byte(r>>8), byte(r); order {
						b.Write([]byte{hi, lo})
					} else {
						b.Write([]byte{lo, hi})
					}
				}
			}
			write("\ufeff")
			write("User-agent: *\nDisallow: /x\nAllow: /" + filling)
			write(strings.Repeat(filling, (robots.MaxBytes-b.Len())/2-20))
			write("\nDisallow: /y" + strings.Repeat(filling, 100) + "\n") // the limit is in this line
			for cut := range 3 {
				r := robots.Parse(b.Bytes()[:b.Len()-cut], "")
				if torn := "/y" + strings.Repeat(filling, 99); r.Allowed("/x") || !r.Allowed("/y") || !r.Allowed(torn) {
					t.Errorf("%q, big endian %v: /x %v, /y %v, /y... %v", filling, order, r.Allowed("/x"), r.Allowed("/y"), r.Allowed(torn))
				}
			}
			s := new(site)
			s.set(file, status(200, b.String()))
			if r, err := (&robots.Cache{Protocol: s, Hosts: new(hosts)}).Fetch(t.Context(), origin); err != nil || says(r) != "file" {
				t.Errorf("%q, big endian %v: the cache says %q, %v", filling, order, says(r), err)
			}
		}
	}
}
