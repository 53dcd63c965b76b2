package segment

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/s2"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/protocol"
)

// full returns a record with every field set to a value of its own; a field
// that is added to a type and not to its encoding fails the round trip.
func full[T Record](t testing.TB) T {
	t.Helper()
	var rec T
	n := 0
	var fill func(v reflect.Value, path string)
	fill = func(v reflect.Value, path string) {
		n++
		switch at := v.Addr().Interface().(type) {
		case *time.Time:
			*at = time.UnixMilli(int64(n)*1_000_000_007 + 123).UTC()
			return
		case *crawldb.Meta:
			at.Set("opic.cash", "0.5")
			at.Set("page.x", strings.Repeat("ä", n))
			return
		case *crawldb.Status:
			*at = crawldb.Gone
			return
		case *time.Duration:
			// The record of the crawl db keeps whole seconds.
			*at = time.Duration(n) * time.Second
			return
		}
		switch v.Kind() {
		case reflect.String:
			v.SetString(fmt.Sprintf("%s %d \x00\xff é", path, n))
		case reflect.Bool:
			v.SetBool(true)
		case reflect.Int, reflect.Int64:
			v.SetInt(int64(n)<<33 + 5)
			if path == ".Retries" {
				v.SetInt(7)
			}
		case reflect.Uint8:
			v.SetUint(uint64(n))
		case reflect.Float32, reflect.Float64:
			v.SetFloat(float64(n) + 0.25)
		case reflect.Slice:
			v.Set(reflect.MakeSlice(v.Type(), 3, 3))
			for i := range 3 {
				fill(v.Index(i), path)
			}
		case reflect.Struct:
			for i := range v.NumField() {
				fill(v.Field(i), path+"."+v.Type().Field(i).Name)
			}
		default:
			t.Fatalf("no value for %s, a %s", path, v.Type())
		}
	}
	fill(reflect.ValueOf(&rec).Elem(), "")
	if d, ok := any(&rec).(*Data); ok {
		d.Parsed.Text = "" // kept in parse_text
	}
	return rec
}

func roundTrip[T Record](t *testing.T, records ...T) {
	t.Helper()
	enc, err := newEncoder()
	if err != nil {
		t.Fatal(err)
	}
	dec, err := newDecoder()
	if err != nil {
		t.Fatal(err)
	}
	defer dec.close()
	block, err := encodeBlock(enc, records)
	if err != nil {
		t.Fatal(err)
	}
	got, err := decodeBlock[T](dec, block)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(records) {
		t.Fatalf("%d records came back of %d", len(got), len(records))
	}
	for i := range got {
		if !reflect.DeepEqual(got[i], records[i]) {
			t.Errorf("record %d:\n got %+v\nwant %+v", i, got[i], records[i])
		}
		b, err := AppendRecord([]byte("before"), &records[i])
		if err != nil {
			t.Fatal(err)
		}
		one, err := DecodeRecord[T](b[len("before"):])
		if err != nil || !reflect.DeepEqual(one, records[i]) {
			t.Errorf("record %d alone: %v\n got %+v\nwant %+v", i, err, one, records[i])
		}
	}
	// The block is not kept: a store may use its memory again, and so may dec.
	clear(block)
	if _, err := decodeBlock[T](dec, []byte{blockVersion, packedPlain}); err != nil {
		t.Error(err)
	}
	clear(dec.buf)
	if !reflect.DeepEqual(got, records) && len(records) > 0 {
		t.Error("records share memory with their block")
	}
}

func testRecords[T Record](t *testing.T, more ...T) {
	var zero T
	all := append([]T{zero, full[T](t), zero}, more...)
	t.Run(PartOf[T](), func(t *testing.T) {
		roundTrip[T](t)
		for _, r := range all {
			roundTrip(t, r)
		}
		roundTrip(t, all...)
	})
}

func TestRoundTrip(t *testing.T) {
	testRecords[crawldb.Datum](t)
	testRecords(t, Visit{Signature: []byte{}}, Visit{Signature: []byte("sum"), Truncated: true, Via: "v"})
	testRecords(t, Visit{Outcome: protocol.Outcome{Code: 255, Status: -1, RetryAfter: math.MaxInt64}, Bytes: math.MinInt64, Elapsed: -1, Time: time.UnixMilli(-62135596800001).UTC()})
	testRecords(t, page.Content{Body: bytes.Repeat([]byte{0, 1, 2}, 1<<17)}, page.Content{URL: strings.Repeat("u", 100_000)})
	testRecords(t, Text{Text: strings.Repeat("word ", 1<<18)})
	testRecords(t, Data{Parsed: page.Parsed{Directives: page.Directives{NoFollow: true}}}, Data{Parsed: page.Parsed{Directives: page.Directives{NoIndex: true}}}, Data{Parsed: page.Parsed{Truncated: true}},
		Data{Parsed: page.Parsed{Directives: page.Directives{NoArchive: true}}}, Data{Parsed: page.Parsed{Directives: page.Directives{UnavailableAfter: time.UnixMilli(1893456000000).UTC()}}},
		Data{Parsed: page.Parsed{Outlinks: make([]page.Outlink, 10_000), Meta: make([]page.Property, 1000)}})
	testRecords(t, Event{Signature: []byte{}, PreviousSignature: []byte{}}, Event{Kind: 255, PreviousKind: 255})
	testRecords(t, Parse{Signature: []byte{}}, Parse{Sitemap: true}, Parse{Gave: math.Inf(-1), Links: []Link{{}, {Score: math.Copysign(0, -1)}, {Score: math.MaxFloat64}}})
}

func TestTimesAreKeptToTheMillisecond(t *testing.T) {
	zone := time.FixedZone("", 3600)
	b, err := AppendRecord(nil, &Visit{Time: time.Date(2026, 1, 2, 3, 4, 5, 678_999_999, zone)})
	if err != nil {
		t.Fatal(err)
	}
	v, err := DecodeRecord[Visit](b)
	if want := time.Date(2026, 1, 2, 2, 4, 5, 678_000_000, time.UTC); err != nil || v.Time != want {
		t.Errorf("%v, %v; want %v", v.Time, err, want)
	}
}

func TestRecordThatCannotBeEncoded(t *testing.T) {
	enc, err := newEncoder()
	if err != nil {
		t.Fatal(err)
	}
	bad := crawldb.Datum{Interval: -1}
	if _, err := encodeBlock(enc, []crawldb.Datum{{}, bad, {}}); err == nil {
		t.Error("a negative interval was encoded")
	}
	if _, err := AppendRecord(nil, &bad); err == nil {
		t.Error("a negative interval was encoded alone")
	}
}

func TestDecodedStringsRetainLittle(t *testing.T) {
	dec, err := newDecoder()
	if err != nil {
		t.Fatal(err)
	}
	defer dec.close()
	if dec.max != maxBlock {
		t.Errorf("a block may unpack to %d bytes", dec.max)
	}
	piece := func(n int) []byte {
		b := s2.Encode(nil, make([]byte, n))
		return append(binary.AppendUvarint(nil, uint64(len(b))), b...)
	}
	three := bytes.Repeat(piece(maxPiece), 3)
	dec.max = 3 * maxPiece
	if err := dec.unpackS2(three); err != nil || len(dec.buf) != dec.max {
		t.Errorf("%d bytes, %v", len(dec.buf), err)
	}
	if dec.max--; dec.unpackS2(three) == nil {
		t.Error("more was unpacked than may be")
	}
	if dec.unpackS2(piece(maxPiece+1)) == nil {
		t.Error("a piece was unpacked that is too large")
	}
}

func TestForeignBytesAreErrors(t *testing.T) {
	dec, err := newDecoder()
	if err != nil {
		t.Fatal(err)
	}
	defer dec.close()
	enc, err := newEncoder()
	if err != nil {
		t.Fatal(err)
	}
	packed, err := encodeBlock(enc, []Text{{URL: strings.Repeat("a", 1000)}})
	if err != nil {
		t.Fatal(err)
	}
	packed = bytes.Clone(packed)
	zstd := enc.zw.EncodeAll(enc.buf, []byte{blockVersion, packedZstd})
	if got, err := decodeBlock[Text](dec, zstd); err != nil || len(got) != 1 {
		t.Fatalf("text that was packed by zstd: %v", err)
	}
	// A bomb: more than a block may unpack to, in a few bytes.
	bomb := enc.zw.EncodeAll(make([]byte, maxBlock+1), []byte{blockVersion, packedZstd})
	for name, block := range map[string][]byte{
		"nothing":            {},
		"one byte":           {blockVersion},
		"another version":    {blockVersion + 1, packedPlain},
		"another packing":    {blockVersion, 7},
		"no zstd":            {blockVersion, packedZstd, 1, 2, 3},
		"cut zstd":           zstd[:len(zstd)-1],
		"cut S2":             packed[:len(packed)-1],
		"no S2":              {blockVersion, packedS2, 3, 1, 2, 3},
		"an S2 length":       {blockVersion, packedS2, 0xff},
		"a bomb":             bomb,
		"a length of more":   {blockVersion, packedPlain, 5, 0, 0},
		"an endless length":  append([]byte{blockVersion, packedPlain}, bytes.Repeat([]byte{0xff}, 20)...),
		"an empty record":    {blockVersion, packedPlain, 0},
		"a record too short": {blockVersion, packedPlain, 1, 0},
		"a record too long":  {blockVersion, packedPlain, 3, 0, 0, 0},
	} {
		if got, err := decodeBlock[Text](dec, block); err == nil {
			t.Errorf("%s: %d records", name, len(got))
		}
	}
	if _, err := DecodeRecord[Text]([]byte{0, 0, 0}); err == nil {
		t.Error("a record with trailing bytes was decoded")
	}
	// A code that is not known here may be one of a newer version; a number that
	// is no code cannot.
	visit, err := AppendRecord(nil, &Visit{})
	if err != nil {
		t.Fatal(err)
	}
	code := slices.Index(visit[1:], 0) + 1                  // behind the empty URL and the time
	visit = slices.Replace(visit, code, code+1, 0x80, 0x02) // 256
	if v, err := DecodeRecord[Visit](visit); err == nil {
		t.Errorf("code 256 was read as %d", v.Outcome.Code)
	}
}

// fuzz demands that decoding ends, with an error or with records that encode
// and decode to themselves.
func fuzz[T Record](f *testing.F) {
	enc, err := newEncoder()
	if err != nil {
		f.Fatal(err)
	}
	var zero T
	for _, records := range [][]T{nil, {zero}, {full[T](f)}, {zero, full[T](f), zero}} {
		block, err := encodeBlock(enc, records)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(block)
		plain := []byte{blockVersion, packedPlain}
		f.Add(append(plain, enc.buf...))
	}
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, block []byte) {
		enc, err := newEncoder()
		if err != nil {
			t.Fatal(err)
		}
		dec, err := newDecoder()
		if err != nil {
			t.Fatal(err)
		}
		defer dec.close()
		records, err := decodeBlock[T](dec, block)
		if err != nil {
			return
		}
		once, err := encodeBlock(enc, records)
		if err != nil {
			t.Fatalf("what was decoded cannot be encoded: %v", err)
		}
		once = bytes.Clone(once)
		again, err := decodeBlock[T](dec, once)
		if err != nil || len(again) != len(records) {
			t.Fatalf("%d records of %d, %v", len(again), len(records), err)
		}
		// Encoded once more, since NaN is not equal to itself.
		twice, err := encodeBlock(enc, again)
		if err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("the round trip is not stable: %v", err)
		}
	})
}

func FuzzDecodeDatum(f *testing.F)   { fuzz[crawldb.Datum](f) }
func FuzzDecodeVisit(f *testing.F)   { fuzz[Visit](f) }
func FuzzDecodeContent(f *testing.F) { fuzz[page.Content](f) }
func FuzzDecodeText(f *testing.F)    { fuzz[Text](f) }
func FuzzDecodeData(f *testing.F)    { fuzz[Data](f) }
func FuzzDecodeParse(f *testing.F)   { fuzz[Parse](f) }
