package s3store

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/segment/segmenttest"
	"github.com/recrawl/recrawl/stores/s3store/s3test"
)

// fakeServer starts an S3 server in this process, and returns the options of a store.
func fakeServer(t testing.TB) Options {
	o := optionsAt("http://s3.example")
	o.Transport = inProcess{s3test.Handler(t)}
	return o
}

func optionsAt(endpoint string) Options {
	return Options{
		Endpoint: endpoint, Bucket: s3test.Bucket, Region: "us-east-1", PathStyle: true, PieceSize: 2000,
		Credentials: credentials.NewStaticV4("key", "secret", ""), Patience: 10 * time.Second, firstWait: time.Millisecond, attempt: 5 * time.Second,
	}
}

func TestKit(t *testing.T) { segmenttest.Run(t, harness(t, fakeServer(t))) }

// harness makes stores for the kit, each below a prefix of its own.
func harness(t *testing.T, o Options) segmenttest.Harness {
	var prefixes atomic.Int64
	options := map[segment.Store]Options{}
	open := func(o Options) (segment.Store, error) {
		s, err := Open(context.Background(), o)
		if err == nil {
			options[s] = o
		}
		return s, err
	}
	h := segmenttest.Harness{
		Open: func() (segment.Store, error) {
			o.Prefix = fmt.Sprintf("kit/%d", prefixes.Add(1))
			return open(o)
		},
		Close:  func(s segment.Store) error { return s.(*Store).Close() },
		Reopen: func(s segment.Store) (segment.Store, error) { return open(options[s]) },
		Crash:  func(s segment.Store) (segment.Store, error) { return open(options[s]) },
		Tear: func(s segment.Store, seg, part string, n int) error {
			st, name := s.(*Store), partName{seg, part}
			h, err := st.last(t.Context(), name)
			if err != nil {
				return err
			}
			own, err := st.listOwn(t.Context(), name, h.ID)
			for i := len(own) - 1; i >= 0 && n > 0 && err == nil; i-- {
				key := name.blockKey(own[i].Name)
				left := max(own[i].Bytes-int64(n), 0)
				n -= int(own[i].Bytes - left)
				if left == 0 {
					err = st.bucket.remove(t.Context(), key)
					continue
				}
				var data []byte
				if data, err = st.bucket.get(t.Context(), key, left); err == nil {
					err = st.bucket.put(t.Context(), key, data)
				}
			}
			return err
		},
		Damage: func(s segment.Store, seg, part string, at int) error {
			st := s.(*Store)
			var keys []string
			var total int64
			var all []int64
			for _, dir := range []string{headsDir, blocksDir} {
				names, sizes, err := st.bucket.list(t.Context(), dir+seg+"/"+part+"/")
				if err != nil {
					return err
				}
				keys, all = append(keys, names...), append(all, sizes...)
				for _, n := range sizes {
					total += n
				}
			}
			left := int64(at) * 7 % total
			for i, key := range keys {
				if left < all[i] {
					data, err := st.bucket.get(t.Context(), key, -1)
					if err != nil {
						return err
					}
					data[left] ^= 1 << (at % 8)
					if at%2 == 0 {
						st.forgetCommitted(partName{seg, part})
					}
					return st.bucket.put(t.Context(), key, data)
				}
				left -= all[i]
			}
			return io.ErrUnexpectedEOF
		},
	}
	if _, ok := o.Transport.(*faulty); ok {
		h.Tear, h.Damage = nil, nil // not what the server does wrong
	}
	return h
}
