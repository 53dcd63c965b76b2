package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strconv"
	"time"

	"github.com/recrawl/recrawl/bench/cputime"
)

// job is the task of a worker process.
type job struct {
	site
	Contender string
	Max       int // pages; 0 for all
	Workers   int
	Idle      int
	Dir       string // empty, for whatever the contender keeps
	Profile   string // where to write profiles, without a suffix; empty for none
}

// result is what a worker has measured.
type result struct {
	// Pages counts the answers 200, Bytes their bodies.
	Pages int
	Bytes int64
	// Visits counts every page that was dealt with, redirects, failures and
	// refusals of robots.txt included, if the contender tells.
	Visits int

	User, Sys, Wall time.Duration
	Mallocs         uint64
	AllocBytes      uint64
	PeakRSS         int64 // bytes; 0 if the system does not tell

	Disk disk
}

// disk is what a crawl leaves behind.
type disk struct {
	URLs int
	// DB is the database as it was closed, without the logs that its engine keeps
	// for reuse, which are Logs; Compacted after a compaction; CrawlDB what the
	// crawl db alone takes, compacted.
	DB, Logs, Compacted, CrawlDB int64
	Segments                     int64
}

func (r *result) cpu() time.Duration { return r.User + r.Sys }

var errNoText = errors.New("no page had a text: nothing was measured")

// crawler is a contender. What it costs is counted from the start of the meter to
// its stop.
type crawler func(ctx context.Context, j job, r *result, m *meter) error

func contender(name string) crawler {
	switch name {
	case "recrawl-pebble":
		return recrawlPebble
	case "recrawl-mem":
		return recrawlMem
	case "recrawl-fetch":
		return recrawlFetch
	case "bare":
		return bareLoop
	case "colly":
		return collyCrawl
	}
	return nil
}

func contenderNames() []string {
	return []string{"recrawl-pebble", "recrawl-mem", "recrawl-fetch", "bare", "colly"}
}

// work is the worker child.
func work(ctx context.Context, in io.Reader, out io.Writer) error {
	var j job
	if err := json.NewDecoder(in).Decode(&j); err != nil {
		return err
	}
	crawl := contender(j.Contender)
	if crawl == nil {
		return fmt.Errorf("no contender %q", j.Contender)
	}
	m := meter{profile: j.Profile, r: new(result)}
	if err := crawl(ctx, j, m.r, &m); err != nil {
		return err
	}
	if !m.over {
		return errors.New("the contender never said that it was over")
	}
	return json.NewEncoder(out).Encode(m.r)
}

// meter measures what is done between start and stop.
type meter struct {
	profile string
	r       *result

	profiled  func() error
	before    runtime.MemStats
	user, sys time.Duration
	began     time.Time
	over      bool
}

func (m *meter) start() (err error) {
	// What was done to prepare is collected before, not while it counts.
	runtime.GC()
	if m.profiled, err = profile(m.profile); err != nil {
		return err
	}
	runtime.ReadMemStats(&m.before)
	m.user, m.sys, err = cputime.Used()
	m.began = time.Now()
	return err
}

func (m *meter) stop() error {
	m.over = true
	r := m.r
	r.Wall = time.Since(m.began)
	u, s, err := cputime.Used()
	r.User, r.Sys = u-m.user, s-m.sys
	var after runtime.MemStats
	runtime.ReadMemStats(&after)
	r.Mallocs, r.AllocBytes = after.Mallocs-m.before.Mallocs, after.TotalAlloc-m.before.TotalAlloc
	r.PeakRSS = peakRSS()
	return errors.Join(err, m.profiled())
}

// profile begins to write path.cpu and path.allocs; what it returns ends that. No
// path is no profile.
func profile(path string) (end func() error, err error) {
	if path == "" {
		return func() error { return nil }, nil
	}
	f, err := os.Create(path + ".cpu")
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		if err := f.Close(); err != nil {
			return err
		}
		f, err := os.Create(path + ".allocs")
		if err != nil {
			return err
		}
		return errors.Join(pprof.Lookup("allocs").WriteTo(f, 0), f.Close())
	}, nil
}

// peakRSS reads VmHWM of Linux. Getrusage would count what the parent had.
func peakRSS() int64 {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, b, _ = bytes.Cut(b, []byte("\nVmHWM:"))
	b, _, _ = bytes.Cut(b, []byte(" kB"))
	n, _ := strconv.ParseInt(string(bytes.TrimSpace(b)), 10, 64)
	return n << 10
}

// sizeOf adds up the files below a directory but for those below skip, logs apart.
func sizeOf(dir, skip string) (n, logs int64, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if path == skip {
				return fs.SkipDir
			}
			return nil
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) { // the store removes what it no longer needs
			return nil
		}
		if err != nil {
			return err
		}
		if filepath.Ext(path) == ".log" {
			logs += info.Size()
		} else {
			n += info.Size()
		}
		return nil
	})
	return n, logs, err
}
