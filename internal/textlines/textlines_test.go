package textlines

import (
	"bufio"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

func TestSplit(t *testing.T) {
	for in, want := range map[string][]string{
		"":               nil,
		"a":              {"a"},
		"a\nb\r\nc\rd":   {"a", "b", "c", "d"},
		"\r\n\r\r\n\n":   {"", "", "", ""},
		"a\r":            {"a"},
		"a\r\n":          {"a"},
		"\n\ra\u2028b\n": {"", "", "a\u2028b"},
	} {
		for _, r := range []io.Reader{strings.NewReader(in), iotest.OneByteReader(strings.NewReader(in))} {
			s := bufio.NewScanner(r)
			s.Split(Split)
			var got []string
			for s.Scan() {
				got = append(got, s.Text())
			}
			if s.Err() != nil || !slices.Equal(got, want) {
				t.Errorf("%q: %q, %v, want %q", in, got, s.Err(), want)
			}
		}
	}
}

type named struct{ io.Reader }

func (named) Name() string { return "hosts.txt" }

func TestPlace(t *testing.T) {
	if got := Place(named{}, 3); got != "hosts.txt:3" {
		t.Error(got)
	}
	if got := Place(strings.NewReader(""), 4); got != "line 4" {
		t.Error(got)
	}
}
