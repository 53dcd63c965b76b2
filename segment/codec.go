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
	"github.com/recrawl/recrawl/protocol"
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

// encoder encodes blocks of records. Its memory is reused for each block.
type encoder struct {
	zw              *zstd.Encoder
	length          [binary.MaxVarintLen64]byte
	buf, piece, out []byte
}

func newEncoder() (*encoder, error) {
	// Consecutive pages have much in common, pages a megabyte apart hardly
	// more, and looking there costs cache misses.
	zw, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20))
	return &encoder{zw: zw}, err
}

// encodeBlock returns a block, which is valid until the next call.
func encodeBlock[T Record](e *encoder, records []T) ([]byte, error) {
	e.buf = slices.Grow(e.buf[:0], bulk(records))
	width := 1 // of a length: usually that of the previous one
	for i := range records {
		at := len(e.buf)
		w := writer{b: append(e.buf, make([]byte, width)...)}
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
	r := reader{s: string(body)}
	// At most as many at once as fetch puts into a block: it may not be one of
	// ours.
	out := make([]T, 0, min(r.records(), 512))
	for r.s != "" {
		one := reader{s: r.str()}
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

type writer struct {
	b   []byte
	err error
}

func (w *writer) uint(v uint64)   { w.b = binary.AppendUvarint(w.b, v) }
func (w *writer) int(v int64)     { w.b = binary.AppendVarint(w.b, v) }
func (w *writer) str(s string)    { w.uint(uint64(len(s))); w.b = append(w.b, s...) }
func (w *writer) float(f float64) { w.b = binary.BigEndian.AppendUint64(w.b, math.Float64bits(f)) }
func (w *writer) bytes(b []byte)  { w.uint(uint64(len(b))); w.b = append(w.b, b...) }
func (w *writer) bits(on ...bool) {
	var v uint64
	for i, b := range on {
		if b {
			v |= 1 << i
		}
	}
	w.uint(v)
}

// time keeps the millisecond; zero is its own number.
func (w *writer) time(t time.Time) {
	if t.IsZero() {
		w.int(math.MinInt64)
		return
	}
	w.int(t.UnixMilli())
}

func (w *writer) record(rec any) {
	switch v := rec.(type) {
	case *crawldb.Datum:
		w.str(v.URL)
		w.b, w.err = v.AppendBinary(w.b)
	case *Visit:
		w.str(v.URL)
		w.time(v.Time)
		w.uint(uint64(v.Outcome.Code))
		w.int(int64(v.Outcome.Status))
		w.str(v.Outcome.Location)
		w.int(int64(v.Outcome.RetryAfter))
		w.str(v.Outcome.Reason)
		w.str(v.ContentType)
		w.str(v.ETag)
		w.str(v.LastModified)
		w.time(v.Modified)
		w.bits(v.Truncated, v.Signature != nil)
		w.int(v.Bytes)
		w.int(int64(v.Elapsed))
		w.int(int64(v.Hops))
		w.str(v.Via)
		w.bytes(v.Signature)
	case *page.Content:
		w.str(v.URL)
		w.str(v.Type)
		w.bytes(v.Body)
		w.bits(v.Truncated)
		w.time(v.Time)
		w.str(v.Robots)
		w.str(v.Refresh)
	case *Text:
		w.str(v.URL)
		w.str(v.Text)
	case *Data:
		p := &v.Parsed
		w.str(v.URL)
		w.str(p.Title)
		w.uint(uint64(len(p.Outlinks)))
		for _, l := range p.Outlinks {
			w.str(l.URL)
			w.str(l.Anchor)
			w.bits(l.NoFollow)
		}
		w.int(int64(p.OutlinksCut))
		w.str(p.Refresh)
		w.int(int64(p.RefreshDelay))
		w.str(p.Canonical)
		w.bits(p.NoIndex, p.NoFollow, p.Truncated, p.NoArchive, !p.UnavailableAfter.IsZero())
		if !p.UnavailableAfter.IsZero() {
			w.time(p.UnavailableAfter)
		}
		w.str(p.Charset)
		w.uint(uint64(len(p.Meta)))
		for _, m := range p.Meta {
			w.str(m.Name)
			w.str(m.Value)
		}
	case *Parse:
		w.str(v.URL)
		w.bits(v.Signature != nil, v.Sitemap)
		w.bytes(v.Signature)
		w.str(v.Error)
		w.str(v.Refresh)
		w.float(v.Gave)
		w.uint(uint64(len(v.Links)))
		for _, l := range v.Links {
			w.str(l.URL)
			w.float(l.Score)
			w.str(l.Meta.Encoded())
		}
		w.str(v.Meta.Encoded())
	case *Event:
		w.str(v.URL)
		w.uint(uint64(v.Kind))
		w.bits(v.Changed, v.Signature != nil, v.PreviousSignature != nil)
		w.bytes(v.Signature)
		w.str(v.ParseError)
		w.uint(uint64(v.PreviousKind))
		w.time(v.PreviousTime)
		w.bytes(v.PreviousSignature)
	}
}

// reader reads what writer wrote; after the first error it reads zeros.
type reader struct {
	s   string
	bad bool
}

func (r *reader) fail() { r.s, r.bad = "", true }

func (r *reader) uint() uint64 {
	var v uint64
	for i := range min(len(r.s), binary.MaxVarintLen64) {
		c := r.s[i]
		if i == binary.MaxVarintLen64-1 && c > 1 {
			break
		}
		v |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			r.s = r.s[i+1:]
			return v
		}
	}
	r.fail()
	return 0
}

// below reads a number of at most limit.
func (r *reader) below(limit uint64) uint64 {
	v := r.uint()
	if v > limit {
		r.fail()
		return 0
	}
	return v
}

func (r *reader) int() int64 {
	v := r.uint()
	return int64(v>>1) ^ -int64(v&1)
}

func (r *reader) str() string {
	n := r.uint()
	if n > uint64(len(r.s)) {
		r.fail()
		return ""
	}
	s := r.s[:n]
	r.s = r.s[n:]
	return s
}

// count reads the length of a list whose elements take at least size bytes.
func (r *reader) count(size int) int {
	n := r.uint()
	if n > uint64(len(r.s)/size) {
		r.fail()
		return 0
	}
	return int(n)
}

// records returns how many whole records there are.
func (r reader) records() (n int) {
	for r.s != "" {
		if r.str(); !r.bad {
			n++
		}
	}
	return n
}

func (r *reader) float() float64 {
	if len(r.s) < 8 {
		r.fail()
		return 0
	}
	v := binary.BigEndian.Uint64([]byte(r.s[:8]))
	r.s = r.s[8:]
	return math.Float64frombits(v)
}

func (r *reader) bits(on ...*bool) {
	v := r.below(1<<len(on) - 1)
	for i, b := range on {
		*b = v&(1<<i) != 0
	}
}

func (r *reader) time() time.Time {
	v := r.int()
	if v == math.MinInt64 {
		return time.Time{}
	}
	return time.UnixMilli(v).UTC()
}

func (r *reader) record(rec any) {
	switch v := rec.(type) {
	case *crawldb.Datum:
		v.URL = r.str()
		if !r.bad && v.UnmarshalBinary([]byte(r.s)) != nil {
			r.fail()
		}
		r.s = ""
	case *Visit:
		v.URL = r.str()
		v.Time = r.time()
		v.Outcome.Code = protocol.Code(r.below(math.MaxUint8))
		v.Outcome.Status = int(r.int())
		v.Outcome.Location = r.str()
		v.Outcome.RetryAfter = time.Duration(r.int())
		v.Outcome.Reason = r.str()
		v.ContentType = r.str()
		v.ETag = r.str()
		v.LastModified = r.str()
		v.Modified = r.time()
		var signed bool
		r.bits(&v.Truncated, &signed)
		v.Bytes = r.int()
		v.Elapsed = time.Duration(r.int())
		v.Hops = int(r.int())
		v.Via = r.str()
		if s := r.str(); signed {
			v.Signature = []byte(s)
		}
	case *page.Content:
		v.URL = r.str()
		v.Type = r.str()
		if s := r.str(); s != "" {
			v.Body = []byte(s)
		}
		r.bits(&v.Truncated)
		v.Time = r.time()
		v.Robots = r.str()
		v.Refresh = r.str()
	case *Text:
		v.URL = r.str()
		v.Text = r.str()
	case *Data:
		p := &v.Parsed
		v.URL = r.str()
		p.Title = r.str()
		if n := r.count(3); n > 0 {
			p.Outlinks = make([]page.Outlink, n)
			for i := range p.Outlinks {
				l := &p.Outlinks[i]
				l.URL = r.str()
				l.Anchor = r.str()
				r.bits(&l.NoFollow)
			}
		}
		p.OutlinksCut = int(r.int())
		p.Refresh = r.str()
		p.RefreshDelay = time.Duration(r.int())
		p.Canonical = r.str()
		var until bool
		if r.bits(&p.NoIndex, &p.NoFollow, &p.Truncated, &p.NoArchive, &until); until {
			p.UnavailableAfter = r.time()
		}
		p.Charset = r.str()
		if n := r.count(2); n > 0 {
			p.Meta = make([]page.Property, n)
			for i := range p.Meta {
				p.Meta[i] = page.Property{Name: r.str(), Value: r.str()}
			}
		}
	case *Parse:
		v.URL = r.str()
		var signed bool
		r.bits(&signed, &v.Sitemap)
		if s := r.str(); signed {
			v.Signature = []byte(s)
		}
		v.Error = r.str()
		v.Refresh = r.str()
		v.Gave = r.float()
		if n := r.count(10); n > 0 {
			v.Links = make([]Link, n)
			for i := range v.Links {
				v.Links[i] = Link{URL: r.str(), Score: r.float(), Meta: r.meta()}
			}
		}
		v.Meta = r.meta()
	case *Event:
		v.URL = r.str()
		v.Kind = uint8(r.below(math.MaxUint8))
		var signed, previous bool
		r.bits(&v.Changed, &signed, &previous)
		if s := r.str(); signed {
			v.Signature = []byte(s)
		}
		v.ParseError = r.str()
		v.PreviousKind = uint8(r.below(math.MaxUint8))
		v.PreviousTime = r.time()
		if s := r.str(); previous {
			v.PreviousSignature = []byte(s)
		}
	}
}

func (r *reader) meta() crawldb.Meta {
	m, err := crawldb.DecodeMeta(r.str())
	if err != nil {
		r.fail()
	}
	return m
}

// AppendRecord appends the encoding of a record, which [DecodeRecord] reads.
// Blocks consist of such encodings; it is exported for sorting records outside
// a segment.
func AppendRecord[T Record](b []byte, rec *T) ([]byte, error) {
	w := writer{b: b}
	w.record(rec)
	return w.b, w.err
}

// DecodeRecord reads what AppendRecord wrote, and does not retain b.
func DecodeRecord[T Record](b []byte) (T, error) {
	r := reader{s: string(b)}
	var rec T
	if r.record(&rec); r.bad || r.s != "" {
		var zero T
		return zero, errors.New("segment: not an encoded record")
	}
	return rec, nil
}
