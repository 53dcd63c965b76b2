package chromeproto

import (
	"bytes"
	"context"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// memoryInterval is how often the memory of processes is looked at.
const memoryInterval = 250 * time.Millisecond

// watchMemory ends the processes of pages that take more memory than the limit, in the group of
// a browser, until ctx is done. It does not look while the browser is idle.
func watchMemory(ctx context.Context, group int, limit int64, busy func() bool) {
	tick := time.NewTicker(memoryInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if !busy() {
			continue
		}
		for _, pid := range renderers(group) {
			if resident(pid) > limit {
				syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
}

// renderers returns the processes of pages in a group.
func renderers(group int) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var pids []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if g, err := syscall.Getpgid(pid); err != nil || g != group {
			continue
		}
		if line, err := os.ReadFile("/proc/" + e.Name() + "/cmdline"); err == nil && bytes.Contains(line, []byte("--type=renderer")) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// resident returns the memory of a process; zero if it has ended.
func resident(pid int) int64 {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(b))
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize())
}
