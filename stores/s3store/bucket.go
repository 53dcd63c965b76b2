package s3store

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/minio/minio-go/v7"
)

var (
	errNoObject = errors.New("no such object")
	errExists   = errors.New("the object exists")
	errStored   = errors.New("the server has stored other bytes than were sent")
)

// bucket makes requests, and repeats those that may succeed later.
type bucket struct {
	client    *minio.Core
	name      string
	prefix    string // ends with a slash, or is empty
	patience  time.Duration
	firstWait time.Duration
	attempt   time.Duration
	log       *slog.Logger
	// otherETags says that ETags were seen that are not MD5.
	otherETags atomic.Bool
}

func newBucket(o Options) (*bucket, error) {
	endpoint := o.Endpoint
	if endpoint == "" {
		endpoint = "https://s3.amazonaws.com"
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("endpoint %q is not a URL such as https://s3.example", endpoint)
	}
	transport := o.Transport
	if transport == nil {
		transport = newTransport()
	}
	lookup := minio.BucketLookupAuto
	if o.PathStyle {
		lookup = minio.BucketLookupPath
	}
	client, err := minio.NewCore(u.Host, &minio.Options{Creds: o.Credentials, Secure: u.Scheme == "https", Region: o.Region, BucketLookup: lookup, Transport: transport, MaxRetries: 1})
	if err != nil {
		return nil, err
	}
	b := &bucket{client: client, name: o.Bucket, prefix: o.Prefix, patience: o.Patience, firstWait: o.firstWait, attempt: o.attempt, log: o.Logger}
	if b.prefix != "" {
		b.prefix += "/"
	}
	if b.patience == 0 {
		b.patience = 5 * time.Minute
	}
	if b.firstWait == 0 {
		b.firstWait = 50 * time.Millisecond
	}
	if b.attempt == 0 {
		b.attempt = time.Minute
	}
	if b.log == nil {
		b.log = slog.New(slog.DiscardHandler)
	}
	b.log = b.log.With("bucket", o.Bucket)
	return b, nil
}

// newTransport is that of net/http with limits for a server that does not answer, and without
// compression, which would change what is read.
func newTransport() *http.Transport {
	return &http.Transport{
		DialContext:           (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		ForceAttemptHTTP2:     true,
		MaxIdleConnsPerHost:   16,
		IdleConnTimeout:       time.Minute,
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: 30 * time.Second,
		DisableCompression:    true,
	}
}

// place returns the name of an object for messages.
func (b *bucket) place(key string) string { return "s3://" + b.name + "/" + b.prefix + key }

// retry is retryFor with the patience of the store.
func (b *bucket) retry(ctx context.Context, op, key string, size int64, f func(context.Context) error) error {
	return b.retryFor(ctx, b.patience, op, key, size, f)
}

// retryFor calls f until it succeeds, fails for good, or the patience is used up. One call may take
// some time, and more for many bytes.
func (b *bucket) retryFor(ctx context.Context, patience time.Duration, op, key string, size int64, f func(context.Context) error) error {
	var began time.Time
	for wait := b.firstWait; ; wait = min(2*wait, 5*time.Second) {
		attempt, cancel := context.WithTimeout(ctx, b.attempt+time.Duration(size>>18)*time.Second)
		err := f(attempt)
		cancel()
		if ctx.Err() != nil && err != nil {
			return ctx.Err()
		}
		if err == nil || !transient(err) {
			return err
		}
		if began.IsZero() {
			began = time.Now()
		}
		if time.Since(began) >= patience {
			return err
		}
		b.log.Warn("s3store: trying again", "request", op, "object", key, "error", err)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// transient reports whether the same request may succeed later.
func transient(err error) bool {
	if errors.Is(err, errNoObject) || errors.Is(err, errExists) || errors.Is(err, errNoBucket) {
		return false
	}
	var answer minio.ErrorResponse
	if !errors.As(err, &answer) {
		return true // of the network, or errStored
	}
	switch answer.Code {
	case "SlowDown", "RequestTimeout", "InternalError", "OperationAborted", "ConditionalRequestConflict", "ServiceUnavailable", "BadDigest", "IncompleteBody":
		return true
	case "NotImplemented":
		return false
	}
	return answer.StatusCode >= 500 || answer.StatusCode == http.StatusTooManyRequests || answer.StatusCode == http.StatusRequestTimeout
}

// meaning translates answers that the store expects.
func meaning(err error) error {
	var answer minio.ErrorResponse
	if !errors.As(err, &answer) {
		return err
	}
	switch {
	case answer.Code == minio.NoSuchKey:
		return errNoObject
	case answer.StatusCode == http.StatusPreconditionFailed:
		return errExists
	}
	return err
}

// get returns an object, or its first bytes if there are more than size; a negative size is that of
// the object.
func (b *bucket) get(ctx context.Context, key string, size int64) (data []byte, err error) {
	err = b.retry(ctx, "get", key, max(size, 0), func(ctx context.Context) error {
		var o minio.GetObjectOptions
		body, info, _, err := b.client.GetObject(ctx, b.name, b.prefix+key, o)
		if err != nil {
			return meaning(err)
		}
		defer body.Close()
		n := info.Size
		if size >= 0 {
			n = min(n, size)
		}
		if n < 0 || n > mostBlock+frameSize+int64(len(pieceMagic)) {
			return fmt.Errorf("%w: %d bytes", errPiece, n)
		}
		data = make([]byte, n)
		_, err = io.ReadFull(body, data)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", b.place(key), err)
	}
	return data, nil
}

// put stores an object under a name that no other writer uses.
func (b *bucket) put(ctx context.Context, key string, data []byte) error {
	return b.upload(ctx, key, data, false)
}

// create stores an object if there is none of that name; otherwise its error is errExists. If the
// answer to an upload was lost, what is there is compared. The data has the ID, which no other
// upload has.
func (b *bucket) create(ctx context.Context, key string, data []byte, id string) error {
	err := b.upload(ctx, key, data, true)
	if !errors.Is(err, errExists) {
		return err
	}
	switch stored, e := b.get(ctx, key, -1); {
	case e != nil:
		return e
	case bytes.Equal(stored, data):
		return nil
	case bytes.Contains(stored, []byte(id)): // of this upload, and torn
		return b.put(ctx, key, data)
	}
	return err
}

func (b *bucket) upload(ctx context.Context, key string, data []byte, create bool) error {
	sum := md5.Sum(data)
	want := hex.EncodeToString(sum[:])
	err := b.retry(ctx, "put", key, int64(len(data)), func(ctx context.Context) error {
		o := minio.PutObjectOptions{ContentType: "application/octet-stream", SendContentMd5: true, DisableMultipart: true}
		if create {
			o.SetMatchETagExcept("*")
		}
		info, err := b.client.Client.PutObject(ctx, b.name, b.prefix+key, bytes.NewReader(data), int64(len(data)), o)
		if err != nil {
			return meaning(err)
		}
		if err := b.compare(ctx, key, info.ETag, want, int64(len(data))); err != nil {
			create = false // what is there is a part of this upload
			return err
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("put %s: %w", b.place(key), err)
	}
	return nil
}

// compare returns an error if the server has stored other bytes.
func (b *bucket) compare(ctx context.Context, key, etag, want string, size int64) error {
	if etag == want {
		return nil
	}
	if b.otherETags.Load() {
		info, err := b.client.StatObject(ctx, b.name, b.prefix+key, minio.StatObjectOptions{})
		if err == nil && info.Size != size {
			err = fmt.Errorf("%w: %d bytes of %d", errStored, info.Size, size)
		}
		return err
	}
	body, _, _, err := b.client.GetObject(ctx, b.name, b.prefix+key, minio.GetObjectOptions{})
	if err != nil {
		return err
	}
	defer body.Close()
	hash := md5.New()
	n, err := io.Copy(hash, body)
	if err != nil {
		return err
	}
	if hex.EncodeToString(hash.Sum(nil)) != want {
		return fmt.Errorf("%w: %d bytes of %d", errStored, n, size)
	}
	b.otherETags.Store(true)
	return nil
}

// list returns the names of the objects below a prefix, in order, and their sizes.
func (b *bucket) list(ctx context.Context, prefix string) (names []string, sizes []int64, err error) {
	err = b.retry(ctx, "list", prefix, 0, func(ctx context.Context) error {
		names, sizes = nil, nil
		for o := range b.client.ListObjectsIter(ctx, b.name, minio.ListObjectsOptions{Prefix: b.prefix + prefix, Recursive: true}) {
			if o.Err != nil {
				return o.Err
			}
			names, sizes = append(names, o.Key[len(b.prefix):]), append(sizes, o.Size)
		}
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("list %s: %w", b.place(prefix), err)
	}
	return names, sizes, nil
}

// remove deletes an object; a missing one is no error.
func (b *bucket) remove(ctx context.Context, key string) error {
	err := b.retry(ctx, "delete", key, 0, func(ctx context.Context) error {
		return meaning(b.client.RemoveObject(ctx, b.name, b.prefix+key, minio.RemoveObjectOptions{}))
	})
	if err != nil && !errors.Is(err, errNoObject) {
		return fmt.Errorf("delete %s: %w", b.place(key), err)
	}
	return nil
}
