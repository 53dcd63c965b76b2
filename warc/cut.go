package warc

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
)

// Cut removes what follows the last whole record of a file, as a killed process leaves it,
// or zeros, as a machine that lost its power leaves them. It returns how many whole records
// there are. A file without an incomplete end stays as
// it is. If the file is damaged elsewhere than at its end, it stays as it is, and the error
// says where.
func Cut(path string) (records int, err error) {
	whole := int64(0) // where the last whole record ends
	for rec, e := range ReadFile(context.Background(), path) {
		if e == nil {
			var end int64
			if end, e = rec.next(); e == nil {
				whole = end
				records++
				continue
			}
			e = recordError(rec.Offset, e)
		}
		err = e
		break
	}
	if err == nil {
		return records, nil
	}
	torn := errors.Is(err, io.ErrUnexpectedEOF)
	if !torn {
		var e error
		if torn, e = zerosFrom(path, whole); e != nil {
			return records, fmt.Errorf("warc: %w", e)
		}
	}
	if !torn {
		return records, fmt.Errorf("warc: %s is damaged before its end: %w", path, err)
	}
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return records, fmt.Errorf("warc: %w", err)
	}
	if err := errors.Join(file.Truncate(whole), file.Sync(), file.Close()); err != nil {
		return records, fmt.Errorf("warc: %w", err)
	}
	return records, nil
}

// zerosFrom reports whether there is nothing but zeros from an offset to the end of a file.
func zerosFrom(path string, offset int64) (bool, error) {
	file, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer file.Close()
	r := bufio.NewReader(io.NewSectionReader(file, offset, 1<<62))
	for {
		b, err := r.ReadByte()
		if err == io.EOF {
			return true, nil
		}
		if err != nil || b != 0 {
			return false, err
		}
	}
}
