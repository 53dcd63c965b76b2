package pebblestore

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/internal/testlevel"
)

// childEnv makes this program a child that runs the named job on a directory.
const childEnv = "PEBBLESTORE_TEST_CHILD"

func TestMain(m *testing.M) {
	if job, dir, ok := strings.Cut(os.Getenv(childEnv), ":"); ok {
		if err := jobs[job](dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// jobs are what children do until they are killed. They print a line for each
// thing they have done.
var jobs = map[string]func(dir string) error{
	"hold": func(dir string) error {
		db, err := Open(dir, Options{})
		if err != nil {
			return err
		}
		fmt.Println("open")
		_, _ = io.Copy(io.Discard, os.Stdin)
		return db.Close()
	},
	"update": func(dir string) error {
		ctx := context.Background()
		db, err := Open(dir, small())
		if err != nil {
			return err
		}
		round := 0
		cursor, err := db.Crawl().Mark(ctx, "trial")
		if err != nil {
			return err
		}
		fmt.Sscan(cursor, &round)
		for {
			round++
			if err := db.Crawl().Update(ctx, trialBatch(round)); err != nil {
				return err
			}
			fmt.Println("updated", round)
			for _, err := range db.crawl.Due(ctx, crawldb.DueQuery{Now: dueEpoch.Add(time.Duration(round) * 5 * time.Hour), Limit: 1}) {
				if err != nil {
					return err
				}
			}
			if round%3 == 0 {
				if err := db.Crawl().Sync(ctx); err != nil {
					return err
				}
				fmt.Println("synced", round)
			}
		}
	},
	"race": func(dir string) error {
		began := time.Now()
		db, err := Open(dir, Options{})
		took := time.Since(began)
		switch {
		case err == nil:
			defer db.Close()
			fmt.Println("open", took)
		case errors.Is(err, ErrLocked):
			fmt.Println("locked", took, err)
		default:
			return err
		}
		_, _ = io.Copy(io.Discard, os.Stdin)
		return nil
	},
	"ask": func(dir string) error {
		ctx := context.Background()
		db, err := Open(dir, small())
		if err != nil {
			return err
		}
		now := time.Now()
		for name, at := range map[string]time.Time{"now.example": now, "past.example": now.Add(-time.Hour)} {
			err := db.Hosts().Update(ctx, name, func(*hostdb.Host) (*hostdb.Host, error) {
				return &hostdb.Host{LastFetch: at, NextFetch: at.Add(5 * time.Second)}, nil
			})
			if err != nil {
				return err
			}
		}
		// No Sync: it becomes durable anyway, after a while.
		db.hosts.late.Wait()
		fmt.Println("written")
		_, _ = io.Copy(io.Discard, os.Stdin)
		return nil
	},
}

type child struct {
	*exec.Cmd
	lines *bufio.Scanner
}

func start(t *testing.T, job, dir string) child {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), childEnv+"="+job+":"+dir)
	c.Stderr = os.Stderr
	if _, err := c.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	return child{c, bufio.NewScanner(out)}
}

// line waits for the child to say something.
func (c child) line(t *testing.T) string {
	t.Helper()
	if !c.lines.Scan() {
		t.Fatalf("the child ended: %v", c.Wait())
	}
	return c.lines.Text()
}

// kill ends the child as kill -9 does, and returns what it still said.
func (c child) kill(t *testing.T) (said []string) {
	t.Helper()
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for c.lines.Scan() {
		said = append(said, c.lines.Text())
	}
	_ = c.Wait()
	return said
}

func TestLock(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	refused := func(dir string) {
		t.Helper()
		var err error
		least := time.Hour // a busy machine makes one try slow, not each
		for range 3 {
			start := time.Now()
			if _, err = Open(dir, Options{}); err == nil {
				t.Fatal("a directory in use was opened")
			}
			least = min(least, time.Since(start))
		}
		if least > 100*time.Millisecond {
			t.Errorf("it took %v to see the lock", least)
		}
		if !errors.Is(err, ErrLocked) || !strings.Contains(fmt.Sprint(err), dir) {
			t.Errorf("Open of a directory in use: %v", err)
		}
	}
	c := start(t, "hold", dir)
	c.line(t)
	refused(dir)
	if _, err := Open(dir, Options{}); !strings.Contains(fmt.Sprint(err), fmt.Sprint(c.Process.Pid)) {
		t.Errorf("%v does not name process %d", err, c.Process.Pid)
	}
	c.kill(t)

	db, err := Open(dir, Options{})
	if err != nil {
		t.Fatalf("after the owner was killed: %v", err)
	}
	// The same process is refused as well, by whatever name.
	refused(dir)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	refused(link)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if db, err = Open(link, Options{}); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	// Readers share it, and say so: the number in the file is not theirs.
	for range 2 {
		db, err := Open(dir, Options{ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
	}
	refused(dir)
	if _, err := Open(dir, Options{}); err == nil || strings.Contains(err.Error(), "by process") {
		t.Errorf("Open of a directory that others read: %v", err)
	}
}

var races = flag.Int("races", 10, "let two processes open a store at once `N` times")

// TestRace has two processes open a store at the same moment, sometimes just after its owner
// was killed: one of them gets it, and the other learns at once which process has it.
func TestRace(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	slowest := time.Duration(0)
	for i := range *races {
		var two [2]child
		for n := range two {
			two[n] = start(t, "race", dir)
		}
		var said [2]string
		for n := range two {
			said[n] = two[n].line(t)
		}
		owner := 0
		if !strings.HasPrefix(said[0], "open ") {
			owner = 1
		}
		if !strings.HasPrefix(said[owner], "open ") || !strings.HasPrefix(said[1-owner], "locked ") {
			t.Fatalf("race %d: %q", i, said)
		}
		if pid := fmt.Sprintf("by process %d", two[owner].Process.Pid); !strings.Contains(said[1-owner], pid) {
			t.Errorf("race %d: %q does not say %q", i, said[1-owner], pid)
		}
		for _, s := range said {
			_, took, _ := strings.Cut(s, " ")
			d, err := time.ParseDuration(strings.Fields(took)[0])
			if err != nil {
				t.Fatal(err)
			}
			if slowest = max(slowest, d); d > 30*time.Second { // whatever the load
				t.Errorf("race %d: %q took %v", i, s, d)
			}
		}
		for _, c := range two {
			c.kill(t)
		}
	}
	t.Logf("%d races; the slowest answer took %v", *races, slowest)
}

// TestKill kills a process in the middle of updates, again and again. Mark and records agree,
// and synced updates are kept.
func TestKill(t *testing.T) {
	testlevel.SkipInRace(t)
	dir := filepath.Join(t.TempDir(), "store")
	synced := 0
	for i := range 8 {
		c := start(t, "update", dir)
		var said []string
		for range 1 + i*5 {
			said = append(said, c.line(t))
		}
		for _, line := range append(said, c.kill(t)...) {
			if n, ok := strings.CutPrefix(line, "synced "); ok {
				synced, _ = strconv.Atoi(n)
			}
		}
		tr := trial{synced: synced, round: 1 << 30}
		tr.check(t, dir, small())
	}
	if synced < 10 {
		t.Errorf("only %d rounds were synced", synced)
	}
}

// TestKillKeepsPoliteness kills a process that has just asked a host.
func TestKillKeepsPoliteness(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	c := start(t, "ask", dir)
	c.line(t)
	c.kill(t)
	before := time.Now().Truncate(time.Millisecond)
	db, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	h, err := db.Hosts().Get(t.Context(), "now.example")
	if err != nil || h.NextFetch.Before(before.Add(5*time.Second)) {
		t.Errorf("a host that was asked just before the end: %+v, %v", h, err)
	}
	h, err = db.Hosts().Get(t.Context(), "past.example")
	if err != nil || h.NextFetch.After(before) {
		t.Errorf("a host that was asked an hour before the end: %+v, %v", h, err)
	}
}

// TestStoreKilledWhileCreatedOpens opens a store whose making was cut short.
func TestStoreKilledWhileCreatedOpens(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{lockName, newName, databaseName + "/000002.log"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte("half"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	held := filepath.Join(t.TempDir(), "held") // so that no other file gets its number
	if err := os.Link(filepath.Join(dir, newName), held); err != nil {
		t.Fatal(err)
	}
	half, err := os.Stat(held)
	if err != nil {
		t.Fatal(err)
	}
	db, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	// What marks the directory was there all the time.
	if whole, err := os.Stat(filepath.Join(dir, formatName)); err != nil || !os.SameFile(half, whole) {
		t.Errorf("%s was made anew: %v", newName, err)
	}
	if err := db.Crawl().Update(t.Context(), crawldb.Batch{Marks: crawldb.Mark("j", "c")}); err != nil {
		t.Error(err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}
