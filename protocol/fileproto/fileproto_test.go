package fileproto_test

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/fileproto"
	"github.com/recrawl/recrawl/protocol/protocoltest"
)

// TestProtocol runs the kit on a directory of the machine. A file system cannot
// say that it is busy, or promise more than it has. Entity tags it makes itself.
func TestProtocol(t *testing.T) {
	var root string
	protocoltest.Run(t, protocoltest.Harness{
		New: func() (protocol.Protocol, error) { return fileproto.Open(root, fileproto.Options{}) },
		Serve: func(pages map[string]protocoltest.Page) (string, func(), error) {
			root = t.TempDir()
			for name, p := range pages {
				if p.Code != 0 || p.Stall {
					return "", nil, errors.ErrUnsupported
				}
				file := filepath.Join(root, filepath.FromSlash(name))
				if err := os.WriteFile(file, p.Body, 0o600); err != nil {
					return "", nil, err
				}
				if p.LastModified != "" {
					at, err := http.ParseTime(p.LastModified)
					if err != nil {
						return "", nil, err
					}
					if err := os.Chtimes(file, at, at); err != nil {
						return "", nil, err
					}
				}
			}
			return "file://" + filepath.ToSlash(root), func() { os.RemoveAll(root) }, nil
		},
	})
}

func get(t *testing.T, c *fileproto.Client, req protocol.Request, code protocol.Code, reason string) protocol.Response {
	t.Helper()
	r, err := c.Fetch(context.Background(), req)
	if err != nil {
		t.Fatal(err)
	}
	if r.Outcome.Code != code || r.Outcome.Reason != reason {
		t.Errorf("%s: outcome %v %q, want %v %q", req.URL, r.Outcome.Code, r.Outcome.Reason, code, reason)
	}
	return r
}

var april = time.Date(2026, 4, 1, 12, 0, 0, 123, time.UTC)

var site = fstest.MapFS{
	"index.html":          {Data: []byte("<p>hello"), ModTime: april},
	"dir/a.TXT":           {Data: []byte("a"), ModTime: april},
	"dir/sub/b":           {Data: []byte("b"), ModTime: april},
	"dir":                 {Mode: fs.ModeDir, ModTime: april},
	"dir/javascript:x":    {Data: []byte("x")},
	`dir/"><b>&?#%2f.pdf`: {Data: []byte("x")},
	"dir/\xff":            {Data: []byte("x")}, // not listed
	"timeless":            {Data: []byte("x")},
	"device":              {Mode: fs.ModeDevice},
}

func TestFiles(t *testing.T) {
	c := fileproto.New(site, "/srv/docs", fileproto.Options{})
	if c.URL() != "file:///srv/docs/" {
		t.Errorf("URL %q", c.URL())
	}
	for url, want := range map[string]struct {
		code         protocol.Code
		reason, body string
		contentType  string
	}{
		"file:///srv/docs/index.html":            {protocol.Success, "", "<p>hello", "text/html"},
		"file://localhost/srv/docs/index.html":   {protocol.Success, "", "<p>hello", "text/html"},
		"file:/srv/docs/index.html":              {protocol.Success, "", "<p>hello", "text/html"},
		"FILE:///srv/docs/index.html?q#f":        {protocol.Success, "", "<p>hello", "text/html"},
		"file:///srv/docs/dir/%61.TXT":           {protocol.Success, "", "a", "text/plain"},
		"file:///srv/docs/dir/sub/b":             {protocol.Success, "", "b", ""},
		"file:///srv/docs/dir/javascript:x":      {protocol.Success, "", "x", ""},
		"file:///srv/docs/nothing":               {protocol.NotFound, "file: not found", "", ""},
		"file:///srv/docs/index.html/":           {protocol.NotFound, "file: not a directory", "", ""},
		"file:///srv/docs/index.html/x":          {protocol.NotFound, "file: not found", "", ""},
		"file:///srv/docs/device":                {protocol.Refused, "file: neither a file nor a directory", "", ""},
		"file:///srv/docs/../index.html":         {protocol.Refused, "file: not a valid path", "", ""},
		"file:///srv/docs/%2e%2e/docs/index":     {protocol.Refused, "file: not a valid path", "", ""},
		"file:///srv/docs//index.html":           {protocol.Refused, "file: not a valid path", "", ""},
		"file:///srv/docs/a%00b":                 {protocol.Refused, "file: not a valid path", "", ""},
		"file:///etc/passwd":                     {protocol.Refused, "file: outside of the root", "", ""},
		"file:///srv/docs2/index.html":           {protocol.Refused, "file: outside of the root", "", ""},
		"file:///":                               {protocol.Refused, "file: outside of the root", "", ""},
		"file://other.example/srv/docs/":         {protocol.Refused, "url: file of another host", "", ""},
		"file://u@localhost/srv/docs/index.html": {protocol.Refused, "url: file of another host", "", ""},
		"http://localhost/srv/docs/index.html":   {protocol.Refused, "url: scheme is not file", "", ""},
		"file:///%zz":                            {protocol.Refused, "url: cannot be parsed", "", ""},
	} {
		r := get(t, c, protocol.Request{URL: url}, want.code, want.reason)
		if string(r.Content.Body) != want.body || r.Content.Type != want.contentType {
			t.Errorf("%s: %q of type %q, want %q of %q", url, r.Content.Body, r.Content.Type, want.body, want.contentType)
		}
	}
}

func TestDirectories(t *testing.T) {
	c := fileproto.New(site, "srv/docs/", fileproto.Options{})
	for url, want := range map[string]string{
		"file:///srv/docs":         "file:///srv/docs/",
		"file:///srv/docs/dir":     "file:///srv/docs/dir/",
		"file:///srv/docs/dir/sub": "file:///srv/docs/dir/sub/",
	} {
		if r := get(t, c, protocol.Request{URL: url}, protocol.MovedPerm, ""); r.Outcome.Location != want {
			t.Errorf("%s: location %q, want %q", url, r.Outcome.Location, want)
		}
	}
	r := get(t, c, protocol.Request{URL: "file:///srv/docs/dir/"}, protocol.Success, "")
	const want = `<!DOCTYPE html>
<title>Index of /srv/docs/dir</title>
<ul>
<li><a href="./%22%3E%3Cb%3E&amp;%3F%23%252f.pdf">&#34;&gt;&lt;b&gt;&amp;?#%2f.pdf</a>
<li><a href="./a.TXT">a.TXT</a>
<li><a href="./javascript:x">javascript:x</a>
<li><a href="./sub/">sub/</a>
</ul>
`
	if string(r.Content.Body) != want || r.Content.Type != "text/html; charset=utf-8" || r.Content.Truncated {
		t.Errorf("%s: %s", r.Content.Type, r.Content.Body)
	}
	if r.ETag == "" || !r.Modified.Equal(april) {
		t.Errorf("validators %q, %v", r.ETag, r.Modified)
	}
	// Each link leads to its file.
	base, _ := url.Parse("file:///srv/docs/dir/")
	for _, part := range strings.Split(want, `href="`)[1:] {
		href, _, _ := strings.Cut(strings.ReplaceAll(part, "&amp;", "&"), `"`)
		u, err := base.Parse(href)
		if err != nil {
			t.Fatal(err)
		}
		get(t, c, protocol.Request{URL: u.String()}, protocol.Success, "")
	}
	short := fileproto.New(site, "/", fileproto.Options{MaxEntries: 2})
	r = get(t, short, protocol.Request{URL: "file:///dir/"}, protocol.Success, "")
	if n := strings.Count(string(r.Content.Body), "<li>"); n != 2 || !r.Content.Truncated {
		t.Errorf("%d entries, truncated %v", n, r.Content.Truncated)
	}
	r = get(t, c, protocol.Request{URL: "file:///srv/docs/dir/", MaxBytes: 20}, protocol.Success, "")
	if len(r.Content.Body) != 20 || !r.Content.Truncated {
		t.Errorf("%q, truncated %v", r.Content.Body, r.Content.Truncated)
	}
}

func TestValidators(t *testing.T) {
	c := fileproto.New(site, "/", fileproto.Options{})
	const url = "file:///index.html"
	first := get(t, c, protocol.Request{URL: url}, protocol.Success, "")
	if first.LastModified != "Wed, 01 Apr 2026 12:00:00 GMT" || !first.Modified.Equal(april) || first.ETag == "" {
		t.Errorf("%q, %q, %v", first.ETag, first.LastModified, first.Modified)
	}
	r := get(t, c, protocol.Request{URL: url, ETag: first.ETag, LastModified: "other"}, protocol.NotModified, "")
	if r.Content.Body != nil || r.ETag != first.ETag {
		t.Errorf("%+v", r)
	}
	get(t, c, protocol.Request{URL: url, LastModified: first.LastModified}, protocol.NotModified, "")
	get(t, c, protocol.Request{URL: url, ETag: `"other"`, LastModified: first.LastModified}, protocol.Success, "")
	get(t, c, protocol.Request{URL: url, LastModified: "other"}, protocol.Success, "")

	r = get(t, c, protocol.Request{URL: "file:///timeless"}, protocol.Success, "")
	if r.ETag != "" || r.LastModified != "" || !r.Modified.IsZero() {
		t.Errorf("a file without a time: %q, %q, %v", r.ETag, r.LastModified, r.Modified)
	}
}
