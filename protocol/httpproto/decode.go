package httpproto

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"io"
	"math"
	"strings"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"

	"github.com/recrawl/recrawl/internal/unpack"
)

// acceptEncoding lists what decoder can read.
const acceptEncoding = "gzip, deflate, zstd"

// maxEncodings is how many encodings may be stacked; honest servers use one.
const maxEncodings = 2

// An encodingError says that a body has an encoding that we do not read.
type encodingError string

func (e encodingError) Error() string { return string(e) }

// codings returns the encodings of a body in the order they were applied,
// without those that change nothing. Some servers name a charset here.
func codings(header []string) ([]string, error) {
	var out []string
	for _, name := range strings.Split(strings.Join(header, ","), ",") {
		switch name = strings.ToLower(strings.TrimSpace(name)); name {
		case "", "identity", "none", "binary", "8bit", "7bit", "utf-8", "utf8", "iso-8859-1":
		case "gzip", "x-gzip":
			out = append(out, "gzip")
		case "deflate", "zstd":
			out = append(out, name)
		case "br", "compress", "x-compress":
			return nil, encodingError("encoding: " + name + " was not asked for")
		default:
			return nil, encodingError("encoding: unknown")
		}
		if len(out) > maxEncodings {
			return nil, encodingError("encoding: too many encodings")
		}
	}
	return out, nil
}

// A decoder decodes one encoding. Its parts are made when first needed and
// reused by later visits.
type decoder struct {
	in   *bufio.Reader
	gzip unpack.Gzip
}

// reader returns a reader that decodes src from the given coding. A body that
// does not look encoded is taken as plain: servers lie. The reader must be
// closed.
func (d *decoder) reader(coding string, src io.Reader) (io.ReadCloser, error) {
	if d.in == nil {
		d.in = bufio.NewReaderSize(src, 4<<10)
	} else {
		d.in.Reset(src)
	}
	plain := io.NopCloser(d.in)
	// A short body may be all there is: an error of Peek will come again from
	// Read.
	magic, err := d.in.Peek(4)
	if len(magic) == 0 {
		if err == io.EOF {
			return plain, nil
		}
		return nil, err
	}
	switch coding {
	case "gzip":
		if !bytes.HasPrefix(magic, []byte(unpack.Magic)) {
			return plain, nil
		}
		return io.NopCloser(&d.gzip), d.gzip.Reset(d.in)
	case "zstd":
		if !isZstd(magic) {
			return plain, nil
		}
		// RFC 9659: a content encoding may require a window of at most 8 MiB.
		// Concurrency 1 decodes in Read, without goroutines.
		z, err := zstd.NewReader(&zstdFrames{in: d.in}, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(8<<20))
		if err != nil {
			return nil, err
		}
		return z.IOReadCloser(), nil
	default: // deflate, which is zlib's by RFC 9110, and raw by some servers
		if len(magic) >= 2 && magic[0]&0x0f == 8 && (int(magic[0])<<8|int(magic[1]))%31 == 0 {
			return zlib.NewReader(d.in)
		}
		if sample, _ := d.in.Peek(512); !isFlate(sample) {
			return plain, nil
		}
		return flate.NewReader(d.in), nil
	}
}

// release drops the reference to what the decoder has read from.
func (d *decoder) release() { d.in.Reset(nil) }

// isZstd reports whether b starts a zstd frame or a skippable one (RFC 8878).
func isZstd(b []byte) bool {
	return bytes.HasPrefix(b, []byte{0x28, 0xb5, 0x2f, 0xfd}) ||
		len(b) >= 4 && b[0]&0xf0 == 0x50 && bytes.Equal(b[1:4], []byte{0x2a, 0x4d, 0x18})
}

// isFlate reports whether b can be the start of a raw deflate stream.
func isFlate(b []byte) bool {
	_, err := io.Copy(io.Discard, flate.NewReader(bytes.NewReader(b)))
	return err == nil || errors.Is(err, io.ErrUnexpectedEOF)
}

// zstdFrames reads frames, and ends where something else begins: see unpack.Gzip. The
// decoder would take up to three bytes there for the beginning of a frame that was cut.
type zstdFrames struct {
	in    *bufio.Reader
	left  int64 // bytes before the next head
	block bool  // that is the head of a block, not of a frame
	sum   int64 // the size of the checksum of the frame
}

func (f *zstdFrames) Read(p []byte) (int, error) {
	for f.left == 0 {
		if err := f.next(); err != nil {
			return 0, err
		}
	}
	n, err := f.in.Read(p[:min(int64(len(p)), f.left)])
	f.left -= int64(n)
	return n, err
}

// next reads a head. If it is cut or wrong, the decoder gets all that is left.
func (f *zstdFrames) next() error {
	if f.block {
		head, err := f.in.Peek(3)
		if err != nil {
			f.left = math.MaxInt64
			return nil
		}
		bits := uint32(head[0]) | uint32(head[1])<<8 | uint32(head[2])<<16
		f.left = 3 + int64(bits>>3)
		if kind := bits >> 1 & 3; kind == 1 { // one byte, to be repeated
			f.left = 3 + 1
		}
		if last := bits&1 != 0; last {
			f.left += f.sum
			f.block = false
		}
		return nil
	}
	head, err := f.in.Peek(zstd.HeaderMaxSize) // it may be shorter
	if !isZstd(head) {
		return cmp.Or(err, io.EOF)
	}
	var h zstd.Header
	switch err := h.Decode(head); {
	case err != nil:
		f.left = math.MaxInt64
	case h.Skippable:
		f.left = int64(h.HeaderSize) + int64(h.SkippableSize)
	default:
		f.left, f.block, f.sum = int64(h.HeaderSize), true, 0
		if h.HasCheckSum {
			f.sum = 4
		}
	}
	return nil
}
