// Package nutchtext writes records as Apache Nutch's readers print them, so that the
// dumps of two crawls, one by Nutch and one by this module, can be compared line by
// line: the text of a record of the crawl db (readdb -dump, -url), of a host
// (readhostdb), and the Java formats that they consist of. It opens no store. [ReadDump]
// reads a dump of the crawl db; to migrate from Nutch starts there.
//
// Nutch prints dates in the time zone of its machine; here they are in UTC.
package nutchtext

import (
	"cmp"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/recrawl/recrawl/crawldb"
)

// AppendDatum appends the text of a record without its URL: a line "Version: 7"
// and so on. If the record has metadata the text ends with a newline, otherwise
// with a line of one blank.
//
// What Nutch keeps as metadata, but this module as fields or under another name,
// is printed as in Nutch: see [metadata].
func AppendDatum(b []byte, d *crawldb.Datum) []byte {
	b = append(b, "Version: 7\nStatus: "...)
	b = strconv.AppendInt(b, int64(d.Status), 10)
	name := d.Status.String()
	if strings.HasPrefix(name, "unknown") {
		name = "unknown"
	}
	b = append(append(b, " ("...), name...)
	b = append(append(b, ")\nFetch time: "...), date(d.FetchTime)...)
	b = append(append(b, "\nModified time: "...), date(d.Modified)...)
	b = strconv.AppendInt(append(b, "\nRetries since fetch: "...), int64(int8(d.Retries)), 10)
	seconds := int64(d.Interval / time.Second)
	b = strconv.AppendInt(append(b, "\nRetry interval: "...), seconds, 10)
	b = strconv.AppendInt(append(b, " seconds ("...), seconds/86400, 10)
	b = append(append(b, " days)\nScore: "...), Float(d.Score)...)
	b = append(b, "\nSignature: "...)
	if d.Signature == nil {
		b = append(b, "null"...)
	} else {
		b = hex.AppendEncode(b, d.Signature)
	}
	b = append(b, "\nMetadata: \n "...)
	for _, p := range metadata(d) {
		b = append(append(append(append(append(b, '\t'), p.Name...), '='), p.Value...), '\n')
	}
	return b
}

// AppendRecord appends a record of a dump: the URL, a tab, the text of the record
// and a newline, as printed by readdb -dump -format normal.
func AppendRecord(b []byte, d *crawldb.Datum) []byte {
	b = append(append(b, d.URL...), '\t')
	return append(AppendDatum(b, d), '\n')
}

// pair is an entry of metadata.
type pair struct{ Name, Value string }

// metadata returns the metadata that Nutch would have in a record, in the order in
// which it would print them. These names of ours stand for Nutch's:
//
//	schedule.fixed   fixedInterval, a float
//	depth.depth      _depth_
//	depth.max        _maxdepth_
//	orphan.seen      _orphan_
//	page.*           the same name without "page.", which the page says of itself
//
// A lease is _ngt_, the time in milliseconds when its segment was generated. The
// state that other policies keep here has no counterpart in Nutch, and is left out:
// the names that begin with "opic.", "schedule." or "update.". All others are as
// they are.
func metadata(d *crawldb.Datum) []pair {
	var out []pair
	set := func(name, value string) {
		for i := range out {
			if out[i].Name == name {
				out[i].Value = value
				return
			}
		}
		out = append(out, pair{name, value})
	}
	for name, value := range d.Meta.All() {
		switch name {
		case "schedule.fixed":
			if f, err := strconv.ParseFloat(value, 32); err == nil {
				value = Float(float32(f))
			}
			set("fixedInterval", value)
		case "_maxdepth_":
			// What a seed asked for; depth.max is what came of it.
			if own, ok := d.Meta.Get("depth.max"); ok {
				value = own
			}
			set(name, value)
		case "depth.depth":
			set("_depth_", value)
		case "depth.max":
			set("_maxdepth_", value)
		case "orphan.seen":
			set("_orphan_", value)
		default:
			if !ours(name) && !strings.HasPrefix(name, page) {
				set(name, value)
			}
		}
	}
	// In Nutch what a page says goes before what was there.
	for name, value := range d.Meta.All() {
		if own, ok := strings.CutPrefix(name, page); ok {
			set(own, value)
		}
	}
	if d.LeasedBy != "" || !d.LeasedUntil.IsZero() {
		set("_ngt_", strconv.FormatInt(generated(d).UnixMilli(), 10))
	}
	javaOrder(out)
	return out
}

// page begins the names of what a page says of itself.
const page = "page."

func ours(name string) bool {
	return strings.HasPrefix(name, "opic.") || strings.HasPrefix(name, "schedule.") || strings.HasPrefix(name, "update.")
}

// generated returns when the lease of a record began. The name of a segment
// begins with that time, to the second; another name tells nothing, and then it
// is a week before the lease ends, as it is by default.
func generated(d *crawldb.Datum) time.Time {
	if len(d.LeasedBy) >= 14 {
		if t, err := time.Parse("20060102150405", d.LeasedBy[:14]); err == nil {
			return t
		}
	}
	if d.LeasedUntil.IsZero() {
		return time.UnixMilli(0)
	}
	return d.LeasedUntil.Add(-7 * 24 * time.Hour)
}

// javaOrder sorts pairs into the order in which a java.util.HashMap of
// org.apache.hadoop.io.Text yields them: by the slot of a table of at least 16,
// and more than four thirds of the number of pairs. Of those that share a slot
// the one that was put there first is first.
func javaOrder(pairs []pair) {
	slots := uint32(16)
	for len(pairs) > int(slots)*3/4 {
		slots *= 2
	}
	slot := func(name string) uint32 {
		h := uint32(1) // WritableComparator.hashBytes
		for _, c := range []byte(name) {
			h = 31*h + uint32(int32(int8(c)))
		}
		return (h ^ h>>16) & (slots - 1)
	}
	slices.SortFunc(pairs, func(a, b pair) int {
		return cmp.Or(cmp.Compare(slot(a.Name), slot(b.Name)), cmp.Compare(turn(a.Name), turn(b.Name)), cmp.Compare(a.Name, b.Name))
	})
}

// turn says when Nutch puts a name into a record that has it: what a seed or a
// scoring filter sets comes before what a visit adds: two names by the protocol, and
// then two by the fetcher.
func turn(name string) int {
	switch name {
	case "_rs_", "nutch.protocol.code":
		return 1
	case "_pst_":
		return 2
	case "Content-Type":
		return 3
	}
	return 0
}
