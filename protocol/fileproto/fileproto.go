// Package fileproto visits file URLs below a root: files are pages, and directories
// are lists of links to their entries. Nothing outside of the root can be reached,
// by no URL and no symbolic link. Start with [Open]: a [Client] is a
// [protocol.Protocol].
package fileproto

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/protocol"
)

// Options limit a visit. In both limits, zero means the default and negative
// none.
type Options struct {
	// MaxBytes limits the body; what exceeds it is cut off and the page
	// flagged. Zero means 8 MiB. (Nutch: file.content.limit.)
	MaxBytes int64
	// MaxEntries limits how many entries of a directory are listed; zero means
	// 100,000.
	MaxEntries int
	// Now is the clock of recorded times; nil means time.Now.
	Now func() time.Time
}

// A Client is a [protocol.Protocol] for file URLs without a host or with the
// host localhost; those of other hosts, other schemes, and anything that is
// neither a file nor a directory are Refused. Query and fragment are ignored.
// It may be used from many goroutines at once.
//
// The validators of a page come from the time and size of its file; a file
// without a time has none. A directory whose URL does not end with a slash is
// MovedPerm to the URL that does, so that relative links work.
type Client struct {
	fsys   fs.FS
	prefix string // of URL paths; ends in a slash
	root   *os.Root
	o      Options
}

var _ protocol.Protocol = (*Client)(nil)

// Open returns a client for the files below a directory, whose URLs begin with
// its absolute path: Open("/srv/docs") serves file:///srv/docs/a.html. It must
// be closed.
func Open(dir string, o Options) (*Client, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("fileproto: open %s: %w", dir, err)
	}
	root, err := os.OpenRoot(abs)
	if err != nil {
		return nil, fmt.Errorf("fileproto: %w", err)
	}
	c := New(root.FS(), filepath.ToSlash(abs), o)
	c.root = root
	return c, nil
}

// New returns a client for a file system whose root has the URL path prefix. The
// client is as safe as fsys: os.DirFS follows symbolic links out of its root.
func New(fsys fs.FS, prefix string, o Options) *Client {
	if o.MaxBytes == 0 {
		o.MaxBytes = 8 << 20
	}
	if o.MaxEntries == 0 {
		o.MaxEntries = 100_000
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	prefix = path.Clean("/" + prefix)
	if prefix != "/" {
		prefix += "/"
	}
	return &Client{fsys: fsys, prefix: prefix, o: o}
}

// URL returns the URL of the root.
func (c *Client) URL() string {
	return (&url.URL{Scheme: "file", Path: c.prefix}).String()
}

// Close closes the root that Open opened.
func (c *Client) Close() error {
	if c.root == nil {
		return nil
	}
	return c.root.Close()
}

// Fetch reads one file or lists one directory.
func (c *Client) Fetch(ctx context.Context, req protocol.Request) (protocol.Response, error) {
	start := time.Now()
	r := protocol.Response{Content: page.Content{URL: req.URL, Time: c.o.Now()}}
	err := ctx.Err()
	if err == nil {
		err = c.visit(ctx, req, &r)
	}
	if err != nil {
		return protocol.Response{}, fmt.Errorf("fileproto: fetch %q: %w", req.URL, err)
	}
	r.Elapsed = time.Since(start)
	return r, nil
}

// visit fills in r. It returns an error only if the visit could not be made.
func (c *Client) visit(ctx context.Context, req protocol.Request, r *protocol.Response) error {
	name, slash, why := c.name(req.URL)
	if why != "" {
		r.Outcome = protocol.Outcome{Code: protocol.Refused, Reason: why}
		return nil
	}
	// Look at a name before opening it: opening a pipe may block forever.
	info, err := fs.Stat(c.fsys, name)
	if err != nil {
		return failed(r, err)
	}
	switch {
	case info.IsDir() && !slash:
		r.Outcome = protocol.Outcome{Code: protocol.MovedPerm, Location: c.dirURL(name)}
		return nil
	case !info.IsDir() && slash:
		r.Outcome = protocol.Outcome{Code: protocol.NotFound, Reason: "file: not a directory"}
		return nil
	case !info.IsDir() && !info.Mode().IsRegular():
		r.Outcome = protocol.Outcome{Code: protocol.Refused, Reason: "file: neither a file nor a directory"}
		return nil
	}
	modified := info.ModTime()
	if !modified.IsZero() {
		size := info.Size()
		if info.IsDir() {
			size = 0 // meaningless, and differs between file systems
		}
		r.ETag = fmt.Sprintf(`"%x-%x"`, modified.UnixNano(), size)
		r.LastModified = modified.UTC().Format(http.TimeFormat)
		r.Modified = modified.UTC()
		if r.Modified.After(r.Content.Time) {
			r.Modified = r.Content.Time
		}
		if current(req, r) {
			r.Outcome.Code = protocol.NotModified
			return nil
		}
	}
	f, err := c.fsys.Open(name)
	if err != nil {
		return failed(r, err)
	}
	defer f.Close()
	limit := c.o.MaxBytes
	if req.MaxBytes != 0 {
		limit = req.MaxBytes
	}
	var body []byte
	if info.IsDir() {
		r.Content.Type = "text/html; charset=utf-8"
		body, r.Content.Truncated, err = c.list(ctx, f, name)
	} else {
		r.Content.Type = typeOf(name)
		body, err = read(ctx, f, info.Size(), limit)
	}
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return failed(r, err)
	}
	if limit >= 0 && int64(len(body)) > limit {
		body, r.Content.Truncated = body[:limit:limit], true
	}
	r.Outcome.Code = protocol.Success
	r.Content.Body, r.Bytes = body, int64(len(body))
	return nil
}

// current reports whether the request carries the validators of the response:
// the tag or, if there is none, the time.
func current(req protocol.Request, r *protocol.Response) bool {
	if req.ETag != "" {
		return req.ETag == r.ETag
	}
	return req.LastModified == r.LastModified
}

// name returns the file name that a URL stands for, and whether the URL ends in
// a slash; or why it stands for nothing.
func (c *Client) name(raw string) (name string, slash bool, why string) {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return "", false, "url: cannot be parsed"
	case u.Scheme != "file":
		return "", false, "url: scheme is not file"
	case u.User != nil || u.Host != "" && u.Host != "localhost":
		return "", false, "url: file of another host"
	case !strings.HasPrefix(u.Path+"/", c.prefix):
		return "", false, "file: outside of the root"
	}
	name = strings.TrimPrefix(u.Path, strings.TrimSuffix(c.prefix, "/"))
	slash = strings.HasSuffix(name, "/")
	if name = strings.TrimSuffix(strings.TrimPrefix(name, "/"), "/"); name == "" {
		name = "."
	}
	// Removing dots from a path is the job of URL normalizers; here they would
	// only be a way out.
	if !fs.ValidPath(name) || strings.ContainsRune(name, 0) {
		return "", false, "file: not a valid path"
	}
	return name, slash, ""
}

func (c *Client) dirURL(name string) string {
	p := c.prefix
	if name != "." {
		p += name + "/"
	}
	return (&url.URL{Scheme: "file", Path: p}).String()
}

// failed turns a file error into an outcome; it returns the error only if this
// machine lacks a resource or the root is closed.
func failed(r *protocol.Response, err error) error {
	r.ETag, r.LastModified, r.Modified, r.Content.Type = "", "", time.Time{}, ""
	o := &r.Outcome
	switch {
	case errors.Is(err, fs.ErrClosed), errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE), errors.Is(err, syscall.ENOMEM):
		return err
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ENAMETOOLONG):
		o.Code, o.Reason = protocol.NotFound, "file: not found"
	case errors.Is(err, fs.ErrPermission):
		o.Code, o.Reason = protocol.Denied, "file: permission denied"
	case strings.HasSuffix(err.Error(), "path escapes from parent"):
		// Package os has no name for this error.
		o.Code, o.Reason = protocol.Refused, "file: a link leaves the root"
	default:
		o.Code, o.Reason = protocol.Failed, "file: cannot be read"
	}
	return nil
}

// read reads a file of about size bytes, up to the limit and one byte more.
func read(ctx context.Context, f io.Reader, size, limit int64) ([]byte, error) {
	if limit >= 0 {
		f = io.LimitReader(f, limit+1)
		size = min(size, limit)
	}
	// The size is a hint: files grow, and those of /proc have none.
	buf := make([]byte, 0, min(size, 1<<20)+512)
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := f.Read(buf[len(buf):min(cap(buf), len(buf)+256<<10)])
		buf = buf[:len(buf)+n]
		if err == io.EOF {
			return buf, nil
		}
		if err != nil {
			return nil, err
		}
	}
}
