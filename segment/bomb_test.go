package segment

import (
	"runtime/metrics"
	"strings"
	"testing"
)

// A block that says it unpacks to much does not make anyone ask for the memory.
func TestLengthInBlockHeaderIsBounded(t *testing.T) {
	dec, err := newDecoder()
	if err != nil {
		t.Fatal(err)
	}
	defer dec.close()
	allocs := func() uint64 {
		s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
		metrics.Read(s)
		return s[0].Value.Uint64()
	}
	// A frame of one segment and 200 MiB, with an empty last block.
	block := []byte{blockVersion, packedZstd, 0x28, 0xb5, 0x2f, 0xfd, 0xa0, 0, 0, 0x80, 0x0c, 1, 0, 0}
	before := allocs()
	if _, err := decodeBlock[Text](dec, block); err == nil {
		t.Error("a block that ends early was read")
	}
	if n := allocs() - before; n > 64<<20 {
		t.Errorf("%d bytes were allocated", n)
	}
}

// A block that does unpack to much is read.
func TestLargeBlock(t *testing.T) {
	enc, err := newEncoder()
	if err != nil {
		t.Fatal(err)
	}
	want := []Text{{URL: "http://a.example/", Text: strings.Repeat("0123456789abcdef", (manyBytes+1<<20)/16)}}
	block, err := encodeBlock(enc, want)
	if err != nil {
		t.Fatal(err)
	}
	dec, err := newDecoder()
	if err != nil {
		t.Fatal(err)
	}
	defer dec.close()
	got, err := decodeBlock[Text](dec, block)
	if err != nil || len(got) != 1 || got[0] != want[0] {
		t.Fatalf("%d records, %v", len(got), err)
	}
}
