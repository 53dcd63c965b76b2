package main_test

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/internal/testlevel"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/stores/pebblestore"
)

var (
	memoryPages  = flag.Int("memory.pages", testlevel.Pick(3_000, 8_000), "pages of the segment of TestUpdateAndInvertWithinACgroup")
	memoryLinks  = flag.Int("memory.links", 40, "links of each")
	memoryBounds = flag.String("memory.bounds", "64M", "values of -memory, tried one after the other, divided by commas")
	memoryGroup  = flag.String("memory.cgroup", "", "the limit of the cgroup in place of that bound, such as 512M")
)

// TestUpdateAndInvertWithinACgroup runs update and invert, each a process of its own,
// in a cgroup that has no more memory than -memory says, and tells what they took at
// most. Where no cgroup can be made, it says so, and what the process took has to do.
// The result is the same whatever the bound. The long form:
//
//	go test -run WithinACgroup -v ./cmd/recrawl -args -memory.pages 1000000 -memory.bounds 256M
//	go test -run WithinACgroup -v ./cmd/recrawl -args -memory.pages 100000 -memory.links 60 -memory.bounds 64M,256M,1024M -memory.cgroup 2G
func TestUpdateAndInvertWithinACgroup(t *testing.T) {
	base := filepath.Join(t.TempDir(), "base")
	fillForMemory(t, base)
	want := ""
	for i, bound := range append(strings.Split(*memoryBounds, ","), "") {
		dir := filepath.Join(t.TempDir(), "crawl")
		if err := os.CopyFS(dir, os.DirFS(base)); err != nil {
			t.Fatal(err)
		}
		if bound == "" && *memoryPages > 10_000 {
			break // what it is without a bound was seen on a small one
		}
		for _, verb := range []string{"update", "invert"} {
			args := []string{verb, "-d", dir, "-now", "2026-01-02T00:00:00Z"}
			limit := int64(0)
			if bound != "" {
				args, limit = append(args, "-memory", bound), bytesOf(t, bound)
				if *memoryGroup != "" {
					limit = bytesOf(t, *memoryGroup)
				}
			}
			runWithin(t, limit, bound, args...)
		}
		if *memoryPages <= 10_000 {
			got := dump(t, dir)
			if i == 0 {
				want = got
			} else if got != want {
				t.Error("the crawl db depends on the memory")
			}
		}
	}
}

func bytesOf(t *testing.T, size string) int64 {
	t.Helper()
	unit := map[byte]int64{'M': 1 << 20, 'G': 1 << 30}[size[len(size)-1]]
	n, err := strconv.ParseInt(size[:len(size)-1], 10, 64)
	if err != nil || unit == 0 {
		t.Fatalf("%q is not such as 256M", size)
	}
	return n * unit
}

// runWithin runs the command in a cgroup with that limit, or in none if it is zero.
func runWithin(t *testing.T, limit int64, bound string, args ...string) {
	t.Helper()
	c := exec.Command(program, args...)
	peak := func() string { return "" }
	if limit > 0 {
		if group, file, err := cgroup(t, limit); err != nil {
			t.Logf("NO CGROUP COULD BE MADE, nothing but the look at what the process took is tested: %v", err)
		} else {
			c = exec.Command("sh", append([]string{"-c", `echo $$ >"$0" && exec "$@"`, filepath.Join(group, "cgroup.procs"), program}, args...)...)
			peak = func() string {
				b, _ := os.ReadFile(filepath.Join(group, file))
				n, _ := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
				return fmt.Sprintf("; the cgroup held %d of %d MiB at most, with cached files", n>>20, limit>>20)
			}
		}
	}
	var out strings.Builder
	c.Stdout, c.Stderr = &out, &out
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	rss := most(c.Process.Pid, func() error { return c.Wait() })
	if !c.ProcessState.Success() {
		t.Fatalf("%v: %v\n%s", c.Args, c.ProcessState, &out)
	}
	if bound == "" {
		bound = "not given"
	}
	t.Logf("-memory %s: %s took %d MiB at most and %.1f s of CPU%s: %s", bound, args[0], rss>>20, (c.ProcessState.UserTime() + c.ProcessState.SystemTime()).Seconds(), peak(), strings.TrimSpace(out.String()))
	// The pages of the program's file are counted here, although they are shared.
	if limit > 0 && rss > limit+32<<20 {
		t.Errorf("%v took %d MiB, and has %d", args, rss>>20, limit>>20)
	}
}

// most returns the most memory that a process has had when wait returns. What getrusage
// tells begins with that of the process that has forked.
func most(pid int, wait func() error) (rss int64) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = wait() // its state tells
	}()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if _, rest, ok := strings.Cut(string(status), "VmHWM:"); ok {
			kb, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
			n, _ := strconv.ParseInt(kb, 10, 64)
			rss = n << 10 // of the shell at first
		}
		select {
		case <-done:
			return rss
		case <-tick.C:
		}
	}
}

// cgroup makes a cgroup, of version 1 or 2, and returns its directory and the name of
// the file that tells what it has held at most.
func cgroup(t *testing.T, limit int64) (dir, peak string, err error) {
	var errs []error
	for _, v := range []struct{ root, limit, peak string }{
		{"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.max_usage_in_bytes"},
		{"/sys/fs/cgroup", "memory.max", "memory.peak"},
	} {
		if _, err := os.Stat(filepath.Join(v.root, "cgroup.procs")); err != nil {
			errs = append(errs, err)
			continue
		}
		dir, err := os.MkdirTemp(v.root, "recrawl-test-")
		if err != nil {
			errs = append(errs, err)
			continue
		}
		remove := func() error {
			var err error
			for range 50 { // the last of its processes may be on its way out
				if err = os.Remove(dir); err == nil || errors.Is(err, os.ErrNotExist) {
					return nil
				}
				time.Sleep(10 * time.Millisecond)
			}
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, v.limit), []byte(strconv.FormatInt(limit, 10)), 0); err != nil {
			errs = append(errs, err, remove())
			continue
		}
		t.Cleanup(func() {
			if err := remove(); err != nil {
				t.Error(err)
			}
		})
		return dir, v.peak, nil
	}
	return "", "", errors.Join(errs...)
}

// fillForMemory makes a crawl db, and a segment with a visit to every page.
func fillForMemory(t *testing.T, dir string) {
	t.Helper()
	ctx := context.Background()
	db, err := pebblestore.Open(dir, pebblestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}()
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	url := func(i int) string {
		return fmt.Sprintf("https://www.site%05d.example/section/%d/page-%09d-of-a-site-with-long-names.html", i/500, i%7, i)
	}
	const block = 1000
	list, visits, parses, data := partOf[crawldb.Datum](t, db), partOf[segment.Visit](t, db), partOf[segment.Parse](t, db), partOf[segment.Data](t, db)
	for from := 0; from < *memoryPages; from += block {
		n := min(block, *memoryPages-from)
		urls := make([]string, n)
		ds, vs := make([]crawldb.Datum, n), make([]segment.Visit, n)
		ps, dd := make([]segment.Parse, n), make([]segment.Data, n)
		for k := range n {
			i := from + k
			urls[k] = url(i)
			ds[k] = crawldb.Datum{URL: urls[k], Status: crawldb.Unfetched, FetchTime: at.Add(-time.Hour), Interval: 30 * 24 * time.Hour, Score: 1}
			vs[k] = segment.Visit{URL: urls[k], Time: at, Outcome: protocol.Outcome{Code: protocol.Success, Status: 200}, ContentType: "text/html", ETag: fmt.Sprintf(`"%x"`, i*7919)}
			ps[k] = segment.Parse{URL: urls[k], Signature: binary.BigEndian.AppendUint64(nil, uint64(i)*0x9e3779b97f4a7c15), Gave: 1}
			dd[k].URL = urls[k]
			for l := range *memoryLinks {
				// Neighbours, pages anywhere, and new ones.
				to := (i*31+l*l*7919+l)%(*memoryPages*5/4) + 1
				if l%2 == 0 {
					to = i + l - 5
				}
				ps[k].Links = append(ps[k].Links, segment.Link{URL: url(max(to, 0)), Score: 1 / float64(*memoryLinks)})
				dd[k].Parsed.Outlinks = append(dd[k].Parsed.Outlinks, page.Outlink{URL: url(max(to, 0)), Anchor: "page " + strconv.Itoa(to)})
			}
		}
		byKey := make([]int, n)
		for k := range byKey {
			byKey[k] = k
		}
		slices.SortFunc(byKey, func(i, j int) int { return crawldb.Compare(urls[i], urls[j]) })
		sorted := make([]string, n)
		for k, i := range byKey {
			sorted[k] = urls[i]
		}
		err := db.Crawl().Update(ctx, crawldb.Batch{URLs: sorted, Next: func(k int, _ *crawldb.Datum) (*crawldb.Datum, error) { return &ds[byKey[k]], nil }})
		for _, err := range []error{err, list.Append(ctx, ds), visits.Append(ctx, vs), parses.Append(ctx, ps), data.Append(ctx, dd)} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, err := range []error{list.Commit(ctx), visits.Commit(ctx), parses.Commit(ctx), data.Commit(ctx)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Compact(ctx); err != nil {
		t.Fatal(err)
	}
}

func partOf[T segment.Record](t *testing.T, db *pebblestore.DB) *segment.Writer[T] {
	t.Helper()
	w, err := segment.NewWriter[T](context.Background(), db.Segments(), "20260101000000-000", 0)
	if err != nil {
		t.Fatal(err)
	}
	return w
}
