//go:build unix && !solaris && !aix

package storedir

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// lockFile acquires the lock of a file by flock(2), which belongs to the open
// file: a second handle in the same process is refused as well, code that opens
// and closes the file elsewhere cannot lose it, and it ends with the process.
func lockFile(name string) (io.Closer, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	if err := acquire(f, syscall.LOCK_EX); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	// The process number is for people to read; a disk too full for it is no
	// obstacle. The file is never empty in between, so that no process reads an
	// empty number.
	if n, err := f.WriteAt(fmt.Appendf(nil, "%d\n", os.Getpid()), 0); err == nil {
		_ = f.Truncate(int64(n))
	}
	return f, nil
}

// LockShared keeps writers out, and changes nothing.
func LockShared(name string) (io.Closer, error) {
	// Opening a pipe would wait for somebody to write into it.
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return notLocked(err)
	}
	if err := acquire(f, syscall.LOCK_SH); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// acquire acquires a lock, and waits a moment for it.
func acquire(f *os.File, how int) error {
	for began := time.Now(); ; time.Sleep(lockPoll) {
		err := flock(f, how)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			if err != nil {
				err = &os.PathError{Op: "lock", Path: f.Name(), Err: err}
			}
			return err
		}
		b := make([]byte, 32)
		n, _ := f.ReadAt(b, 0)
		owner, _, _ := strings.Cut(string(b[:n]), "\n")
		err, patience := ErrLocked, lockPatience
		switch {
		case how == syscall.LOCK_EX && flock(f, syscall.LOCK_SH) == nil: // readers, which leave the number of an earlier owner
			_ = flock(f, syscall.LOCK_UN)
			err = fmt.Errorf("%w: others are reading it", ErrLocked)
		case owner == "":
			patience = namelessPatience
		default:
			err = fmt.Errorf("%w by process %s", ErrLocked, owner)
			if dying(owner) {
				patience = dyingPatience
			}
		}
		if time.Since(began) > patience {
			return err
		}
	}
}

func flock(f *os.File, how int) error {
	for {
		if err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// A process that was killed holds its lock until the system has torn it down,
// which takes a moment; restarting it at once should not be refused. And a
// process that has just acquired its lock may not have written its number yet.
const (
	lockPoll         = 5 * time.Millisecond
	lockPatience     = 50 * time.Millisecond
	namelessPatience = time.Second
	dyingPatience    = 3 * time.Second
)

// dying reports whether a process is gone, or was killed and is exiting. If the
// system does not say, it is taken to be alive.
func dying(owner string) bool {
	pid, err := strconv.Atoi(owner)
	if err != nil || pid <= 0 || pid == os.Getpid() {
		return false
	}
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	status, err := os.ReadFile("/proc/" + owner + "/status")
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch name {
		case "State":
			if value != "" && strings.ContainsRune("ZX", rune(value[0])) {
				return true
			}
		case "SigPnd", "ShdPnd":
			const sigkill = 1 << (9 - 1)
			if mask, err := strconv.ParseUint(value, 16, 64); err == nil && mask&sigkill != 0 {
				return true
			}
		}
	}
	return false
}
