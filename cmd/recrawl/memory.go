package main

import (
	"math"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/stores/pebblestore"
)

func memoryFlag() cli.Flag {
	return &cli.StringFlag{Name: "memory", Usage: "keep within `SIZE` bytes of memory, for example 256M or 1G, at least 64M; more is faster (default: 64 MB to sort in, a cache of 128 MB, and a Go heap without a limit)"}
}

// memory is the total that a verb may use; zero if it was not given.
type memory int64

const leastMemory = 64 << 20

func memoryOf(c *cli.Command) (memory, error) {
	n, given, err := sizeFlag(c, "memory")
	if err == nil && given && n < leastMemory {
		err = usagef("-memory: %q is less than 64M", c.String("memory"))
	}
	return memory(n), err
}

// sizeFlag reads a flag that is a number of bytes, or of K, M or G.
func sizeFlag(c *cli.Command, name string) (n int64, given bool, err error) {
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
		return 0, true, usagef("-%s: %q is not a size such as 256M", name, text)
	}
	return n * unit, true, nil
}

// The cache of the engine, which is not part of Go's heap, gets three sixteenths, and
// sorting an eighth. The heap may grow to a half, garbage included. The rest is for what
// nobody counts: the program itself, buffers of the engine, and what malloc loses
// between the blocks of the cache.

func (m memory) bound(o *recrawl.Options) {
	if m > 0 {
		sort := int(m / 8)
		o.Update.SortMemory, o.Invert.SortMemory = sort, sort
	}
}

// onceCache is the cache of a verb that reads what it reads once, and mostly in the order in
// which it is stored: what a larger one keeps is never asked for again, and memory that is
// touched for the first time costs more than to use some of it again.
const onceCache = 8 << 20

func (m memory) boundStore(o *pebblestore.Options) {
	if m > 0 {
		o.CacheSize, o.MemTableSize = int64(m)/16*3, min(int64(m)/64, 64<<20)
		debug.SetMemoryLimit(int64(m) / 2)
	}
}
