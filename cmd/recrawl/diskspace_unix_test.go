//go:build unix

package main_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestMinFree(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "crawl")
	inject := func(size string) []string {
		return []string{"inject", "-d", dir, "-min-free", size, "http://a.example/"}
	}
	for _, size := range []string{"1T", "-1", "many"} {
		if r := recrawl(t, inject(size)...); r.code != 2 || !strings.Contains(r.err, "-min-free") {
			t.Errorf("-min-free %s: %+v", size, r)
		}
	}
	ok(t, inject("0")...)
	// No disk has that much room: a change waits, and ends when interrupted.
	c, out, errs := exec.Command(program, append(inject("4000000000G"), "http://b.example/")...), new(output), new(output)
	c.Stdout, c.Stderr = out, errs
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	for began := time.Now(); !strings.Contains(errs.String(), "paused: the disk of"); time.Sleep(5 * time.Millisecond) {
		if time.Since(began) > 20*time.Second {
			c.Process.Kill()
			t.Fatalf("it does not wait: %s%s", out, errs)
		}
	}
	c.Process.Signal(syscall.SIGINT)
	if r := wait(t, c, out, errs); r.code == 0 {
		t.Errorf("interrupted: %+v", r)
	}
	if got := dump(t, dir); strings.Contains(got, "b.example") || !strings.Contains(got, "a.example") {
		t.Error(got)
	}
}
