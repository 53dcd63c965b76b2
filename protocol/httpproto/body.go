package httpproto

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

var (
	// errSize says that one of our limits on bytes was reached.
	errSize = errors.New("body: size limit")
	// errSlow and errTime are causes for cancelling a visit's context.
	errSlow = errors.New("timeout: body comes too slowly")
	errTime = errors.New("timeout: time limit of the visit")
)

// wire counts the bytes of a body as they arrive, and stops at left.
type wire struct {
	r    io.Reader
	conn *conn // may be nil
	n    int64
	left int64
	// window counts the bytes since the rate was last looked at.
	window atomic.Int64
}

func (w *wire) Read(p []byte) (int, error) {
	if w.left <= 0 {
		return 0, beyond(w.r)
	}
	n, err := w.r.Read(p[:min(int64(len(p)), w.left)])
	w.n += int64(n)
	w.left -= int64(n)
	w.window.Add(int64(n))
	if w.conn != nil {
		w.conn.allow(2 * int64(n))
	}
	return n, err
}

// beyond returns the error with which r ends if it ends here, and errSize if
// there is more.
func beyond(r io.Reader) error {
	var one [1]byte
	for range 100 {
		if n, err := r.Read(one[:]); n > 0 {
			break
		} else if err != nil {
			return err
		}
	}
	return errSize
}

// A layer limits what lies between two encodings: it is the encoded body for
// the next, and may be a bomb even if the final result is small.
type layer struct {
	r       io.Reader
	w       *wire
	n, left int64
}

func (l *layer) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, beyond(l.r)
	}
	n, err := l.r.Read(p[:min(int64(len(p)), l.left)])
	l.n += int64(n)
	l.left -= int64(n)
	if tooDense(l.n, l.w.n) {
		err = errSize
	}
	return n, err
}

// tooDense reports whether that many bytes cannot honestly be the content of so
// few.
func tooDense(decoded, encoded int64) bool {
	return decoded > ratioFloor && decoded > maxRatio*encoded
}

// readBody reads and decodes a body of at most limit bytes, of which at most
// encoded come over the wire. It returns what it could read, even with an
// error: one that is errSize if a limit was reached, another if the body ended
// early. It calls stop if the body arrives too slowly.
func (c *Client) readBody(resp *http.Response, from *conn, limit, encoded int64, stop context.CancelCauseFunc) (body []byte, wireBytes int64, err error) {
	names, err := codings(resp.Header["Content-Encoding"])
	if err != nil {
		return nil, 0, err
	}
	w := &wire{r: resp.Body, conn: from, left: encoded}
	defer func() { wireBytes = w.n }()
	if c.o.Limits.MinRate > 0 && c.o.Limits.RateWindow > 0 {
		defer c.watchRate(w, stop)()
	}
	var src io.Reader = w
	for i := len(names) - 1; i >= 0; i-- {
		if i < len(names)-1 {
			src = &layer{r: src, w: w, left: encoded}
		}
		d, ok := c.decoders.Get().(*decoder)
		if !ok {
			d = new(decoder)
		}
		defer c.decoders.Put(d)
		r, err := d.reader(names[i], src)
		defer d.release()
		if err != nil {
			return nil, 0, err
		}
		defer r.Close()
		src = r
	}
	body, err = c.readAll(src, w, limit)
	return body, 0, err // the deferred call counts
}

// readAll reads src, which reads w. Apart from reusable scratch space, it
// allocates only what it returns.
func (c *Client) readAll(src io.Reader, w *wire, limit int64) (body []byte, err error) {
	const most = 256 << 10 // of scratch space worth keeping
	scratch, ok := c.scratch.Get().(*[]byte)
	if !ok {
		scratch = new([]byte)
		*scratch = make([]byte, 32<<10)
	}
	buf, n := *scratch, 0
	for err == nil {
		if n == len(buf) {
			// One byte more than the limit distinguishes a truncated body from one that
			// fits.
			grown := make([]byte, min(int64(2*len(buf)), limit+1))
			copy(grown, buf)
			buf = grown
		}
		var m int
		m, err = src.Read(buf[n:min(int64(len(buf)), limit+1)])
		n += m
		switch {
		case int64(n) > limit:
			n, err = int(limit), errSize
		case tooDense(int64(n), w.n):
			err = errSize
		}
	}
	if err == io.EOF {
		err = nil
	}
	if len(buf) > most {
		return buf[:n:n], err
	}
	*scratch = buf
	defer c.scratch.Put(scratch)
	if n == 0 {
		return nil, err
	}
	return append(make([]byte, 0, n), buf[:n]...), err
}

// watchRate calls stop when fewer bytes arrive in a window than MinRate allows.
// The returned function ends the watch.
func (c *Client) watchRate(w *wire, stop context.CancelCauseFunc) (end func()) {
	least := int64(math.Ceil(float64(c.o.Limits.MinRate) * c.o.Limits.RateWindow.Seconds()))
	var (
		mu    sync.Mutex
		ended bool
		timer *time.Timer
	)
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(c.o.Limits.RateWindow, func() {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case ended:
		case w.window.Swap(0) < least:
			stop(errSlow)
		default:
			timer.Reset(c.o.Limits.RateWindow)
		}
	})
	return func() {
		mu.Lock()
		defer mu.Unlock()
		ended = true
		timer.Stop()
	}
}
