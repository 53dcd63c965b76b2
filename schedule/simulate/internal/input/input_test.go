package input

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"testing"
)

type named struct{ io.Reader }

func (named) Name() string { return "h.tsv" }

func TestReader(t *testing.T) {
	const text = "one\ntwo\nthree\n"
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	io.WriteString(z, text)
	z.Close()
	for _, c := range [][2]string{{text, text}, {packed.String(), text}, {"", ""}, {"o", "o"}} {
		r, err := New(strings.NewReader(c[0]))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(r); string(got) != c[1] || err != nil {
			t.Errorf("%q: %q, %v", c[0], got, err)
		}
	}
	// A file that was cut off is reported, whatever else is wrong with its last line.
	for n := 2; n < packed.Len(); n++ {
		r, err := New(strings.NewReader(packed.String()[:n]))
		if err == nil {
			io.ReadAll(r)
			err = r.At(3, errors.New("half a line"))
		}
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("cut after %d bytes: %v", n, err)
		}
	}
}

func TestErrorsNameFileAndLine(t *testing.T) {
	bad := errors.New("bad")
	for _, c := range []struct {
		from      io.Reader
		at, whole string
	}{
		{strings.NewReader(""), "line 3: bad", "bad"},
		{named{strings.NewReader("")}, "h.tsv:3: bad", "h.tsv: bad"},
	} {
		r, err := New(c.from)
		if err != nil {
			t.Fatal(err)
		}
		if at, whole := r.At(3, bad), r.Whole(bad); at.Error() != c.at || whole.Error() != c.whole || !errors.Is(at, bad) {
			t.Errorf("%v, %v", at, whole)
		}
	}
	if _, err := New(named{strings.NewReader("\x1f\x8bx")}); err == nil || !strings.HasPrefix(err.Error(), "h.tsv:1: ") {
		t.Error(err)
	}
}
