package update

import (
	"strings"
	"testing"
	"unsafe"
)

// A count must not hold on to what it was last counted with: that may be part of a
// block of a megabyte.
func TestCountsKeepNoBlockInMemory(t *testing.T) {
	block := strings.Repeat("example.org ", 3)
	counts := map[string]*int64{}
	for i := range 3 {
		bump(counts, block[12*i:12*i+11])
	}
	begin := uintptr(unsafe.Pointer(unsafe.StringData(block)))
	for name, n := range counts {
		if at := uintptr(unsafe.Pointer(unsafe.StringData(name))); *n != 3 || at >= begin && at < begin+uintptr(len(block)) {
			t.Errorf("%q was counted %d times, and is part of the block", name, *n)
		}
	}
}
