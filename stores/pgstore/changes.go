package pgstore

import (
	"bytes"
	"context"
	"encoding/binary"
	"hash/crc32"
	"io"
	"math"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/recrawl/recrawl/crawldb"
)

// changes are what batches whose records do not overlap do to the crawl db.
type changes struct {
	added    []byte  // new rows, in the binary format of COPY
	replaced columns // rows that were there
	removed  [][]byte
	marks    map[string]string
	last     string // the last URL of the batches, in key order
	buf      []byte // encoded records
	size     int    // in bytes
}

// columns are rows of the table of records, column by column.
type columns struct {
	keys, records [][]byte
	due, leased   []int64
	priority      []float32
	level         []int16
}

func newChanges() *changes { return &changes{marks: map[string]string{}} }

// mostChanges is how many bytes are changed in one transaction, unless a single batch has more.
const mostChanges = 4 << 20

func (c *changes) isFull() bool { return c.size >= mostChanges }

func (c *changes) isEmpty() bool {
	return len(c.added)+len(c.replaced.keys)+len(c.removed)+len(c.marks) == 0
}

// endsBefore reports whether URLs come after all those of the batches so far.
func (c *changes) endsBefore(urls []string) bool {
	return len(urls) == 0 || c.last == "" || crawldb.Compare(c.last, urls[0]) < 0
}

// add notes the new record of a key; nil deletes it.
func (c *changes) add(key []byte, exists bool, d *crawldb.Datum) (err error) {
	index, tail := indexed(key)
	c.size += len(key) + 32
	if d == nil {
		c.removed = append(c.removed, index)
		return nil
	}
	if cap(c.buf)-len(c.buf) < 256 { // records of the old buffer stay where they are
		c.buf = make([]byte, 0, 64<<10)
	}
	n := len(c.buf)
	if c.buf, err = d.AppendBinary(c.buf); err != nil {
		c.buf = c.buf[:n]
		return err
	}
	record := c.buf[n:len(c.buf):len(c.buf)]
	c.size += len(record)
	if !exists {
		c.buf = c.buf[:n]
		c.added = appendPage(c.added, d, index, tail, record, int32(crc32.ChecksumIEEE(key)))
		return nil
	}
	r := &c.replaced
	r.keys, r.records = append(r.keys, index), append(r.records, record)
	r.due, r.leased = append(r.due, millis(d.FetchTime)), append(r.leased, leasedUntil(d))
	r.priority, r.level = append(r.priority, d.Priority), append(r.level, levelOf(d.Priority))
	return nil
}

// pageColumns are the columns of the table of records in the order of appendPage.
const pageColumns = `due, leased, priority, tie, level, key, tail, record`

// appendPage appends a row in the binary format of COPY: the number of fields, and each field
// behind its length, which is -1 for NULL.
func appendPage(b []byte, d *crawldb.Datum, index, tail, record []byte, tie int32) []byte {
	if len(b) == 0 {
		b = append(b, "PGCOPY\n\xff\r\n\x00\x00\x00\x00\x00\x00\x00\x00\x00"...)
	}
	order := binary.BigEndian
	field := func(v []byte) {
		b = append(order.AppendUint32(b, uint32(len(v))), v...)
	}
	const null = math.MaxUint32
	b = order.AppendUint16(b, 8)
	b = order.AppendUint64(order.AppendUint32(b, 8), uint64(millis(d.FetchTime)))
	if until := leasedUntil(d); until == notLeased {
		b = order.AppendUint32(b, null)
	} else {
		b = order.AppendUint64(order.AppendUint32(b, 8), uint64(until))
	}
	b = order.AppendUint32(order.AppendUint32(b, 4), math.Float32bits(d.Priority))
	b = order.AppendUint32(order.AppendUint32(b, 4), uint32(tie))
	b = order.AppendUint16(order.AppendUint32(b, 2), uint16(levelOf(d.Priority)))
	field(index)
	if tail == nil {
		b = order.AppendUint32(b, null)
	} else {
		field(tail)
	}
	field(record)
	return b
}

// write sends the changes to the server.
func (c *changes) write(ctx context.Context, tx pgx.Tx) error {
	if len(c.added) > 0 {
		const end = "\xff\xff"
		rows := io.MultiReader(bytes.NewReader(c.added), strings.NewReader(end))
		if _, err := tx.Conn().PgConn().CopyFrom(ctx, rows, `COPY page (`+pageColumns+`) FROM STDIN BINARY`); err != nil {
			return err
		}
	}
	var b pgx.Batch
	if r := &c.replaced; len(r.keys) > 0 {
		b.Queue(`UPDATE page p SET record = u.record, due = u.due, leased = nullif(u.leased, $7), priority = u.priority, level = u.level
			FROM unnest($1::bytea[], $2::bytea[], $3::bigint[], $4::bigint[], $5::real[], $6::smallint[]) AS u (key, record, due, leased, priority, level) WHERE p.key = u.key`,
			r.keys, r.records, r.due, r.leased, r.priority, r.level, int64(notLeased))
	}
	if len(c.removed) > 0 {
		b.Queue(`DELETE FROM page WHERE key = ANY ($1::bytea[])`, c.removed)
	}
	for name, value := range c.marks {
		if value == "" {
			b.Queue(`DELETE FROM mark WHERE name = $1`, []byte(name))
		} else {
			b.Queue(`INSERT INTO mark (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value`, []byte(name), []byte(value))
		}
	}
	if b.Len() == 0 {
		return nil
	}
	return tx.SendBatch(ctx, &b).Close()
}

// notLeased stands for the column leased of a record without a lease, which is NULL.
const notLeased = math.MinInt64

// leasedUntil returns the end of the lease of a record in milliseconds.
func leasedUntil(d *crawldb.Datum) int64 {
	if d.LeasedUntil.IsZero() {
		return notLeased
	}
	return millis(d.LeasedUntil)
}

func millis(t time.Time) int64 { return t.UnixMilli() }

// levelOf returns the column level of a priority. Level 1 + n has the priorities from
// 2^(n/8 - 150) up to, and without, 2^((n+1)/8 - 150), so each octave has eight levels. Level 0
// has the priorities that are not positive, and NaN; math.MaxInt16 is the level of infinity.
func levelOf(priority float32) int16 {
	switch {
	case !(priority > 0):
		return 0
	case math.IsInf(float64(priority), 1):
		return math.MaxInt16
	}
	return int16(1 + math.Floor(8*(math.Log2(float64(priority))+150)))
}
