package pebblestore

import (
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/recrawl/recrawl/stores/dirstore"
)

// Options are the settings of a store. The zero value is good for a crawl db
// of up to some ten million URLs.
type Options struct {
	// CacheSize is the memory for blocks and memtables together, in bytes; zero
	// means 128 MiB. More makes updates of a large crawl db cheaper.
	CacheSize int64
	// MemTableSize is how much is collected in memory before it is written out
	// as a sorted table, in bytes; zero means 16 MiB. Keep it below an eighth
	// of CacheSize.
	MemTableSize int64
	// Compression is how tables are compressed. It may differ from one opening
	// to the next; tables are recompressed as they are rewritten.
	Compression Compression
	// Logger receives damage, failures, slow disks and, at debug level, what
	// the engine does. Nil discards all of it.
	Logger *slog.Logger
	// ReadOnly opens an existing store and changes no byte of it, not even
	// after a crash: the logs are read into memory. Several handles
	// may have a store open this way at once, while none has it open for
	// writing. Changes return an error that is ErrReadOnly, and so may a
	// selection of due records, which can need to write.
	ReadOnly bool

	// MinFree is how many bytes to leave free on the disk, for others and for
	// opening the store after a crash. With less, changes wait, those of segments
	// included, until half as much again is free; reads still work. A waiting call
	// ends when its context does, and all of them on Close. Zero means 64 MiB, or a
	// twentieth of the file system if that is less. Negative means none, and a write
	// for which there is no room fails: see [ErrFailed].
	MinFree int64
	// OnRoom, if not nil, is called when changes begin to wait for room on the
	// disk and when they resume. It is called by one goroutine at a time, and
	// must not use the store.
	OnRoom func(Room)

	// fs replaces the file system in tests, and segments the part of it below
	// the directory of the segments.
	fs       vfs.FS
	segments standIn
	// lag and manifest, if not zero, replace the constants in tests.
	lag      time.Duration
	manifest int64
	// opening, if not nil, is called when the engine is open and Open is about
	// to return.
	opening func(*pebble.DB)
}

// Room says that changes begin to wait for room on the disk, or resume.
type Room struct {
	// Dir is the directory of the store.
	Dir string
	// Paused says that changes wait.
	Paused bool
	// Free is the free space on the disk, and Need what is required before
	// changes resume, in bytes.
	Free, Need int64
	// Err is the error of the system, if it has refused a write: syscall.ENOSPC
	// or syscall.EDQUOT. In that case a write is attempted about every second,
	// however much is free.
	Err error
}

// standIn makes the directory of the segments on a test file system.
type standIn interface {
	below(dir string) (dirstore.FS, error)
}

// Compression says how tables are compressed.
type Compression uint8

const (
	// Fast compresses every level with MinLZ, which makes random reads cheap.
	Fast Compression = iota
	// Small compresses the last level, where nine tenths of the data end up,
	// with zstd: it takes about a quarter less disk than Fast, and a third more
	// time for each record that is selected or changed in a large crawl db.
	Small
)

// The smallest and the default sizes.
//
// Pebble takes the memory of its memtables, up to four of which wait to be
// flushed, from the block cache. With the defaults at least half of the cache
// is left for blocks; a cache as small as its memtables would decompress the
// same blocks over and over during an update.
const (
	defaultCacheSize    = 128 << 20
	defaultMemTableSize = 16 << 20
	minMemTableSize     = 64 << 10
	minCacheSize        = 1 << 20
	onceCache           = 8 << 20 // of a reader of everything once, in order
)
