//go:build linux && (amd64 || arm64)

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"unsafe"
)

// The tracer is this program again: it runs a command under ptrace(2), counts the
// calls with which any thread of it is about to change the file system, or to
// make a change durable, and kills it before the one with a given number. It does
// what strace -f -e inject=fsync,rename,write,…:signal=SIGKILL:when=N does, but
// for the number: strace counts each thread and each call apart, and here every
// call of the process has a number of its own.
//
// RECRAWL_TEST_AS_TRACER is the number, 0 for none; file 3 gets a tracing.

// tracing is what the tracer has seen.
type tracing struct {
	Code    int    // of the command; negative if it was killed
	Changes int    // seen before the end
	At      string // the change before which it was killed
	Error   string
}

// change says how a call is one.
type change struct {
	name string
	fd   bool // the first argument is the file, and not the second its name
}

// changes are the calls that count: writes if it is a file that they go to, opens
// if they may make one.
func changes() map[uint64]change {
	renameat2 := map[string]uint64{"amd64": 316, "arm64": 276}[runtime.GOARCH]
	return map[uint64]change{
		syscall.SYS_FSYNC: {"fsync", true}, syscall.SYS_FDATASYNC: {"fsync", true}, syscall.SYS_SYNC_FILE_RANGE: {"sync_file_range", true},
		syscall.SYS_WRITE: {"write", true}, syscall.SYS_PWRITE64: {"write", true}, syscall.SYS_WRITEV: {"write", true}, syscall.SYS_PWRITEV: {"write", true},
		syscall.SYS_FTRUNCATE: {"truncate", true}, syscall.SYS_FALLOCATE: {"allocate", true}, syscall.SYS_OPENAT: {"create", false},
		syscall.SYS_RENAMEAT: {"rename", false}, renameat2: {"rename", false}, syscall.SYS_UNLINKAT: {"unlink", false},
		syscall.SYS_LINKAT: {"link", false}, syscall.SYS_MKDIRAT: {"mkdir", false},
	}
}

func traceMain() {
	report := os.NewFile(3, "report")
	syscall.CloseOnExec(3)
	n, _ := strconv.Atoi(os.Getenv(asTracer))
	os.Unsetenv(asTracer)
	t, err := trace(n, os.Args[1:])
	if err != nil {
		t.Error = err.Error()
	}
	_ = json.NewEncoder(report).Encode(t)
	os.Exit(0)
}

func trace(n int, args []string) (t tracing, err error) {
	runtime.LockOSThread() // it is a thread that traces
	const exitKill = 0x100000
	c := exec.Command(args[0], args[1:]...)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	c.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	if err := c.Start(); err != nil {
		return t, err
	}
	pid := c.Process.Pid
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(pid, &status, 0, nil); err != nil {
		return t, err
	}
	if err := syscall.PtraceSetOptions(pid, syscall.PTRACE_O_TRACESYSGOOD|syscall.PTRACE_O_TRACECLONE|exitKill); err != nil {
		return t, err
	}
	all := changes()
	for at, signal := pid, 0; ; {
		if err := syscall.PtraceSyscall(at, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			return t, err
		}
		for wait := true; wait; wait = !status.Stopped() {
			if at, err = syscall.Wait4(-1, &status, syscall.WALL, nil); err != nil && !errors.Is(err, syscall.EINTR) {
				return t, err
			}
			if at == pid && (status.Exited() || status.Signaled()) {
				t.Code = status.ExitStatus()
				return t, nil
			}
		}
		signal = 0
		switch s := status.StopSignal(); s {
		case syscall.SIGTRAP | 0x80: // a call begins or ends
			if t.At != "" {
				break
			}
			if name := changing(at, all); name != "" {
				if t.Changes++; t.Changes == n {
					t.At = name
					_ = syscall.Kill(pid, syscall.SIGKILL)
				}
			}
		case syscall.SIGTRAP, syscall.SIGSTOP: // a thread begins
		default:
			signal = int(s)
		}
	}
}

// changing returns what a thread that has stopped at a call is about to change;
// nothing if it is not.
func changing(tid int, all map[uint64]change) string {
	const getSyscallInfo, entry = 0x420e, 1
	var info struct { // ptrace_syscall_info, the same on every architecture
		op   uint8
		_    [3]uint8
		arch uint32
		_    [2]uint64
		nr   uint64
		args [6]uint64
		_    [4]uint64
	}
	_, _, e := syscall.Syscall6(syscall.SYS_PTRACE, getSyscallInfo, uintptr(tid), unsafe.Sizeof(info), uintptr(unsafe.Pointer(&info)), 0, 0)
	c, ok := all[info.nr]
	if e != 0 || info.op != entry || !ok || info.nr == syscall.SYS_OPENAT && info.args[2]&syscall.O_CREAT == 0 {
		return ""
	}
	if !c.fd {
		return c.name + " " + stringAt(tid, uintptr(info.args[1]))
	}
	file, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", tid, int32(info.args[0])))
	if err != nil || !strings.HasPrefix(file, "/") {
		return "" // a socket, a pipe
	}
	return c.name + " " + file
}

// stringAt reads a string in the memory of a thread.
func stringAt(tid int, at uintptr) string {
	var s []byte
	for word := make([]byte, 8); len(s) < 4096; s = append(s, word...) {
		if _, err := syscall.PtracePeekData(tid, at+uintptr(len(s)), word); err != nil {
			break
		}
		if i := strings.IndexByte(string(word), 0); i >= 0 {
			return string(append(s, word[:i]...))
		}
	}
	return string(s)
}
