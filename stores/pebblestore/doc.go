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
//	NOTE       what that process says of itself, if it does: see ReadNote
//	SEAL       checksums of the database's logs and manifest, while it is closed
//	db/        the database
//	segments/  the segments
//
// # Concurrency
//
// One handle at a time has the directory: see [ErrLocked]. The handle may be
// used from many goroutines. Updates of the crawl db are applied one at a time,
// as are those of the host db, and merges of the link db; the three do not wait
// for each other, and reading waits for none. A scan reads some thousands of
// records at one go and holds nothing while the loop runs.
//
// # Durability
//
// Every change goes through a log first. An Update is in memory when it
// returns, and durable after Sync; changes are never durable out of order.
// Updates of hosts are synced a second later at the latest.
//
// # What is due
//
// The crawl db is a crawldb.DueStore: an index, written in the batch that writes
// the record, has the records that are due by priority, in levels of an eighth of
// an octave, and the others by the hour from which they are. So a selection costs
// what it selects, and what has become due since the one before, not what the crawl
// db holds. If a limit for each host lets few URLs of a level pass, it reads how many
// entries each host has in which level, and goes from host to host. A store that was written before there
// was an index is given one by its first selection, which may be cut short and goes
// on with the next. [DB.CheckIndex] compares the index with the records.
//
// # Failure
//
// Damage that is found is an error that is [ErrDamaged] and a
// *crawldb.CorruptError, which names the place. Tables are checked as they are
// read, and everything else when a store is opened that was closed in order. After
// a crash nobody can tell damage of what was last synced to the log from what the
// crash cut off; damage of what was synced before that is told. [Verify] reads
// everything, and [Salvage] keeps what is whole.
//
// On a full disk changes wait until there is room, unless [Options].MinFree is
// negative; what is there can be read meanwhile.
//
// Another write that fails stops the store: the disk is left as it is at that moment,
// and every call that has not returned by then, and every later one, returns an error
// that is [ErrFailed] and also the error of the file system, such as syscall.EIO.
// Close the store, cure the cause and open it again: whatever was synced is there.
// The process is never ended, not even where the engine asks for that.
package pebblestore
