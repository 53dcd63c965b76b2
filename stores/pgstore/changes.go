package pgstore

import (
	"context"
	"hash/crc32"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/recrawl/recrawl/crawldb"
)

// changes are what batches whose records do not overlap do to the crawl db.
type changes struct {
	added, replaced columns
	removed         [][]byte
	marks           map[string]string
	last            string // the last URL of the batches, in key order
	buf             []byte // encoded records
	size            int    // in bytes
}

// columns are rows of the table of records, column by column.
type columns struct {
	keys, tails, records [][]byte
	due                  []int64
	priority             []float32
	tie                  []int32
	level                []int16
}

func newChanges() *changes { return &changes{marks: map[string]string{}} }

// mostChanges is how many bytes are changed in one transaction, unless a single batch has more.
const mostChanges = 4 << 20

func (c *changes) isFull() bool { return c.size >= mostChanges }

func (c *changes) isEmpty() bool {
	return len(c.added.keys)+len(c.replaced.keys)+len(c.removed)+len(c.marks) == 0
}

// endsBefore reports whether URLs come after all those of the batches so far.
func (c *changes) endsBefore(urls []string) bool {
	return len(urls) == 0 || c.last == "" || crawldb.Compare(c.last, urls[0]) < 0
}

func lastOf(last string, urls []string) string {
	if n := len(urls); n > 0 {
		return urls[n-1]
	}
	return last
}

// add notes the new record of a key; nil deletes it.
func (c *changes) add(key []byte, exists bool, d *crawldb.Datum) (err error) {
	index, tail := indexed(key)
	if d == nil {
		c.removed = append(c.removed, index)
		c.size += len(index)
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
	to := &c.added
	if exists {
		to = &c.replaced
	}
	to.keys, to.tails, to.records = append(to.keys, index), append(to.tails, tail), append(to.records, c.buf[n:len(c.buf):len(c.buf)])
	to.due, to.priority = append(to.due, dueTime(d)), append(to.priority, d.Priority)
	to.tie, to.level = append(to.tie, int32(crc32.ChecksumIEEE(key))), append(to.level, levelOf(d.Priority))
	c.size += len(key) + len(c.buf) - n + 32
	return nil
}

// write sends the changes to the server, all at once.
func (c *changes) write(ctx context.Context, tx pgx.Tx) error {
	var b pgx.Batch
	if a := &c.added; len(a.keys) > 0 {
		b.Queue(`INSERT INTO page (key, tail, record, due, priority, tie, level)
			SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::bytea[], $4::bigint[], $5::real[], $6::integer[], $7::smallint[])`,
			a.keys, a.tails, a.records, a.due, a.priority, a.tie, a.level)
	}
	if r := &c.replaced; len(r.keys) > 0 {
		b.Queue(`UPDATE page p SET record = u.record, due = u.due, priority = u.priority, level = u.level
			FROM unnest($1::bytea[], $2::bytea[], $3::bigint[], $4::real[], $5::smallint[]) AS u (key, record, due, priority, level) WHERE p.key = u.key`,
			r.keys, r.records, r.due, r.priority, r.level)
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
	return tx.SendBatch(ctx, &b).Close()
}

// dueTime returns the column due of a record: the time in milliseconds from which on it is due.
func dueTime(d *crawldb.Datum) int64 { return max(millis(d.FetchTime), millis(d.LeasedUntil)) }

func millis(t time.Time) int64 { return t.UnixMilli() }

// levelOf returns the column level of a priority: its eighth of an octave, the first of which
// is below the smallest float; 0 for what is not positive.
func levelOf(priority float32) int16 {
	switch {
	case !(priority > 0):
		return 0
	case math.IsInf(float64(priority), 1):
		return math.MaxInt16
	}
	return int16(1 + math.Floor(8*(math.Log2(float64(priority))+150)))
}
