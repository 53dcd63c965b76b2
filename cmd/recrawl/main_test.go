package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/recrawl/recrawl/internal/testlevel"
	"github.com/recrawl/recrawl/protocol/webtest"
)

// program is the command: the test binary, see command_test.go, or under the race
// detector one that is built once for all tests.
var program string

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	if !testlevel.Race { // otherwise the command is built without the detector, as it is only waited for
		var err error
		if program, err = os.Executable(); err == nil {
			err = os.Setenv("RECRAWL_TEST_AS_COMMAND", "1")
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "recrawl-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "recrawl.exe")
	if out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", program, ".").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// result is what one run of the command did.
type result struct {
	code     int
	out, err string
}

// recrawl runs the command to its end.
func recrawl(t *testing.T, args ...string) result {
	t.Helper()
	return finish(t, exec.Command(program, args...))
}

// finish runs a command to its end, which must come in time.
func finish(t *testing.T, c *exec.Cmd) result {
	t.Helper()
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	return wait(t, c, &out, &errs)
}

// output collects what a process writes, while it runs.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

func start(t *testing.T, args ...string) (c *exec.Cmd, out, errs *output) {
	t.Helper()
	c, out, errs = exec.Command(program, args...), new(output), new(output)
	c.Stdout, c.Stderr = out, errs
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	return c, out, errs
}

func wait(t *testing.T, c *exec.Cmd, out, errs fmt.Stringer) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { c.Process.Kill() })
	err := c.Wait()
	if !stop() {
		t.Fatalf("%v does not end; it wrote\n%s%s", c.Args, out, errs)
	}
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return result{c.ProcessState.ExitCode(), out.String(), errs.String()}
}

// ok runs the command, which must succeed, and returns its output.
func ok(t *testing.T, args ...string) string {
	t.Helper()
	r := recrawl(t, args...)
	if r.code != 0 {
		t.Fatalf("recrawl %s: exit %d\n%s%s", strings.Join(args, " "), r.code, r.out, r.err)
	}
	return r.out
}

// object decodes output that must be one JSON object and nothing else.
func object(t *testing.T, out string) map[string]any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(out))
	var m map[string]any
	if err := d.Decode(&m); err != nil {
		t.Fatalf("not a JSON object: %v\n%s", err, out)
	}
	if d.More() {
		t.Fatalf("more than one JSON object:\n%s", out)
	}
	noNulls(t, "", m)
	return m
}

// noNulls checks that what is not known is left out, and that lists without an entry are
// lists: null | .[] is an error. Only budgets are null, those that nothing reaches.
func noNulls(t *testing.T, name string, v any) {
	t.Helper()
	switch v := v.(type) {
	case nil:
		if name != "takes_per_day" && name != "too_small_by_per_day" {
			t.Errorf("%q is null", name)
		}
	case []any:
		for _, v := range v {
			noNulls(t, name, v)
		}
	case map[string]any:
		for name, v := range v {
			noNulls(t, name, v)
		}
	}
}

// frozen is the recorded time of tests that do not move it.
const frozen = "2026-01-05T08:00:00Z"

func parsed(stamp string) time.Time {
	t, err := time.Parse(time.RFC3339, stamp)
	if err != nil {
		panic(err)
	}
	return t
}

// site is a web on loopback and a crawl of it.
type site struct {
	web    *webtest.Web
	server *webtest.Server
	dir    string
}

// serve serves a web that shows itself at the frozen time, unless it says
// otherwise, and makes the path of a directory for a crawl.
func serve(t *testing.T, w *webtest.Web) *site {
	t.Helper()
	if w.Now == nil {
		w.Now = func() time.Time { return parsed(frozen) }
	}
	w.Start = parsed(frozen).AddDate(-1, 0, 0)
	server, err := webtest.Serve(w)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	return &site{w, server, filepath.Join(t.TempDir(), "crawl")}
}

// args are the arguments of a verb that uses the network, with the frozen time.
func (s *site) args(verb string, more ...string) []string {
	return append([]string{verb, "-d", s.dir, "-agent", "testbot", "-delay", "0", "-connect-to", s.server.ConnectTo(), "-now", frozen}, more...)
}

func (s *site) crawl(more ...string) []string { return s.args("crawl", more...) }

// dump is all that a crawl has found out: crawl db, link db and what the index
// gets.
func dump(t *testing.T, dir string) string {
	t.Helper()
	// Documents come in the order in which the pages came.
	pages := slices.Sorted(strings.Lines(ok(t, "index", "-d", dir)))
	return ok(t, "readdb", "-d", dir, "-dump", "-format", "json") + ok(t, "readlinks", "-d", dir, "-json") + strings.Join(pages, "")
}

// same compares dumps and shows the first line that differs.
func same(t *testing.T, what, got, want string) {
	t.Helper()
	if got == want {
		return
	}
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			t.Fatalf("%s: line %d of %d is\n%s\nwant\n%s", what, i+1, len(g), g[i], w[i])
		}
	}
	t.Fatalf("%s: %d lines, want %d", what, len(g), len(w))
}

// write writes a file into a new directory and returns its name.
func write(t *testing.T, name, text string) string {
	t.Helper()
	name = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return name
}
