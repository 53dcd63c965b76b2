//go:build servers

package s3store

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/recrawl/recrawl/segment/segmenttest"
	"github.com/recrawl/recrawl/stores/s3store/s3test"
)

// moto returns the S3 server of moto, a program in Python, which is installed below the user's
// cache folder if it is not in the path.
func moto(t *testing.T) string {
	if program, err := exec.LookPath("moto_server"); err == nil {
		return program
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = t.TempDir()
	}
	dir := filepath.Join(cache, "recrawl-test", "moto-1")
	complete := filepath.Join(dir, "complete")
	if _, err := os.Stat(complete); err == nil {
		return filepath.Join(dir, "bin", "moto_server")
	}
	for _, command := range [][]string{
		{"python3", "-m", "venv", "--clear", dir},
		{filepath.Join(dir, "bin", "pip"), "install", "-q", "moto[s3,server]==5.2.1"},
	} {
		if out, err := exec.CommandContext(t.Context(), command[0], command[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", command, err, out)
		}
	}
	if err := os.WriteFile(complete, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "bin", "moto_server")
}

// startMoto starts the server and returns its URL.
func startMoto(t *testing.T) string {
	program := moto(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_, port, _ := net.SplitHostPort(address)
	l.Close()
	server := exec.CommandContext(context.Background(), program, "-H", "127.0.0.1", "-p", port)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Process.Kill(); server.Wait() })
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		c, err := net.Dial("tcp", address)
		if err == nil {
			c.Close()
			return "http://" + address
		}
		if time.Since(began) > time.Minute {
			t.Fatal(err)
		}
	}
}

func TestKitWithMoto(t *testing.T) {
	o := optionsAt(startMoto(t))
	o.attempt = time.Minute
	b, err := newBucket(o)
	if err == nil {
		err = b.client.MakeBucket(t.Context(), s3test.Bucket, minio.MakeBucketOptions{Region: o.Region})
	}
	if err != nil {
		t.Fatal(err)
	}
	h := harness(t, o)
	h.Tear, h.Damage = nil, nil // as with any server
	segmenttest.Run(t, h)
}
