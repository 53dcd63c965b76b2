// Package warc writes visits of a crawl to WARC 1.1 files (ISO 28500:2017), and reads
// them: an [Archive] is a protocol.Protocol that answers visits from files, so that a
// crawl, a parser or a schedule can be tried offline and gives the same result each time.
//
// It does not visit servers: httpproto.Options.Capture passes each exchange to a [Writer],
// and [WriteSegments] writes what the segments of a crawl keep. It reads no ARC files.
//
// Start with [NewWriter] to write, with [Open] to replay. [Pack] makes a WACZ package of
// WARC files, [Index] their CDXJ lines.
package warc
