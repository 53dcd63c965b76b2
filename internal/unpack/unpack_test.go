package unpack

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"testing"
)

func TestGzipReadsMembersAndIgnoresWhatFollows(t *testing.T) {
	const text = "one\ntwo\nthree\n"
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	io.WriteString(z, text)
	z.Close()
	member := packed.String()
	var g Gzip // which is reused
	read := func(in string) (string, error) {
		if err := g.Reset(bufio.NewReader(bytes.NewReader([]byte(in)))); err != nil {
			return "", err
		}
		b, err := io.ReadAll(&g)
		return string(b), err
	}
	for in, want := range map[string]string{
		member:                              text,
		member + member:                     text + text,
		member + "\n":                       text,
		member + Magic + "and not a member": text,
	} {
		if got, err := read(in); got != want || err != nil {
			t.Errorf("%q: %q, %v, want %q", in, got, err, want)
		}
	}
	for n := 2; n < len(member); n++ {
		if _, err := read(member[:n]); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("cut after %d bytes: %v", n, err)
		}
	}
}
