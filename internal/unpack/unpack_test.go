package unpack

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestReader(t *testing.T) {
	const text = "one\ntwo\nthree\n"
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	io.WriteString(z, text)
	z.Close()
	for _, in := range []string{text, packed.String()} {
		r, err := NewReader(strings.NewReader(in))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(r); string(got) != text || err != nil || r.Err() != nil {
			t.Errorf("%q, %v, %v", got, err, r.Err())
		}
	}
	for _, in := range []string{"", "o"} {
		r, err := NewReader(strings.NewReader(in))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(r); string(got) != in || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	}
	// What was cut off is missed.
	for n := 2; n < packed.Len(); n++ {
		r, err := NewReader(strings.NewReader(packed.String()[:n]))
		if err == nil {
			_, err = io.ReadAll(r)
			if r.Err() != err {
				t.Errorf("cut after %d bytes: %v, and Err says %v", n, err, r.Err())
			}
		}
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("cut after %d bytes: %v", n, err)
		}
	}
}
