package failfs

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// usageFS is a file system with some free space.
type usageFS struct {
	vfs.FS
	free uint64
}

func (f usageFS) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{AvailBytes: f.free, TotalBytes: 1 << 40}, nil
}

// A clock that was set back does not hide that the disk is full.
func TestFullDiskIsSeenAfterTheClockWentBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var states []SpaceState
		s := NewDiskSpace(SpaceOptions{FS: usageFS{vfs.NewMem(), 30_000}, MinFree: 60_000, OnChange: func(s SpaceState) { states = append(states, s) }})
		s.checked.Store(time.Now().AddDate(10, 0, 0).UnixNano())
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := s.Wait(ctx, errors.New("closed")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Wait on a full disk: %v", err)
		}
		if want := (SpaceState{Paused: true, Free: 30_000, Need: 90_000}); len(states) != 1 || states[0] != want {
			t.Errorf("states %+v, want %+v", states, want)
		}
	})
}
