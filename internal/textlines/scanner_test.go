package textlines

import (
	"bufio"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

func TestScannerCutsLongLines(t *testing.T) {
	const limit = 200
	long := strings.Repeat("x", 3*limit)
	for in, want := range map[string][]string{
		"":                               nil,
		"a\n" + long + "\nb\n":           {"a", "!" + long[:headBytes], "b"},
		long:                             {"!" + long[:headBytes]},
		long[:limit]:                     {"!" + long[:headBytes]},
		long[:limit-1]:                   {long[:limit-1]},
		long[:limit-1] + "\r\nb":         {long[:limit-1], "b"},
		long + "\r" + long + "\r\n\r\nb": {"!" + long[:headBytes], "!" + long[:headBytes], "", "b"},
	} {
		for _, r := range []io.Reader{strings.NewReader(in), iotest.OneByteReader(strings.NewReader(in))} {
			s := NewScanner(r, limit)
			var got []string
			for s.Scan() {
				line := string(s.Bytes())
				if err := s.LineErr(); err != nil {
					if !errors.Is(err, bufio.ErrTooLong) {
						t.Fatal(err)
					}
					line = "!" + line
				}
				if got = append(got, line); s.Number() != len(got) {
					t.Fatalf("line %d has number %d", len(got), s.Number())
				}
			}
			if err := s.Err(); err != nil || !slices.Equal(got, want) {
				t.Errorf("%.20q, %d bytes: %.20q, %v; want %.20q", in, len(in), got, err, want)
			}
		}
	}
}
