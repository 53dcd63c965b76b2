package generate

import "strings"

// texts makes strings of bytes, some kilobytes at a time: each is a part of what the
// garbage collector sees as one.
type texts struct {
	b    strings.Builder
	room int
}

func (t *texts) add(b []byte) string {
	from := t.b.Len()
	if t.b.Cap()-from < len(b) {
		t.room = min(max(2*t.room, 512), 4<<10)
		t.b, from = strings.Builder{}, 0
		t.b.Grow(max(t.room, len(b)))
	}
	t.b.Write(b)
	return t.b.String()[from:]
}
