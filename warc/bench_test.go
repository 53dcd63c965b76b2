package warc_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/recrawl/recrawl/warc"
)

// prose is text that compresses about as well as pages do.
func prose(n int, seed uint64) string {
	random := rand.New(rand.NewPCG(1, seed))
	b := make([]byte, 0, n+16)
	for len(b) < n {
		b = fmt.Appendf(b, "<p>word%d ", random.IntN(2000))
	}
	return string(b[:n])
}

// BenchmarkCapture writes answers of 30 KB, each with its request; bytes are those of the
// messages.
func BenchmarkCapture(b *testing.B) {
	for name, compression := range compressions() {
		b.Run(name, func(b *testing.B) {
			w := newWriter(b, b.TempDir(), warc.Options{Compression: compression, KnownPayloads: -1})
			x := exchange("http://a.example/", okay(prose(30<<10, 1)))
			b.SetBytes(int64(len(x.Request) + len(x.Response)))
			for b.Loop() {
				capture(b, w, x)
			}
		})
	}
}

// BenchmarkIndex reads and indexes such a file.
func BenchmarkIndex(b *testing.B) {
	for name, compression := range compressions() {
		b.Run(name, func(b *testing.B) {
			dir := b.TempDir()
			w := newWriter(b, dir, warc.Options{Compression: compression, KnownPayloads: -1})
			bytes := 0
			for i := range 500 {
				x := exchange(fmt.Sprintf("http://a.example/%d", i), okay(prose(30<<10, uint64(i))))
				bytes += len(x.Request) + len(x.Response)
				capture(b, w, x)
			}
			closeWriter(b, w)
			path := filesOf(b, dir, "recrawl-*")[0]
			b.SetBytes(int64(bytes))
			for b.Loop() {
				for _, err := range warc.Index(context.Background(), path) {
					if err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
