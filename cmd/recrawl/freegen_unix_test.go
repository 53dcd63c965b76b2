//go:build unix

package main_test

import (
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
)

// A pipe can be opened once: closing it loses its content.
func TestFreegenFromAPipe(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "urls")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() {
		for text := "http://a.example/\n"; ; text = "" { // a second open gets nothing
			f, err := os.OpenFile(pipe, os.O_WRONLY, 0)
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = f.WriteString(text)
			_ = f.Close()
			select {
			case <-done:
				return
			default:
			}
		}
	})
	defer func() {
		close(done)
		f, err := os.OpenFile(pipe, os.O_RDONLY|syscall.O_NONBLOCK, 0) // for which the writer waits
		if err != nil {
			t.Fatal(err)
		}
		writer.Wait()
		_ = f.Close()
	}()
	ok(t, "freegen", "-d", t.TempDir(), "-now", frozen, pipe)
}
