package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/protocol/webtest"
)

func TestFullDisk(t *testing.T) {
	t.Parallel()
	web := func() *webtest.Web { return &webtest.Web{Hosts: 3, PagesPerHost: 100, WordsPerPage: 3000, Calm: true} }
	undisturbed := serve(t, web())
	ok(t, undisturbed.crawl(undisturbed.web.Seeds()...)...)
	want := dump(t, undisturbed.dir)

	t.Run("ulimit", func(t *testing.T) {
		// No file may grow beyond the limit: the disk is full for the large ones.
		s := serve(t, web())
		failed := 0
		for _, blocks := range []string{"0", "1", "20", "100"} { // of 512 bytes, or of 1024
			c := exec.Command("sh", append([]string{"-c", `ulimit -f "$0"; exec "$@"`, blocks, program}, s.crawl(s.web.Seeds()...)...)...)
			if r := finish(t, c); r.code == 0 {
				continue
			} else if r.code != 1 || !strings.Contains(r.err, "file too large") {
				t.Fatalf("ulimit -f %s: exit %d\n%s%s", blocks, r.code, r.out, r.err)
			}
			failed++
		}
		if failed < 3 {
			t.Errorf("the limit was felt %d times", failed)
		}
		ok(t, s.crawl(s.web.Seeds()...)...)
		same(t, "after the limit", dump(t, s.dir), want)
	})
	t.Run("tmpfs", func(t *testing.T) {
		// A file system of its own needs privileges; without them, the limit above
		// has to do.
		w, asked := web(), newStops()
		w.Now = func() time.Time { asked.wait(); return parsed(frozen) }
		s := serve(t, w)
		defer close(asked.over)
		top := t.TempDir()
		if err := exec.Command("mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", top).Run(); err != nil {
			t.Logf("NO FILE SYSTEM CAN BE MOUNTED HERE (%v): that a full disk pauses the command is not tested; the store's tests do it in memory", err)
			return
		}
		t.Cleanup(func() {
			if err := exec.Command("umount", top).Run(); err != nil {
				t.Error(err)
			}
		})
		s.dir = filepath.Join(top, "crawl")
		ballast := filepath.Join(top, "ballast")
		run := func() (c *exec.Cmd, out, errs *output) {
			c, out, errs = exec.Command(program, s.crawl(s.web.Seeds()...)...), new(output), new(output)
			c.Stdout, c.Stderr = out, errs
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			return c, out, errs
		}
		// pauses waits until a command says that it does, or has ended.
		pauses := func(c *exec.Cmd, errs *output) bool {
			t.Helper()
			for began := time.Now(); !strings.Contains(errs.String(), "recrawl: paused: "); time.Sleep(5 * time.Millisecond) {
				if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.Process.Pid)); err == nil && strings.Contains(string(stat), ") Z ") {
					return strings.Contains(errs.String(), "recrawl: paused: ")
				}
				if time.Since(began) > 3*time.Minute {
					t.Fatalf("%q does not pause:\n%s", c.Args[1:], errs)
				}
			}
			return true
		}
		// It waits from the start, and can be interrupted.
		for _, free := range []int{0, 20, 200} { // kB
			fill(t, ballast, top, free)
			c, out, errs := run()
			if !pauses(c, errs) {
				t.Errorf("with %d kB free it does not pause", free)
			}
			asked := time.Now()
			c.Process.Signal(syscall.SIGINT)
			if r := wait(t, c, out, errs); r.code != 1 || !strings.Contains(r.err, "paused") {
				t.Errorf("%d kB free: exit %d\n%s%s", free, r.code, r.out, r.err)
			}
			if took := time.Since(asked); took > 30*time.Second { // two, and what a busy machine adds
				t.Errorf("%d kB free: it took %v to stop", free, took)
			}
		}
		// With room, although the disk is full every now and then, it finishes.
		if err := os.Remove(ballast); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("mount", "-o", "remount,size=200m", top).CombinedOutput(); err != nil {
			t.Fatalf("remount: %v\n%s", err, out)
		}
		// Requests wait while the disk is being filled, so the crawl cannot end before.
		asked.after(20, 120, 220)
		c, out, errs := run()
		ended, gone := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			for pauses := range 3 {
				var goOn chan struct{}
				select {
				case goOn = <-asked.stopped:
				case <-gone:
					return
				}
				stuff(ballast)
				close(goOn)
				until := func(what string) {
					for strings.Count(errs.String(), what) <= pauses {
						select {
						case <-gone:
							return
						case <-time.After(5 * time.Millisecond):
						}
					}
				}
				until("paused")
				if err := os.Remove(ballast); err != nil {
					t.Error(err)
				}
				until("resumed: ")
			}
		}()
		r := wait(t, c, out, errs)
		close(gone)
		<-ended
		if r.code != 0 || strings.Count(r.err, "paused") < 3 {
			t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
		}
		same(t, "after the disk was full", dump(t, s.dir), want)

		// A closed crawl can be read on a full disk; changes wait, or fail if asked to, and
		// say what to do. First let go of the log that the next opening would remove.
		ok(t, "compact", "-d", s.dir)
		stuff(ballast)
		same(t, "on a full disk", dump(t, s.dir), want)
		for _, args := range [][]string{{"updatehostdb"}, {"inject", "http://more.example/"}, {"generate"}, {"compact"}} {
			args = slices.Insert(args, 1, "-d", s.dir)
			stuff(ballast) // the one before has let go of a log
			c, out, errs := exec.Command(program, args...), new(output), new(output)
			c.Stdout, c.Stderr = out, errs
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			paused := pauses(c, errs)
			c.Process.Signal(syscall.SIGINT)
			r := wait(t, c, out, errs)
			if idle := args[0] == "updatehostdb" || args[0] == "compact"; idle && !paused && r.code == 0 {
				continue // it has nothing to write, and a file system may have a block left, which is enough to see that
			}
			said := strings.Contains(r.err, "interrupted") || strings.Contains(r.err, "resumes from here") // what was in memory may find no room at the end
			if r.code != 1 || !strings.Contains(r.err, "; resumes ") || !said {
				t.Errorf("%s on a full disk, interrupted: %+v", args[0], r)
			}
		}
		if r := recrawl(t, "inject", "-d", s.dir, "-min-free", "0", "http://more.example/"); r.code != 1 || !strings.Contains(r.err, "no space left") || !strings.Contains(r.err, "resumes from here") {
			t.Errorf("-min-free 0 on a full disk: %+v", r)
		}
		// What was interrupted or failed may have been done, or not.
		have := slices.DeleteFunc(strings.SplitAfter(dump(t, s.dir), "\n"), func(line string) bool { return strings.Contains(line, "http://more.example/") })
		same(t, "on a disk that was full all the while", strings.Join(have, ""), want)
	})
}

func TestOutputThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	s := serve(t, &webtest.Web{Hosts: 1, PagesPerHost: 3, Calm: true})
	ok(t, s.crawl(s.web.Seeds()...)...)
	for _, args := range [][]string{
		s.crawl(), {"readdb", "-d", s.dir, "-stats"}, {"readdb", "-d", s.dir, "-top", "1"}, {"readdb", "-d", s.dir, "-dump", "-format", "csv"}, {"hosts", "-d", s.dir, "-json"},
		{"index", "-d", s.dir}, {"readlinks", "-d", s.dir}, {"readseg", "-d", s.dir}, {"generate", "-d", s.dir, "-now", "2026-03-05T08:00:00Z"}, {"crawl", "--help"}, {"demo"},
	} {
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		c, errs := exec.Command(program, args...), new(output)
		c.Stdout, c.Stderr = full, errs
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		if r := wait(t, c, new(output), errs); r.code != 1 || !strings.Contains(r.err, "no space left on device") {
			t.Errorf("%q > /dev/full: exit %d, %q", args, r.code, r.err)
		}
		full.Close()
	}
}

// A segment that could not be reported is reported by the next run of the same command, and by
// no other.
func TestSegmentThatCouldNotBeReported(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "crawl")
	one, other := write(t, "one.txt", "http://a.example/one\n"), write(t, "other.txt", "http://a.example/other\n")
	freegen := func(args ...string) []string { return append([]string{"freegen", "-d", dir, "-now", frozen}, args...) }
	unheard := func(stdin string, args ...string) {
		t.Helper()
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer full.Close()
		c := exec.Command(program, args...)
		c.Stdin, c.Stdout = strings.NewReader(stdin), full
		if err := c.Run(); err == nil {
			t.Fatal("it was heard")
		}
	}
	// The same goes for generate, which would find nothing due any more.
	ok(t, "inject", "-d", dir, "-now", frozen, "http://a.example/")
	generate := []string{"generate", "-d", dir, "-now", frozen}
	unheard("", generate...)
	if r := recrawl(t, generate...); r.code != 0 || strings.TrimSpace(r.out) == "" || !strings.Contains(r.err, "was already made") {
		t.Errorf("generate: %+v", r)
	}
	urls := func(name string) string { return ok(t, "readseg", "-d", dir, "-part", "crawl_generate", "-json", name) }
	for _, again := range []string{one, other} {
		unheard("", freegen(one)...)
		r := recrawl(t, freegen(again)...)
		if told := strings.Contains(r.err, "was already made"); r.code != 0 || told != (again == one) {
			t.Errorf("%s after %s: %+v", again, one, r)
		}
		if got := urls(strings.TrimSpace(r.out)); strings.Count(got, "\n") != 1 || !strings.Contains(got, "/"+strings.TrimSuffix(filepath.Base(again), ".txt")+"\"") {
			t.Errorf("%s after %s makes a segment of %s", again, one, got)
		}
	}
	// What came on standard input is gone.
	unheard("http://a.example/one\n", freegen("-")...)
	c := exec.Command(program, freegen("-")...)
	c.Stdin = strings.NewReader("http://a.example/other\n")
	out, err := c.Output()
	if got := urls(strings.TrimSpace(string(out))); err != nil || !strings.Contains(got, "/other\"") {
		t.Errorf("%v: a segment of %s", err, got)
	}
}

// What is no file is written to, not replaced.
func TestOutputToAPipe(t *testing.T) {
	t.Parallel()
	dir := crawlWith(t, []crawldb.Datum{pageOf("http://a.example/", "s", crawldb.Gone, 0)})
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := os.Symlink("/dev/stdout", pipe); err != nil {
		t.Fatal(err)
	}
	want := "{\"url\":\"http://a.example/\",\"deleted\":true}\n1 deletions\n"
	if out := ok(t, "clean", "-d", dir, "-o", pipe); out != want {
		t.Errorf("%q, want %q", out, want)
	}
}

// stops holds some requests up: each sends a channel, and waits until it is closed.
type stops struct {
	mu      sync.Mutex
	asked   int
	next    []int // the counts of requests at which one is held up
	stopped chan chan struct{}
	over    chan struct{} // closed when the listener has ended
}

func newStops() *stops {
	return &stops{stopped: make(chan chan struct{}), over: make(chan struct{})}
}

// after says which requests from now on are held up.
func (s *stops) after(counts ...int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked, s.next = 0, counts
}

// wait is called by each request.
func (s *stops) wait() {
	s.mu.Lock()
	s.asked++
	hold := len(s.next) > 0 && s.asked >= s.next[0]
	if hold {
		s.next = s.next[1:]
	}
	s.mu.Unlock()
	if !hold {
		return
	}
	goOn := make(chan struct{})
	select {
	case s.stopped <- goOn:
		<-goOn
	case <-s.over:
	}
}

// stuff fills the file system of a file to the last byte, while others write to it.
func stuff(name string) {
	f, err := os.Create(name)
	for chunk := make([]byte, 1<<20); err == nil && len(chunk) > 0; {
		if _, err = f.Write(chunk); err != nil {
			chunk, err = chunk[:len(chunk)/2], nil
		}
	}
	f.Close()
}

// fill fills the file system of a directory except for some kB.
func fill(t *testing.T, ballast, dir string, free int) {
	t.Helper()
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil {
		t.Fatal(err)
	}
	have := int64(0)
	if info, err := os.Stat(ballast); err == nil {
		have = info.Size()
	}
	size := have + int64(fs.Bavail)*int64(fs.Bsize) - int64(free)<<10
	if size < 0 {
		size = 0
	}
	if err := os.WriteFile(ballast, make([]byte, size), 0o666); err != nil {
		t.Fatal(err)
	}
}
