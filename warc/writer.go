package warc

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/recrawl/recrawl/protocol/httpproto"
)

// ErrClosed says that the writer was closed.
var ErrClosed = errors.New("warc: writer is closed")

// ErrLocked says that another writer is open in the folder.
var ErrLocked = errors.New("folder has another writer")

// Options are the settings of a [Writer].
type Options struct {
	// Prefix begins the names of files: PREFIX-20060102150405000-00001.warc.gz. Empty means
	// "recrawl".
	Prefix string
	// MaxBytes is the size at which a file is complete; zero means 1 GB, as the standard
	// recommends. A file may exceed it by one visit.
	MaxBytes int64
	// Compression is that of each record.
	Compression Compression
	// Info are further fields of the warcinfo record at the beginning of each file, such as
	// operator, robots or description. Software, format and conformsTo are written anyway.
	Info Fields
	// CDXJ writes the index of each complete file beside it, as NAME.cdxj.
	CDXJ bool
	// KnownPayloads is how many payloads are remembered to recognize one that was already
	// written, which then becomes a revisit record; zero means 100,000, about 30 MB.
	// Negative writes each payload whole. Those of earlier runs are read from the CDXJ
	// files in the folder.
	KnownPayloads int
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// openSuffix ends the name of a file that is being written.
const openSuffix = ".open"

// A Writer writes records to files in a folder. While a file is written its name ends in
// ".open". It may be used from many goroutines at once.
//
// When a method has returned, the records are with the operating system, so that they
// survive the process; [Writer.Sync] makes them survive the machine. What a killed process
// left incomplete, the next writer in the folder cuts off.
type Writer struct {
	dir  string
	o    Options
	lock io.Closer

	payloads known
	gzips    sync.Pool // of *gzip.Writer
	zstd     *zstd.Encoder

	mu     sync.Mutex
	file   *os.File // nil between files
	name   string   // of the file, without openSuffix
	size   int64
	serial int
	lines  []Line
	files  []string
	err    error // that of a write, after which the end of the file is unknown
	closed bool
}

// NewWriter returns a writer to a folder, which it creates if it does not exist. Files that
// a killed process left there are cut after the last whole record and renamed. A folder
// has one writer at a time: if another one is open, that is an error.
func NewWriter(dir string, o Options) (*Writer, error) {
	if strings.ContainsAny(o.Prefix, "/\\\x00") {
		return nil, fmt.Errorf("warc: Options.Prefix %q cannot begin the name of a file", o.Prefix)
	}
	if o.Compression > None {
		return nil, fmt.Errorf("warc: Options.Compression %d is unknown", o.Compression)
	}
	o.Prefix = cmp.Or(o.Prefix, "recrawl")
	o.MaxBytes = cmp.Or(o.MaxBytes, 1e9)
	o.KnownPayloads = cmp.Or(o.KnownPayloads, 100_000)
	if o.Now == nil {
		o.Now = time.Now
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("warc: %w", err)
	}
	lock, err := lockFolder(dir)
	if err != nil {
		return nil, fmt.Errorf("warc: %w", err)
	}
	w := &Writer{dir: dir, o: o, lock: lock, payloads: known{max: o.KnownPayloads}}
	if o.Compression == Zstd {
		if w.zstd, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1)); err != nil {
			lock.Close()
			return nil, fmt.Errorf("warc: %w", err)
		}
	}
	if err := w.recover(); err != nil {
		lock.Close()
		return nil, err
	}
	return w, nil
}

// recover completes the files of a killed process, and reads what is indexed.
func (w *Writer) recover() error {
	left, err := filepath.Glob(filepath.Join(escapeGlob(w.dir), "*"+openSuffix))
	if err != nil {
		return fmt.Errorf("warc: %w", err)
	}
	for _, path := range left {
		whole, err := Cut(path)
		if err != nil {
			return err
		}
		if whole == 0 {
			if err := os.Remove(path); err != nil {
				return fmt.Errorf("warc: %w", err)
			}
			continue
		}
		final := strings.TrimSuffix(path, openSuffix)
		if w.o.CDXJ {
			if err := indexBeside(path, final); err != nil {
				return err
			}
		}
		if err := os.Rename(path, final); err != nil {
			return fmt.Errorf("warc: %w", err)
		}
	}
	if w.o.KnownPayloads < 0 {
		return nil
	}
	return w.payloads.load(w.dir)
}

// Capture writes an exchange: a request record, and a response record. A revisit record
// takes the place of the response if it is 304, or if its payload was written before. It is
// the value of httpproto.Options.Capture.
func (w *Writer) Capture(x httpproto.Exchange) error {
	response, err := newResponse(&x)
	if err != nil {
		return fmt.Errorf("warc: capture of %q: %w", x.URL, err)
	}
	request := Fields{
		{"WARC-Type", TypeRequest},
		{"WARC-Record-ID", newID()},
		{"WARC-Date", formatTime(x.Time)},
		{"WARC-Target-URI", x.URL},
		{"WARC-Concurrent-To", response.id},
		{"Content-Type", "application/http; msgtype=request"},
		{"WARC-Block-Digest", digest(x.Request)},
	}
	return w.write(response, record{fields: request, block: x.Request})
}

// Resource writes content that did not come by HTTP, such as that of a file.
func (w *Writer) Resource(url, contentType string, at time.Time, body []byte) error {
	sum := digest(body)
	return w.write(&capture{id: newID(), url: url, at: at, digest: sum, mime: mediaType(contentType), kind: TypeResource,
		fields: Fields{{"Content-Type", cmp.Or(contentType, "application/octet-stream")}, {"WARC-Payload-Digest", sum}}, block: body})
}

// A record is one to be written, whole.
type record struct {
	fields Fields
	block  []byte
}

// A capture is a response, resource or revisit record before it is known which of them it
// will be.
type capture struct {
	kind, id, url string
	at            time.Time
	status        int
	mime          string
	digest        string // of the payload
	fields        Fields // those after the first four
	block         []byte
	headers       int // of the block
}

// newResponse reads what the capture of a response needs to know of the message.
func newResponse(x *httpproto.Exchange) (*capture, error) {
	head, err := readHead(bufio.NewReader(bytes.NewReader(x.Response)))
	if err != nil {
		return nil, err
	}
	message, err := readResponse(head)
	if err != nil {
		return nil, err
	}
	c := &capture{
		kind: TypeResponse, id: newID(), url: x.URL, at: x.Time, status: message.StatusCode,
		mime: mediaType(message.Header.Get("Content-Type")), digest: digest(x.Response[len(head):]), block: x.Response, headers: len(head),
	}
	c.fields = Fields{{"Content-Type", "application/http; msgtype=response"}}
	if host, _, err := net.SplitHostPort(x.Addr); err == nil {
		c.fields = append(c.fields, Field{"WARC-IP-Address", host})
	}
	if x.Protocol == "h2" {
		c.fields = append(c.fields, Field{"WARC-Protocol", "h2"})
	}
	if x.Truncated != "" {
		c.fields = append(c.fields, Field{"WARC-Truncated", x.Truncated})
	}
	return c, nil
}

// write writes the records of one visit one after the other in one file. They are
// compressed before the file is locked, so that visits share the processors.
func (w *Writer) write(c *capture, others ...record) error {
	fields, block := w.payloads.revisit(c)
	fields = append(fields, Field{"WARC-Block-Digest", digest(block)})
	out, err := w.encode(nil, fields, block)
	length := int64(len(out))
	for _, r := range others {
		if err == nil {
			out, err = w.encode(out, r.fields, r.block)
		}
	}
	if err != nil {
		return fmt.Errorf("warc: %q: %w", c.url, err)
	}

	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return ErrClosed
	}
	if w.err != nil {
		return w.err
	}
	if w.file == nil {
		if err := w.begin(); err != nil {
			return err
		}
	}
	offset := w.size
	if err := w.append(out); err != nil {
		return err
	}
	if w.o.CDXJ {
		w.lines = append(w.lines, newLine(c, fields.Get("WARC-Type"), w.name, offset, length))
	}
	w.payloads.add(c)
	if w.size >= w.o.MaxBytes {
		return w.complete()
	}
	return nil
}

// append appends bytes to the file. After a failure it takes back what was written of them.
func (w *Writer) append(b []byte) error {
	if _, err := w.file.Write(b); err != nil {
		err = fmt.Errorf("warc: %w", err)
		if e := w.file.Truncate(w.size); e != nil {
			w.err = fmt.Errorf("warc: an earlier write failed, and could not be taken back: %w", e)
		} else if _, e := w.file.Seek(w.size, io.SeekStart); e != nil {
			w.err = fmt.Errorf("warc: an earlier write failed, and could not be taken back: %w", e)
		}
		return err
	}
	w.size += int64(len(b))
	return nil
}

// begin begins a file with its warcinfo record.
func (w *Writer) begin() error {
	now := w.o.Now()
	for {
		w.serial++
		w.name = fmt.Sprintf("%s-%s-%05d.warc%s", w.o.Prefix, strings.ReplaceAll(now.UTC().Format("20060102150405.000"), ".", ""), w.serial, w.o.Compression.extension())
		_, err := os.Lstat(filepath.Join(w.dir, w.name))
		if errors.Is(err, os.ErrNotExist) {
			break
		}
		if err != nil {
			return fmt.Errorf("warc: %w", err)
		}
	}
	file, err := os.OpenFile(filepath.Join(w.dir, w.name+openSuffix), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return fmt.Errorf("warc: %w", err)
	}
	w.file, w.size, w.lines = file, 0, nil
	fields, block := infoRecord(w.name, now, w.o.Info)
	out, err := w.encode(nil, fields, block)
	if err == nil {
		err = w.append(out)
	}
	if err != nil {
		file.Close()
		os.Remove(file.Name())
		w.file, w.err = nil, nil
		return err
	}
	return nil
}

func infoRecord(name string, now time.Time, more Fields) (Fields, []byte) {
	block := append(Fields{
		{"software", "recrawl"},
		{"format", "WARC File Format 1.1"},
		{"conformsTo", "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/"},
	}, more...).append(nil)
	return Fields{
		{"WARC-Type", TypeInfo},
		{"WARC-Record-ID", newID()},
		{"WARC-Date", formatTime(now)},
		{"WARC-Filename", name},
		{"Content-Type", "application/warc-fields"},
		{"WARC-Block-Digest", digest(block)},
	}, block
}

// complete makes the file durable, writes its index, and gives it its name.
func (w *Writer) complete() error {
	path := w.file.Name()
	if err := errors.Join(w.file.Sync(), w.file.Close()); err != nil {
		w.file, w.err = nil, fmt.Errorf("warc: %w", err)
		return w.err
	}
	w.file = nil
	final := filepath.Join(w.dir, w.name)
	if w.o.CDXJ {
		if err := writeLines(final+".cdxj", w.lines); err != nil {
			return err
		}
	}
	if err := os.Rename(path, final); err != nil {
		return fmt.Errorf("warc: %w", err)
	}
	w.files = append(w.files, final)
	return nil
}

// Files returns the paths of the complete files that the writer has written, in their order.
func (w *Writer) Files() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.files)
}

// Sync makes durable what was written.
func (w *Writer) Sync() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.closed:
		return ErrClosed
	case w.err != nil:
		return w.err
	case w.file == nil:
		return nil
	}
	if err := w.file.Sync(); err != nil {
		w.err = fmt.Errorf("warc: %w", err)
	}
	return w.err
}

// Close completes the file that is being written. A second call does nothing.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	w.closed = true
	err := w.err
	if w.file != nil {
		err = errors.Join(err, w.complete())
	}
	return errors.Join(err, w.lock.Close())
}
