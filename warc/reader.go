package warc

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
)

// A FormatError says that bytes are no WARC record.
type FormatError struct {
	// Offset is where the record begins in the file.
	Offset int64
	Reason string
}

// Error says where the record is, and what is wrong with it.
func (e *FormatError) Error() string {
	return fmt.Sprintf("warc: record at %d: %s", e.Offset, e.Reason)
}

// The longest header of a record that is read, and the most bytes that the head of an HTTP
// message may have in an index.
const (
	maxHeader   = 1 << 20
	maxHTTPHead = 1 << 20
)

// A Record is one that was read.
type Record struct {
	// Version is the first line, such as "WARC/1.1".
	Version string
	Fields  Fields
	// Block holds the bytes of the record's block. It is valid until the next record is
	// read; what was not read by then is skipped.
	Block io.Reader
	// BlockLength is Content-Length.
	BlockLength int64
	// Offset is where the record begins in the file.
	Offset int64

	next func() (int64, error) // ends the record, and returns the offset after it
}

// Type returns WARC-Type in lower case.
func (r *Record) Type() string { return strings.ToLower(r.Fields.Get("WARC-Type")) }

// URL returns WARC-Target-URI, without the angle brackets that WARC 1.0 put around it.
func (r *Record) URL() string {
	return strings.TrimSuffix(strings.TrimPrefix(r.Fields.Get("WARC-Target-URI"), "<"), ">")
}

// Time returns WARC-Date; zero if it is no time.
func (r *Record) Time() time.Time {
	t, _ := parseTime(r.Fields.Get("WARC-Date"))
	return t
}

// isHTTP reports whether the block is an HTTP message.
func (r *Record) isHTTP() bool {
	return strings.HasPrefix(strings.ToLower(strings.TrimSpace(r.Fields.Get("Content-Type"))), "application/http")
}

// ReadFile yields the records of a file in their order: of a .warc, .warc.gz or .warc.zst
// file, which its first bytes tell apart. An error ends the sequence; that of a file which
// ends within a record matches io.ErrUnexpectedEOF, that of bytes which are no record is a
// [*FormatError].
func ReadFile(ctx context.Context, path string) iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		file, err := os.Open(path)
		if err != nil {
			yield(nil, fmt.Errorf("warc: %w", err))
			return
		}
		defer file.Close()
		for rec, err := range Read(ctx, file) {
			if err != nil {
				err = fmt.Errorf("warc: %s: %w", path, err)
			}
			if !yield(rec, err) {
				return
			}
		}
	}
}

// Read is [ReadFile] for a stream. Offsets count from where it begins.
func Read(ctx context.Context, r io.Reader) iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		u := units{in: &countingReader{r: bufio.NewReaderSize(r, 64<<10)}}
		defer u.Close()
		for {
			start := u.in.n
			if err := ctx.Err(); err != nil {
				yield(nil, err)
				return
			}
			unit, err := u.next()
			if err == io.EOF {
				return
			}
			if err == nil {
				err = readUnit(ctx, &u, unit, start, yield)
			}
			if err == errStopped {
				return
			}
			if err != nil {
				yield(nil, recordError(start, err))
				return
			}
		}
	}
}

// errStopped says that the loop over the records was left.
var errStopped = errors.New("stopped")

// recordError names the record in an error that does not.
func recordError(offset int64, err error) error {
	if errors.As(err, new(*FormatError)) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fmt.Errorf("record at %d: %w", offset, err)
}

// readUnit yields the records of a unit of compression, or of a whole file without any.
func readUnit(ctx context.Context, u *units, unit io.Reader, start int64, yield func(*Record, error) bool) error {
	content := &countingReader{r: bufio.NewReaderSize(unit, 64<<10)}
	if u.kind == plain {
		content = u.in
	}
	for first := true; ; first = false {
		if err := ctx.Err(); err != nil {
			return err
		}
		if u.kind == plain {
			start = content.n
		}
		rec, err := readHeader(content, start)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return recordError(start, err)
		}
		block := &io.LimitedReader{R: content, N: rec.BlockLength}
		rec.Block = block
		skipRest := func() error {
			if _, err := io.Copy(io.Discard, block); err != nil {
				return err
			}
			if block.N > 0 {
				return io.ErrUnexpectedEOF
			}
			return skipEnds(content)
		}
		rec.next = func() (int64, error) {
			if err := skipRest(); err != nil {
				return 0, err
			}
			if u.kind == plain {
				return content.n, nil
			}
			switch _, err := content.r.Peek(1); {
			case err == io.EOF && first:
				return u.in.n, nil
			case err != nil && err != io.EOF:
				return 0, err
			}
			return 0, &FormatError{start, "shares its unit of compression with another one"}
		}
		if !yield(rec, nil) {
			return errStopped
		}
		if err := skipRest(); err != nil {
			return recordError(start, err)
		}
	}
}

// skipEnds skips the line ends after a block: two by the standard; some writers leave one
// out, others add some.
func skipEnds(r *countingReader) error {
	for {
		b, err := r.r.Peek(1)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if b[0] != '\r' && b[0] != '\n' {
			return nil
		}
		if _, err := r.ReadByte(); err != nil {
			return err
		}
	}
}

// readHeader reads version and fields of a record. io.EOF says that there is none.
func readHeader(r *countingReader, start int64) (*Record, error) {
	if _, err := r.r.Peek(1); err != nil {
		return nil, err
	}
	left := maxHeader
	version, err := readLine(r, &left, start)
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(version, "WARC/") {
		return nil, &FormatError{start, fmt.Sprintf("begins with %.40q instead of a version", version)}
	}
	rec := &Record{Version: version, Offset: start, BlockLength: -1}
	for {
		line, err := readLine(r, &left, start)
		if err != nil {
			return nil, err
		}
		if line == "" {
			break
		}
		if n := len(rec.Fields); n > 0 && (line[0] == ' ' || line[0] == '\t') {
			rec.Fields[n-1].Value += " " + strings.Trim(line, " \t")
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok || name == "" {
			return nil, &FormatError{start, fmt.Sprintf("%.100q is no field", line)}
		}
		rec.Fields = append(rec.Fields, Field{strings.TrimSpace(name), strings.Trim(value, " \t")})
	}
	length := rec.Fields.Get("Content-Length")
	if rec.BlockLength, err = strconv.ParseInt(length, 10, 64); err != nil || rec.BlockLength < 0 {
		return nil, &FormatError{start, fmt.Sprintf("Content-Length %.40q is no length", length)}
	}
	return rec, nil
}

// readLine reads a line of a header without its end.
func readLine(r *countingReader, left *int, start int64) (string, error) {
	var line []byte
	for {
		part, err := r.readSlice()
		line = append(line, part...)
		if *left -= len(part); *left < 0 {
			return "", &FormatError{start, "header is longer than 1 MiB"}
		}
		if err == nil {
			return strings.TrimSuffix(strings.TrimSuffix(string(line), "\n"), "\r"), nil
		}
		if err == io.EOF {
			return "", io.ErrUnexpectedEOF
		}
		if err != bufio.ErrBufferFull {
			return "", err
		}
	}
}

// line returns what an index says of the record, if it is a capture.
func (r *Record) line() (Line, bool, error) {
	kind := r.Type()
	if kind != TypeResponse && kind != TypeResource && kind != TypeRevisit {
		return Line{}, false, nil
	}
	c := capture{url: r.URL(), at: r.Time(), digest: r.Fields.Get("WARC-Payload-Digest")}
	if c.url == "" {
		return Line{}, false, nil
	}
	if !r.isHTTP() {
		c.mime = mediaType(r.Fields.Get("Content-Type"))
	} else if r.BlockLength > 0 {
		head, err := readHead(bufio.NewReader(io.LimitReader(r.Block, maxHTTPHead)))
		if err != nil {
			return Line{}, false, err
		}
		if m, err := readResponse(head); err == nil {
			c.status, c.mime = m.StatusCode, mediaType(m.Header.Get("Content-Type"))
		}
	}
	end, err := r.next()
	if err != nil {
		return Line{}, false, err
	}
	return newLine(&c, kind, "", r.Offset, end-r.Offset), true, nil
}

// readHead reads status line and headers of an HTTP message, with the empty line after
// them. Lines may end in LF alone, as many servers' do.
func readHead(r *bufio.Reader) ([]byte, error) {
	var head []byte
	for {
		line, err := r.ReadSlice('\n')
		head = append(head, line...)
		if err == bufio.ErrBufferFull {
			continue
		}
		if err != nil && err != io.EOF {
			return nil, err
		}
		if len(head) > maxHTTPHead {
			return nil, errors.New("head of the HTTP message is longer than 1 MiB")
		}
		if err == io.EOF || len(bytes.TrimRight(line, "\r\n")) == 0 {
			break
		}
	}
	return head, nil
}

// readable returns a head with a version that net/http reads: some writers of HTTP/2 answers
// write that.
func readable(head []byte) []byte {
	for _, version := range []string{"HTTP/2 ", "HTTP/2.0 ", "HTTP/3 ", "HTTP/3.0 "} {
		if rest, ok := bytes.CutPrefix(head, []byte(version)); ok {
			return append([]byte("HTTP/1.1 "), rest...)
		}
	}
	return head
}

// readResponse reads what the head of an answer says.
func readResponse(head []byte) (*http.Response, error) {
	return http.ReadResponse(bufio.NewReader(bytes.NewReader(readable(head))), nil)
}

// A countingReader counts what was read from it.
type countingReader struct {
	r *bufio.Reader
	n int64
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// ReadByte makes decompressors read no further than the end of their data.
func (c *countingReader) ReadByte() (byte, error) {
	b, err := c.r.ReadByte()
	if err == nil {
		c.n++
	}
	return b, err
}

func (c *countingReader) readSlice() ([]byte, error) {
	line, err := c.r.ReadSlice('\n')
	c.n += int64(len(line))
	return line, err
}

// form is how a file is compressed.
type form uint8

const (
	unknownForm form = iota
	plain
	gzipped
	zstandard
)

// units splits a file in its units of compression: members of gzip, frames of zstd, or
// the whole of a file without compression.
type units struct {
	in    *countingReader
	kind  form
	begun bool
	gzip  *gzip.Reader
	zstd  *zstd.Decoder
	dict  []byte
}

// Close frees what decompression needs.
func (u *units) Close() error {
	if u.zstd != nil {
		u.zstd.Close()
	}
	return nil
}

const (
	zstdMagic      = 0xFD2FB528
	zstdDictionary = 0x184D2A5D // skippable frame of a .warc.zst file that holds the dictionary
)

// next returns the next unit; io.EOF if there is none.
func (u *units) next() (io.Reader, error) {
	magic, err := u.in.r.Peek(4)
	if len(magic) == 0 {
		return nil, err
	}
	if u.kind == unknownForm {
		switch {
		case magic[0] == 0x1f && len(magic) > 1 && magic[1] == 0x8b:
			u.kind = gzipped
		case len(magic) == 4 && (binary.LittleEndian.Uint32(magic) == zstdMagic || binary.LittleEndian.Uint32(magic)&^0xf == 0x184D2A50):
			u.kind = zstandard
		default:
			u.kind = plain
		}
	}
	switch u.kind {
	case gzipped:
		if u.gzip == nil {
			u.gzip, err = gzip.NewReader(u.in)
		} else {
			err = u.gzip.Reset(u.in)
		}
		if err != nil {
			return nil, unexpected(err)
		}
		u.gzip.Multistream(false)
		return u.gzip, nil
	case zstandard:
		return u.nextFrame()
	}
	if u.begun {
		return nil, io.EOF
	}
	u.begun = true
	return u.in, nil
}

// nextFrame returns the next frame that is not skippable.
func (u *units) nextFrame() (io.Reader, error) {
	for {
		magic, err := u.in.r.Peek(4)
		if len(magic) == 0 {
			return nil, err
		}
		if len(magic) < 4 {
			return nil, io.ErrUnexpectedEOF
		}
		if number := binary.LittleEndian.Uint32(magic); number&^0xf == 0x184D2A50 {
			if err := u.skippable(number); err != nil {
				return nil, err
			}
			continue
		}
		break
	}
	frame := &frameReader{r: u.in}
	var err error
	if u.zstd == nil {
		options := []zstd.DOption{zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(128 << 20)}
		if u.dict != nil {
			options = append(options, zstd.WithDecoderDicts(u.dict))
		}
		u.zstd, err = zstd.NewReader(frame, options...)
	} else {
		err = u.zstd.Reset(frame)
	}
	if err != nil {
		return nil, unexpected(err)
	}
	return wholeFrame{u.zstd, frame}, nil
}

// A wholeFrame ends with io.EOF at the end of its frame only: the decoder takes a torn head
// of a frame for the end of the stream.
type wholeFrame struct {
	io.Reader
	frame *frameReader
}

func (w wholeFrame) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	if err == io.EOF && w.frame.state != frameEnd {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// maxDictionary limits the dictionary of a file; those in use have about 100 KB.
const maxDictionary = 16 << 20

// skippable skips a frame, and keeps the dictionary if it is that.
func (u *units) skippable(magic uint32) error {
	var head [8]byte
	if _, err := io.ReadFull(u.in, head[:]); err != nil {
		return unexpected(err)
	}
	size := int64(binary.LittleEndian.Uint32(head[4:]))
	if magic != zstdDictionary || u.zstd != nil {
		if n, err := io.CopyN(io.Discard, u.in, size); err != nil || n < size {
			return unexpected(err)
		}
		return nil
	}
	if size > maxDictionary {
		return fmt.Errorf("zstd dictionary has %d bytes, more than 16 MiB", size)
	}
	dict := make([]byte, size)
	if _, err := io.ReadFull(u.in, dict); err != nil {
		return unexpected(err)
	}
	if len(dict) >= 4 && binary.LittleEndian.Uint32(dict) == zstdMagic {
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxDictionary))
		if err != nil {
			return err
		}
		defer d.Close()
		if dict, err = d.DecodeAll(dict, nil); err != nil {
			return err
		}
	}
	u.dict = dict
	return nil
}

// unexpected says that an end is one within a record.
func unexpected(err error) error {
	if err == nil || err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// recordAt returns the record that begins at an offset of a file. The closer frees what
// reading it needs; it does not close the file.
func recordAt(file *os.File, offset int64) (*Record, io.Closer, error) {
	u := &units{}
	if offset > 0 { // a dictionary stands at the beginning
		u.in = &countingReader{r: bufio.NewReader(io.NewSectionReader(file, 0, 1<<62))}
		if magic, _ := u.in.r.Peek(4); len(magic) == 4 && binary.LittleEndian.Uint32(magic) == zstdDictionary {
			if err := u.skippable(zstdDictionary); err != nil {
				return nil, nil, err
			}
		}
	}
	u.in = &countingReader{r: bufio.NewReader(io.NewSectionReader(file, offset, 1<<62))}
	unit, err := u.next()
	if err != nil {
		return nil, nil, unexpected(err)
	}
	content := &countingReader{r: bufio.NewReader(unit)}
	if u.kind == plain {
		content = u.in
	}
	rec, err := readHeader(content, offset)
	if err != nil {
		u.Close()
		return nil, nil, unexpected(err)
	}
	rec.Block = &io.LimitedReader{R: content, N: rec.BlockLength}
	return rec, u, nil
}
