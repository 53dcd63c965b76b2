package dueindex

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
)

// A state is stored as it always was, and what is no state is an error.
func TestStateEncoding(t *testing.T) {
	for _, test := range []struct {
		s    state
		want string
	}{
		{state{mark: markAfter(5), complete: true}, "09 01 04 00000006 0000 0000 00"},
		{state{mark: markAfter(5), built: []byte("a")}, "09 00 04 00000006 0000 0000 00 61"},
		{state{mark: markAfter(5), complete: true, cut: 0x0123, wanted: 300}, "09 01 04 00000006 0123 0000 ac02"},
		{state{mark: markAfter(5), complete: true, cut: 0x0123, goal: lastLevel, filled: []byte("a"), wanted: 1}, "09 01 04 00000006 0123 1000 01 61"},
	} {
		b := test.s.append(nil)
		if got := fmt.Sprintf("%x", b); got != strings.ReplaceAll(test.want, " ", "") {
			t.Errorf("%+v: %s, want %s", test.s, got, test.want)
		}
		s, known, err := parseState(b)
		if err != nil || !known || !sameState(s, &test.s) {
			t.Errorf("%+v: %+v, %v, %v", test.s, s, known, err)
		}
	}
	for _, bad := range []string{
		"09 01 04 00000006",                                // no more
		"09 02 04 00000006 0123 0000 01",                   // a flag that is none
		"09 00 04 00000006 0123 0000 01",                   // cut before it was complete
		"09 01 04 00000006 1001 0000 01",                   // more levels than there are
		"09 01 04 00000006 0123 1001 01",                   // a goal that is none
		"09 01 04 00000006 0123 0100 01",                   // a goal that is reached
		"09 01 04 00000006 0123 0000 01 61",                // filled for no goal
		"09 01 04 00000006 0123 0000 ff",                   // half a number
		"09 01 04 00000006 0123 0000 ffffffffffffffffff01", // too large a number
	} {
		b, err := hex.DecodeString(strings.ReplaceAll(bad, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		if s, known, err := parseState(b); err == nil {
			t.Errorf("%s: %+v, %v", bad, s, known)
		}
	}
	for _, other := range []string{"", "00", "05 01 04 00000006", "08 01 04 00000006 0000 0000 00", "0a"} {
		b, err := hex.DecodeString(strings.ReplaceAll(other, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		if s, known, err := parseState(b); known || err != nil {
			t.Errorf("%q of another version: %+v, %v", other, s, err)
		}
	}
}

func sameState(a, b *state) bool {
	return bytes.Equal(a.mark, b.mark) && bytes.Equal(a.built, b.built) && a.complete == b.complete && a.cut == b.cut &&
		a.goal == b.goal && a.wanted == b.wanted && bytes.Equal(a.filled, b.filled)
}

func FuzzState(f *testing.F) {
	f.Add((&state{mark: markAfter(5), complete: true}).append(nil))
	f.Add((&state{mark: markAfter(5), complete: true, cut: 9, goal: lastLevel, filled: []byte("com)"), wanted: 300}).append(nil))
	f.Add((&state{mark: []byte("\x00\x00\x00\x05com)"), built: []byte("com,example)")}).append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, known, err := parseState(b)
		if err != nil || !known {
			return
		}
		if again, _, err := parseState(s.append(nil)); err != nil || !sameState(s, again) {
			t.Errorf("%+v, %+v, %v", s, again, err)
		}
	})
}
