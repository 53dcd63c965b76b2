package flags

import (
	"math"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/stores/pebblestore"
)

// Memory returns the flag -memory.
func Memory() cli.Flag {
	return &cli.StringFlag{Name: "memory", Usage: "keep within `SIZE` bytes of memory, for example 256M or 1G, at least 64M; more is faster (default: 64 MB to sort in, a cache of 128 MB, and a Go heap without a limit)"}
}

// MemoryLimit is the total that a verb may use; zero if it was not given.
type MemoryLimit int64

const leastMemory = 64 << 20

// ReadMemory returns the value of -memory.
func ReadMemory(c *cli.Command) (MemoryLimit, error) {
	n, given, err := readSize(c, "memory")
	if err == nil && given && n < leastMemory {
		err = Usagef("-memory: %q is less than 64M", c.String("memory"))
	}
	return MemoryLimit(n), err
}

// readSize reads a flag that is a number of bytes, or of K, M or G.
func readSize(c *cli.Command, name string) (n int64, given bool, err error) {
	text := c.String(name)
	if text == "" {
		return 0, false, nil
	}
	number, unit := text, int64(1)
	if i := strings.IndexByte("KMG", text[len(text)-1]&^0x20); i >= 0 {
		number, unit = text[:len(text)-1], 1<<(10*(i+1))
	}
	n, err = strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/unit {
		return 0, true, Usagef("-%s: %q is not a size such as 256M", name, text)
	}
	return n * unit, true, nil
}

// The cache of the engine, which is not part of Go's heap, gets three sixteenths, and
// sorting an eighth. The heap may grow to a half, garbage included. The rest is for what
// is not counted: the program itself, buffers of the engine, and what malloc loses
// between the blocks of the cache.

// BoundSorting gives sorting its share.
func (m MemoryLimit) BoundSorting(o *recrawl.Options) {
	if m > 0 {
		sort := int(m / 8)
		o.Update.SortMemory, o.Invert.SortMemory = sort, sort
	}
}

// BoundStore gives the engine its share, and limits Go's heap.
func (m MemoryLimit) BoundStore(o *pebblestore.Options) {
	if m > 0 {
		o.CacheSize, o.MemTableSize = int64(m)/16*3, min(int64(m)/64, 64<<20)
		debug.SetMemoryLimit(int64(m) / 2)
	}
}

// MinFree returns the flag -min-free.
func MinFree() cli.Flag {
	return &cli.StringFlag{Name: "min-free", Usage: "keep `SIZE` bytes of the disk free, for example 1G: with less, changes wait until 1.5 times as much is free (0: never wait, but fail when the disk is full; default: 64M, or a twentieth of a small disk)"}
}

// ReadMinFree returns -min-free in the form that the store takes.
func ReadMinFree(c *cli.Command) (int64, error) {
	n, given, err := readSize(c, "min-free")
	if given && n == 0 {
		n = -1
	}
	return n, err
}
