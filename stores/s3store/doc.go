// Package s3store keeps segments in a bucket of an object store with the S3 API, so that all
// machines of a crawl read the same segments. [Open] opens the store. It keeps no crawl db,
// host db or link db, and makes no bucket.
//
// # Objects
//
//	PREFIX/heads/SEGMENT/PART/0           the first head of a part
//	PREFIX/heads/SEGMENT/PART/N-ID        head N, which replaces the head whose ID is in its name
//	PREFIX/blocks/SEGMENT/PART/ID-K       piece K of the blocks that the writer of head ID has appended
//	PREFIX/blocks/SEGMENT/PART/ID-pack-K  small pieces that were joined when the part was committed
//	PREFIX/gone/SEGMENT                   the segment is being removed
//
// A part is a chain of heads; the last one is in force. A head lists the pieces of the part, and
// says whether it is committed. Each head is written with If-None-Match: *, so of two processes
// that want to replace the same head one fails: Append writes a head, and what the writer of an
// older head does from then on is not part of the chain and changes nothing. A head and its
// pieces have names that no other writer uses, so an upload whose answer was lost is repeated
// without harm.
//
// # What is checked
//
// Every upload carries its MD5, which the server compares, and the ETag in the answer is compared with
// it; where ETags are something else, as with server-side encryption by KMS, the size of the stored
// object is. Every block has a CRC-32C over its place, its number and its bytes, and every
// head one of its own; both are checked when they are read.
//
// The server must have read-after-write consistency and conditional writes; Open refuses a server
// that ignores If-None-Match. A list of objects may be stale: a process knows the parts that it has made,
// found or removed itself, and other processes find them when the list shows them. A request that
// fails in a way that may pass (5xx, throttling, a cut or silent connection) is repeated for
// [Options].Patience.
//
// # Life cycle
//
// The crawl removes its own segments: give the prefix no rule that expires or archives objects.
// Two rules are useful: abort incomplete multipart uploads after a day (the store makes none), and
// if the bucket has versions, expire noncurrent ones.
package s3store
