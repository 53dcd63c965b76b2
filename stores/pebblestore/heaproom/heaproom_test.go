package heaproom

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"testing"
)

// childVariable makes the test binary the child of the test.
const childVariable = "RECRAWL_TEST_HEAPROOM"

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		childMain()
	}
	os.Exit(m.Run())
}

// childMain is a process that calls Leave, and prints the size of the heap at
// which it will collect, in MiB, as soon as that is right for what is alive. If it never is,
// the process does not end. If a percentage was set, it prints that.
func childMain() {
	const room = 32 << 20
	Leave(room)
	if os.Getenv("GOGC") != "" {
		runtime.GC()
		fmt.Println(debug.SetGCPercent(-1))
		os.Exit(0)
	}
	until := func(right func(goal uint64) bool) {
		s := []metrics.Sample{{Name: "/gc/heap/goal:bytes"}}
		for metrics.Read(s); !right(s[0].Value.Uint64()); metrics.Read(s) {
			runtime.GC() // behind which the cleanup will be called, sooner or later
			runtime.Gosched()
		}
		fmt.Println(s[0].Value.Uint64() >> 20)
	}
	little := func(goal uint64) bool { return room <= goal && goal < 2*room }
	until(little)
	much := make([]byte, 4*room)
	until(func(goal uint64) bool { return 8*room <= goal && goal < 9*room })
	runtime.KeepAlive(much)
	until(little)
	os.Exit(0)
}

func TestHeapHasRoom(t *testing.T) {
	collector := func(percentage string) []string {
		t.Helper()
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		c := exec.CommandContext(t.Context(), self)
		c.Env = append(os.Environ(), childVariable+"=1", "GOGC="+percentage)
		out, err := c.Output()
		if err != nil {
			t.Fatalf("GOGC=%q: %v\n%s", percentage, err, out)
		}
		return strings.Fields(string(out))
	}
	t.Logf("with little alive, with much and with little again the goal is %v MiB", collector(""))
	if got := collector("50"); len(got) != 1 || got[0] != "50" {
		t.Errorf("GOGC=50 became %v", got)
	}
}
