package logcheck

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"testing"
)

// logChunk is a chunk of log number 7 as the engine writes it.
func logChunk(kind byte, synced uint64, body []byte) []byte {
	b := make([]byte, recordHeadMost, recordHeadMost+len(body))
	binary.LittleEndian.PutUint16(b[4:], uint16(len(body)))
	b[6] = 2*recordsPerSet + kind
	binary.LittleEndian.PutUint32(b[7:], 7)
	binary.LittleEndian.PutUint64(b[11:], synced)
	b = append(b, body...)
	sum := crc32.Checksum(b[6:], castagnoli())
	binary.LittleEndian.PutUint32(b, (sum>>15|sum<<17)+0xa282ead8)
	return b
}

// If a block has no room for another head, the engine continues in the next, and the rest is
// zero: that is not damage, however much was synced after it, and no record is lost.
func TestFillingOfABlockIsNoDamage(t *testing.T) {
	for room := range recordHeadMost {
		log := logChunk(1, 0, bytes.Repeat([]byte("x"), recordBlock-recordHeadMost-room))
		log = append(log, make([]byte, room)...)
		second := logChunk(1, recordBlock+1, []byte("second"))
		log = append(log, second...)
		got, err := Read(bytes.NewReader(log), int64(len(log)), 7)
		if err != nil || got.Broken() || got.Chunks != 2 || got.End != int64(len(log)) || got.Tail != 0 {
			t.Errorf("%d bytes of filling: %+v, %v", room, got, err)
		}
		n := 0
		err = EachRecord(bytes.NewReader(log), int64(len(log)), 7, func([]byte) { n++ }, func(at int64) { t.Errorf("%d bytes of filling are damage at %d", room, at) })
		if err != nil || n != 2 {
			t.Errorf("%d bytes of filling: %d records, %v", room, n, err)
		}
	}
}
