package warc

import (
	"bytes"

	"github.com/klauspost/compress/gzip"
)

// Compression is how each record is compressed, by itself, so that a reader can begin at
// any of them.
type Compression uint8

const (
	// Gzip makes each record a member of a .warc.gz file, which all tools read.
	Gzip Compression = iota
	// Zstd makes each record a frame of a .warc.zst file, without a dictionary.
	Zstd
	// None makes a .warc file.
	None
)

func (c Compression) extension() string {
	switch c {
	case Gzip:
		return ".gz"
	case Zstd:
		return ".zst"
	}
	return ""
}

// encode appends a record as it is in the file.
func (w *Writer) encode(b []byte, fields Fields, block []byte) ([]byte, error) {
	switch w.o.Compression {
	case None:
		return appendRecord(b, fields, block), nil
	case Zstd:
		return w.zstd.EncodeAll(appendRecord(nil, fields, block), b), nil
	}
	out := bytes.NewBuffer(b)
	z, ok := w.gzips.Get().(*gzip.Writer)
	if ok {
		z.Reset(out)
	} else {
		z = gzip.NewWriter(out)
	}
	if _, err := z.Write(appendRecord(nil, fields, block)); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	w.gzips.Put(z)
	return out.Bytes(), nil
}
