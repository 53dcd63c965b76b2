// Package pebblestore is the durable default of recrawl's stores: a crawl db, a
// host db and a link db in one database of cockroachdb/pebble, and segments as
// files beside it (see stores/dirstore), all in one directory.
//
//	db, err := pebblestore.Open("/var/lib/crawl", pebblestore.Options{})
//	defer db.Close()
//	stores := recrawl.Stores{Crawl: db.Crawl(), Hosts: db.Hosts(), Links: db.Links(), Segments: db.Segments()}
//
// The directory holds
//
//	FORMAT     what this is, and the version of its format
//	LOCK       locked while the store is open, with the process number in it
//	run/       files of that process, if it has any: see RunDir
//	SEAL       checksums of the database's logs and manifest, while it is closed
//	db/        the database
//	segments/  the segments
//
// # Concurrency
//
// One handle at a time may have the directory open: see [ErrLocked]. The handle
// may be used from many goroutines. Updates of the crawl db are applied one at
// a time, as are those of the host db and merges of the link db; the three do
// not wait for each other, and reads wait for none of them. A scan reads some
// thousands of records at a time and holds no lock while the loop body runs.
//
// # Memory
//
// The cache and the memtables, see [Options].CacheSize, lie outside of Go's heap,
// unless it is built without cgo. In a process in which little else is alive Go
// therefore collects every few megabytes, which is a quarter of what a scan costs: a
// service with memory to spare sets GOGC, or debug.SetGCPercent, to more than 100.
//
// A cache pays for its memory when it is filled, by a page fault every 4 KiB, and is worth
// that once a block is asked for again. A program that reads a crawl db once and ends
// should set CacheSize to 8 MiB, which saves up to a fifth of a scan.
//
// # Durability
//
// Every change goes through a log first. An Update is in memory when it
// returns, and durable after Sync; changes never become durable out of order.
// Updates of hosts are synced within a second.
//
// # What is due
//
// The crawl db is a crawldb.DueStore. An index, written in the same batch as the record,
// keeps due records by priority, in levels of an eighth of an octave, and the others by the
// hour in which they become due. So a selection costs what it selects and what has become
// due since the last one, whatever the size of the crawl db, unless that is most of it: then
// the index is built anew. A query that looks more than a day ahead may read all records, once
// for each 65,536 candidates that are not due yet. If a limit per host lets few
// URLs of a level pass, the selection reads how many entries each host has in each level,
// and goes from host to host. Where some millions of records are due, the index has the
// best third of them, or more: the others are found through their hosts, in the same order,
// and a selection that needs many of them first adds them to the index, which reads all
// records once. In a store that predates the index, or has one of another version,
// the first selection builds it; if that is interrupted, the next one continues. [DB.CheckIndex] compares the index
// with the records.
//
// # Inlinks
//
// A Merge of a megabyte or more adds a layer to the link db, at a cost that does not depend on
// what is there. A Get asks each layer, and reads a block of each that knows the page; when there are more
// than seventeen, some are joined in the background: a link is then written again once for each
// doubling of the link db. Compact leaves one.
//
// # Failure
//
// Damage is reported as an error that is [ErrDamaged] and a
// *crawldb.CorruptError, which names the place. Tables are checked as they are
// read, and everything else when a store that was closed properly is opened.
// After a crash, damage to what was last synced to the log cannot be distinguished from
// what the crash cut off; damage to what was synced before that is reported.
// [Verify] reads everything, and [Salvage] keeps what is whole. A record that cannot be read
// fails the calls that need it, and no update or selection that only passes it: a page with such a
// record becomes due with priority zero. Tables that the engine
// cannot compact are logged as errors and tried again after a pause of a second to a minute,
// while the store is in use as before; [DB.Compact] returns the error.
//
// On a full disk changes wait until there is room, unless [Options].MinFree is
// negative; reads still work. [Open] does not wait: if others have filled the disk to the last
// block, its error is syscall.ENOSPC, the store stays as it is, and Open succeeds once there is room.
//
// Any other failed write stops the store: the disk is left as it is at that moment,
// and every pending and later call returns an error that is [ErrFailed] and also the
// error of the file system, such as syscall.EIO. Close the store, fix the cause and
// open it again: it has everything that was synced. The process is never ended, not even
// where the engine asks for it.
package pebblestore
