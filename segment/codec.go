package segment

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/page"
)

// A block is a version byte, a byte that says how the rest is compressed, and
// the records, each preceded by its length.
const (
	blockVersion = 1
	packedPlain  = 0
	packedZstd   = 1
	// packedS2 is a sequence of pieces, each preceded by its length, which decompress
	// to at most maxPiece each.
	packedS2 = 2
	maxPiece = 1 << 20
	// maxBlock limits the decompressed size of a block: no length in a damaged
	// or hostile block makes a decoder ask for more memory.
	maxBlock = 256 << 20
)

var errBlock = errors.New("not an encoded block")

// encodeBlock returns a block, which is valid until the next call.
func encodeBlock[T Record](e *encoder, records []T) ([]byte, error) {
	e.buf = slices.Grow(e.buf[:0], bulk(records))
	width := 1 // of a length: usually that of the previous one
	for i := range records {
		at := len(e.buf)
		w := coder{b: append(e.buf, make([]byte, width)...)}
		w.record(&records[i])
		if w.err != nil {
			return nil, w.err
		}
		length := binary.AppendUvarint(e.length[:0], uint64(len(w.b)-at-width))
		if len(length) != width {
			w.b = slices.Replace(w.b, at, at+width, length...)
			width = len(length)
		}
		copy(w.b[at:], length)
		e.buf = w.b
	}
	if len(e.buf) > maxBlock {
		return nil, fmt.Errorf("segment: a block of %d bytes is too large", len(e.buf))
	}
	switch {
	case len(e.buf) < 64:
		e.out = append(append(e.out[:0], blockVersion, packedPlain), e.buf...)
	case quick[T]():
		e.packS2()
	default:
		e.out = e.zw.EncodeAll(e.buf, append(e.out[:0], blockVersion, packedZstd))
	}
	return e.out, nil
}

// bulk returns how many bytes of the records are known without encoding them.
func bulk[T Record](records []T) (n int) {
	for i := range records {
		switch r := any(&records[i]).(type) {
		case *page.Content:
			n += len(r.Body) + len(r.URL) + len(r.Type) + 32
		case *Text:
			n += len(r.Text) + len(r.URL) + 8
		}
	}
	return min(n, maxBlock)
}

// quick reports whether the records are the results of parsing, whose contents are
// stored beside them, or lists of records of the crawl db: they are read again by the
// next stages, and could be made again. S2 takes a third of the time of zstd for them,
// to write and to read, and a third more space.
func quick[T Record]() bool {
	var zero T
	switch any(zero).(type) {
	case Text, Data, Parse, Event, crawldb.Datum:
		return true
	}
	return false
}

func (e *encoder) packS2() {
	e.out = append(e.out[:0], blockVersion, packedS2)
	for rest := e.buf; len(rest) > 0; {
		n := min(len(rest), maxPiece)
		e.piece = s2.Encode(e.piece[:cap(e.piece)], rest[:n])
		e.out = append(binary.AppendUvarint(e.out, uint64(len(e.piece))), e.piece...)
		rest = rest[n:]
	}
}

// decoder decodes blocks.
type decoder struct {
	zr  *zstd.Decoder
	buf []byte
	max int // largest decompressed size of a block
}

func newDecoder() (*decoder, error) {
	zr, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxBlock))
	return &decoder{zr: zr, max: maxBlock}, err
}

func (d *decoder) close() { d.zr.Close() }

func decodeBlock[T Record](d *decoder, block []byte) ([]T, error) {
	if len(block) < 2 || block[0] != blockVersion {
		return nil, errBlock
	}
	body := block[2:]
	switch block[1] {
	case packedPlain:
	case packedZstd:
		var err error
		frame, size := modest(body)
		if d.buf, err = d.zr.DecodeAll(frame, d.buf[:0]); err != nil {
			return nil, err
		}
		if size > 0 && uint64(len(d.buf)) != size {
			return nil, errBlock
		}
		body = d.buf
	case packedS2:
		if err := d.unpackS2(body); err != nil {
			return nil, err
		}
		body = d.buf
	default:
		return nil, errBlock
	}
	// The strings of all records of a block share one copy of it.
	r := coder{reading: true, s: string(body)}
	var out []T
	for r.s != "" {
		one := coder{reading: true}
		r.str(&one.s)
		var rec T
		one.record(&rec)
		if r.bad || one.bad || one.s != "" {
			return nil, errBlock
		}
		out = append(out, rec)
	}
	return out, nil
}

// unpackS2 fills buf. It asks for the memory of a piece at a time, except for
// what the first piece suggests for the others, so that an invalid block asks
// for little.
func (d *decoder) unpackS2(body []byte) error {
	d.buf = d.buf[:0]
	for len(body) > 0 {
		length, n := binary.Uvarint(body)
		if n <= 0 || length > uint64(len(body)-n) {
			return errBlock
		}
		piece := body[n : n+int(length)]
		body = body[n+int(length):]
		size, err := s2.DecodedLen(piece)
		if err != nil || size > maxPiece || len(d.buf)+size > d.max {
			return errBlock
		}
		at := len(d.buf)
		more := 0
		if at == 0 { // the rest is probably as dense
			more = int(min(int64(size)*int64(len(body))/int64(len(piece)), manyBytes))
		}
		d.buf = slices.Grow(d.buf, size+more)[:at+size]
		if _, err := s2.Decode(d.buf[at:], piece); err != nil {
			return errBlock
		}
	}
	return nil
}

// manyBytes is the largest decompressed size that a frame or piece is believed
// to have.
const manyBytes = 32 << 20

// modest returns a frame without its decompressed size, if that is said to be
// large: the decoder would ask for all of it before it has seen any. Without it
// the decoder proceeds step by step, and size is what it should find; zero if
// the frame still says it.
func modest(frame []byte) (_ []byte, size uint64) {
	var h zstd.Header
	if h.Decode(frame) != nil || h.Skippable || !h.HasFCS || h.FrameContentSize <= manyBytes || h.DictionaryID != 0 {
		return frame, 0
	}
	const magicSize, checked = 4, 1 << 2
	head := append([]byte(nil), frame[:magicSize]...)
	flags := byte(0)
	if h.HasCheckSum {
		flags = checked
	}
	window := byte(0) // 1 KiB << window
	for window < 31 && uint64(1)<<(10+window) < h.FrameContentSize {
		window++
	}
	return append(append(head, flags, window<<3), frame[h.HeaderSize:]...), h.FrameContentSize
}

// A coder writes the fields of a record, or reads them; after the first error it reads
// zeros. So one function has the fields of a record, in the order in which they are stored.
type coder struct {
	reading bool
	b       []byte // what was written
	s       string // what is to be read
	bad     bool
	err     error // of writing
}

func (c *coder) fail() { c.s, c.bad = "", true }

// number writes v, or reads a number of at most limit.
func (c *coder) number(v, limit uint64) uint64 {
	if !c.reading {
		c.b = binary.AppendUvarint(c.b, v)
		return v
	}
	v = 0
	for i := range min(len(c.s), binary.MaxVarintLen64) {
		d := c.s[i]
		if i == binary.MaxVarintLen64-1 && d > 1 {
			break
		}
		v |= uint64(d&0x7f) << (7 * i)
		if d >= 0x80 {
			continue
		}
		if v > limit {
			break
		}
		c.s = c.s[i+1:]
		return v
	}
	c.fail()
	return 0
}

// integer passes over a signed number.
func integer[T ~int | ~int64](c *coder, v *T) {
	n := int64(*v)
	u := c.number(uint64(n)<<1^uint64(n>>63), math.MaxUint64)
	if c.reading {
		*v = T(int64(u>>1) ^ -int64(u&1))
	}
}

// small passes over a number below 256.
func small[T ~uint8](c *coder, v *T) {
	if n := c.number(uint64(*v), math.MaxUint8); c.reading {
		*v = T(n)
	}
}

func (c *coder) str(s *string) {
	n := c.number(uint64(len(*s)), math.MaxUint64)
	switch {
	case !c.reading:
		c.b = append(c.b, *s...)
	case n > uint64(len(c.s)):
		c.fail()
		*s = ""
	default:
		*s, c.s = c.s[:n], c.s[n:]
	}
}

// bytes passes over bytes that are there, or not; those that it reads are a copy.
func (c *coder) bytes(b *[]byte, there bool) {
	if !c.reading {
		c.number(uint64(len(*b)), math.MaxUint64)
		c.b = append(c.b, *b...)
		return
	}
	var s string
	if c.str(&s); there && !c.bad {
		*b = []byte(s)
	}
}

func (c *coder) float(f *float64) {
	switch {
	case !c.reading:
		c.b = binary.BigEndian.AppendUint64(c.b, math.Float64bits(*f))
	case len(c.s) < 8:
		c.fail()
		*f = 0
	default:
		*f = math.Float64frombits(binary.BigEndian.Uint64([]byte(c.s[:8])))
		c.s = c.s[8:]
	}
}

func (c *coder) bits(on ...*bool) {
	var v uint64
	for i, b := range on {
		if *b {
			v |= 1 << i
		}
	}
	v = c.number(v, 1<<len(on)-1)
	for i, b := range on {
		if c.reading {
			*b = v&(1<<i) != 0
		}
	}
}

// time keeps the millisecond; zero is its own number.
func (c *coder) time(t *time.Time) {
	ms := int64(math.MinInt64)
	if !t.IsZero() {
		ms = t.UnixMilli()
	}
	integer(c, &ms)
	switch {
	case !c.reading:
	case ms == math.MinInt64:
		*t = time.Time{}
	default:
		*t = time.UnixMilli(ms).UTC()
	}
}

func (c *coder) meta(m *crawldb.Meta) {
	enc := m.Encoded()
	if c.str(&enc); !c.reading {
		return
	}
	var err error
	if *m, err = crawldb.DecodeMeta(enc); err != nil {
		c.fail()
	}
}

func (c *coder) datum(d *crawldb.Datum) {
	if !c.reading {
		c.b, c.err = d.AppendBinary(c.b)
		return
	}
	if !c.bad && d.UnmarshalBinary([]byte(c.s)) != nil {
		c.fail()
	}
	c.s = ""
}

func (c *coder) record(rec any) {
	switch v := rec.(type) {
	case *crawldb.Datum:
		c.str(&v.URL)
		c.datum(v)
	case *Visit:
		c.str(&v.URL)
		c.time(&v.Time)
		small(c, &v.Outcome.Code)
		integer(c, &v.Outcome.Status)
		c.str(&v.Outcome.Location)
		integer(c, &v.Outcome.RetryAfter)
		c.str(&v.Outcome.Reason)
		c.str(&v.ContentType)
		c.str(&v.ETag)
		c.str(&v.LastModified)
		c.time(&v.Modified)
		signed := v.Signature != nil
		c.bits(&v.Truncated, &signed)
		integer(c, &v.Bytes)
		integer(c, &v.Elapsed)
		integer(c, &v.Hops)
		c.str(&v.Via)
		c.bytes(&v.Signature, signed)
	case *page.Content:
		c.str(&v.URL)
		c.str(&v.Type)
		body := v.Body
		if c.bytes(&body, true); c.reading && len(body) > 0 {
			v.Body = body
		}
		c.bits(&v.Truncated)
		c.time(&v.Time)
		c.str(&v.Robots)
		c.str(&v.Refresh)
	case *Text:
		c.str(&v.URL)
		c.str(&v.Text)
	case *Data:
		p := &v.Parsed
		c.str(&v.URL)
		c.str(&p.Title)
		for i := range listOf(c, &p.Outlinks, 3) {
			l := &p.Outlinks[i]
			c.str(&l.URL)
			c.str(&l.Anchor)
			c.bits(&l.NoFollow)
		}
		integer(c, &p.OutlinksCut)
		c.str(&p.Refresh)
		integer(c, &p.RefreshDelay)
		c.str(&p.Canonical)
		until := !p.UnavailableAfter.IsZero()
		if c.bits(&p.NoIndex, &p.NoFollow, &p.Truncated, &p.NoArchive, &until); until {
			c.time(&p.UnavailableAfter)
		}
		c.str(&p.Charset)
		for i := range listOf(c, &p.Meta, 2) {
			c.str(&p.Meta[i].Name)
			c.str(&p.Meta[i].Value)
		}
	case *Parse:
		c.str(&v.URL)
		signed := v.Signature != nil
		c.bits(&signed, &v.Sitemap)
		c.bytes(&v.Signature, signed)
		c.str(&v.Error)
		c.str(&v.Refresh)
		c.float(&v.Gave)
		for i := range listOf(c, &v.Links, 10) {
			l := &v.Links[i]
			c.str(&l.URL)
			c.float(&l.Score)
			c.meta(&l.Meta)
		}
		c.meta(&v.Meta)
	case *Event:
		c.str(&v.URL)
		small(c, &v.Kind)
		signed, previous := v.Signature != nil, v.PreviousSignature != nil
		c.bits(&v.Changed, &signed, &previous)
		c.bytes(&v.Signature, signed)
		c.str(&v.ParseError)
		small(c, &v.PreviousKind)
		c.time(&v.PreviousTime)
		c.bytes(&v.PreviousSignature, previous)
	}
}

// listOf passes over the length of a list whose elements take at least size bytes, and
// returns the list, or one to be read.
func listOf[T any](c *coder, list *[]T, size int) []T {
	n := c.number(uint64(len(*list)), uint64(len(c.s)/size))
	if c.reading && n > 0 {
		*list = make([]T, n)
	}
	return *list
}

// AppendRecord appends the encoding of a record, which [DecodeRecord] reads.
// Blocks consist of such encodings; it is exported for sorting records outside
// a segment.
func AppendRecord[T Record](b []byte, rec *T) ([]byte, error) {
	c := coder{b: b}
	c.record(rec)
	return c.b, c.err
}

// DecodeRecord reads what AppendRecord wrote, and does not retain b.
func DecodeRecord[T Record](b []byte) (T, error) {
	c := coder{reading: true, s: string(b)}
	var rec T
	if c.record(&rec); c.bad || c.s != "" {
		var zero T
		return zero, errors.New("segment: not an encoded record")
	}
	return rec, nil
}
