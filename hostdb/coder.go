package hostdb

import (
	"encoding/binary"
	"math"
	"time"
)

// A coder passes over the fields of a value in the order in which they are stored. It finds
// which of them are there, writes these, or reads them, so that one function has the fields
// of a value. After the first error it reads zeros.
type coder struct {
	mode  mode
	flags uint64 // which fields are there
	b     []byte // what was written, or is to be read
	bad   bool
}

type mode uint8

const (
	finding mode = iota
	writing
	reading
)

// encode appends which fields a value has, and these.
func encode(b []byte, fields func(*coder)) []byte {
	var c coder
	fields(&c)
	c.mode, c.b = writing, binary.AppendUvarint(b, c.flags)
	fields(&c)
	return c.b
}

// decode reads what encode wrote. Flags beyond known are an error.
func (c *coder) decode(known uint64, fields func(*coder)) {
	c.mode, c.flags = reading, 0
	if c.flags = c.count(0); c.flags&^known != 0 {
		c.flags = 0
		c.fail()
	}
	fields(c)
}

// has reports whether a field is to be written or read. present is what the value says.
func (c *coder) has(flag uint64, present bool) bool {
	if c.mode != finding {
		return c.flags&flag != 0
	}
	if present {
		c.flags |= flag
	}
	return false
}

func (c *coder) fail() { c.b, c.bad = nil, true }

// count is a number that is not negative: it writes n and returns it, or what it reads.
func (c *coder) count(n int) uint64 {
	switch c.mode {
	case writing:
		c.b = binary.AppendUvarint(c.b, uint64(n))
	case reading:
		v, size := binary.Uvarint(c.b)
		if size <= 0 {
			c.fail()
			return 0
		}
		c.b = c.b[size:]
		return v
	}
	return uint64(n)
}

// ints passes over numbers.
func ints[T ~int | ~int64](c *coder, values ...*T) {
	for _, v := range values {
		switch c.mode {
		case writing:
			c.b = binary.AppendVarint(c.b, int64(*v))
		case reading:
			n, size := binary.Varint(c.b)
			if size <= 0 {
				c.fail()
				n, size = 0, 0
			}
			*v, c.b = T(n), c.b[size:]
		}
	}
}

func optionalInt[T ~int | ~int64](c *coder, flag uint64, v *T) {
	if c.has(flag, *v != 0) {
		ints(c, v)
	}
}

func (c *coder) time(t *time.Time) {
	ms := t.UnixMilli()
	if ints(c, &ms); c.mode == reading {
		*t = time.UnixMilli(ms).UTC()
	}
}

func (c *coder) optionalTime(flag uint64, t *time.Time) {
	if c.has(flag, !t.IsZero()) {
		c.time(t)
	}
}

func (c *coder) byte(v *byte) {
	switch c.mode {
	case writing:
		c.b = append(c.b, *v)
	case reading:
		if b := c.next(1); b != nil {
			*v = b[0]
		}
	}
}

func (c *coder) float32(f *float32) {
	switch c.mode {
	case writing:
		c.b = binary.LittleEndian.AppendUint32(c.b, math.Float32bits(*f))
	case reading:
		if b := c.next(4); b != nil {
			*f = math.Float32frombits(binary.LittleEndian.Uint32(b))
		}
	}
}

func (c *coder) float64(f *float64) {
	switch c.mode {
	case writing:
		c.b = binary.LittleEndian.AppendUint64(c.b, math.Float64bits(*f))
	case reading:
		if b := c.next(8); b != nil {
			*f = math.Float64frombits(binary.LittleEndian.Uint64(b))
		}
	}
}

// bytes shares the memory of what it reads.
func (c *coder) bytes(v *[]byte) {
	n := c.count(len(*v))
	switch c.mode {
	case writing:
		c.b = append(c.b, *v...)
	case reading:
		*v = c.next(n)
	}
}

func (c *coder) string(s *string) {
	n := c.count(len(*s))
	switch c.mode {
	case writing:
		c.b = append(c.b, *s...)
	case reading:
		*s = string(c.next(n))
	}
}

func (c *coder) optionalString(flag uint64, s *string) {
	if c.has(flag, *s != "") {
		c.string(s)
	}
}

// next cuts off the next n bytes; nil if there are fewer.
func (c *coder) next(n uint64) []byte {
	if n > uint64(len(c.b)) {
		c.fail()
		return nil
	}
	s := c.b[:n:n]
	c.b = c.b[n:]
	return s
}
