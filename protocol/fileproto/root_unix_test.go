//go:build unix

package fileproto_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/fileproto"
)

func TestNothingOutsideOfTheRoot(t *testing.T) {
	out := t.TempDir()
	root := filepath.Join(out, "root")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Mkdir(root, 0o700))
	must(os.WriteFile(filepath.Join(out, "secret"), []byte("secret"), 0o600))
	must(os.WriteFile(filepath.Join(root, "file"), []byte("file"), 0o600))
	must(os.Symlink("../secret", filepath.Join(root, "up")))
	must(os.Symlink(filepath.Join(out, "secret"), filepath.Join(root, "abs")))
	must(os.Symlink("..", filepath.Join(root, "dir")))
	must(os.Symlink("file", filepath.Join(root, "within")))
	must(os.Symlink("loop", filepath.Join(root, "loop")))
	must(syscall.Mkfifo(filepath.Join(root, "pipe"), 0o600))
	c, err := fileproto.Open(root, fileproto.Options{})
	must(err)
	base := c.URL()
	for _, name := range []string{"up", "abs", "dir/secret", "dir/"} {
		r := get(t, c, protocol.Request{URL: base + name}, protocol.Refused, "file: a link leaves the root")
		if len(r.Content.Body) > 0 {
			t.Errorf("%s: body %q", name, r.Content.Body)
		}
	}
	r := get(t, c, protocol.Request{URL: base + "within"}, protocol.Success, "")
	if string(r.Content.Body) != "file" {
		t.Errorf("within: %q", r.Content.Body)
	}
	get(t, c, protocol.Request{URL: base + "loop"}, protocol.Failed, "file: cannot be read")
	get(t, c, protocol.Request{URL: base + "pipe"}, protocol.Refused, "file: neither a file nor a directory")
	get(t, c, protocol.Request{URL: base + strings.Repeat("x", 10_000)}, protocol.NotFound, "file: not found")
	must(c.Close())
	if _, err := c.Fetch(context.Background(), protocol.Request{URL: base + "file"}); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
	if _, err := fileproto.Open(filepath.Join(out, "none"), fileproto.Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no such root: %v", err)
	}
}
