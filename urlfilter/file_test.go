package urlfilter

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func write(t testing.TB, path, content string, age time.Duration) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
		t.Fatal(err)
	}
	at := time.Now().Add(-age)
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
}

// reload reads a filter or normalizer from its file again.
func reload(v any) (changed bool, err error) { return v.(Reloader).Reload() }

func TestFilterFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.txt")
	if _, err := OpenFilter(path, ParsePrefix, Options{}); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), path) {
		t.Fatalf("a missing file: %v", err)
	}
	write(t, path, "+a\n-[", time.Hour)
	_, err := OpenFilter(path, ParseRegex, Options{})
	var bad *SyntaxError
	if !errors.As(err, &bad) || bad.File != path || bad.Line != 2 || !strings.HasPrefix(err.Error(), "urlfilter: "+path+":2: ") {
		t.Fatalf("a bad file: %v", err)
	}

	write(t, path, "+a", time.Hour)
	f := must[Filter](t)(OpenFilter(path, ParseRegex, Options{}))
	check := func(step string, want string, wantChanged bool, wantErr string) {
		t.Helper()
		changed, err := reload(f)
		if changed != wantChanged || (err == nil) != (wantErr == "") || err != nil && !strings.Contains(err.Error(), wantErr) {
			t.Errorf("%s: %v, %v", step, changed, err)
		}
		for _, u := range []string{"a", "b", "c"} {
			if f.Accept(u) != strings.Contains(want, u) {
				t.Errorf("%s: %s: %v", step, u, f.Accept(u))
			}
		}
	}
	check("nothing happened", "a", false, "")
	write(t, path, "+b", 2*time.Hour) // the same size, an older time
	check("replaced", "b", true, "")
	write(t, path, "+b", 3*time.Hour)
	check("touched", "b", false, "")
	write(t, path+".new", "+a", 3*time.Hour)
	info, _ := os.Stat(path)
	os.Chtimes(path+".new", info.ModTime(), info.ModTime())
	os.Rename(path+".new", path)
	check("another file, of the same size and time", "a", true, "")
	write(t, path, "+c", 0)
	check("now", "c", true, "")
	info, _ = os.Stat(path)
	write(t, path, "+a", 0)
	os.Chtimes(path, info.ModTime(), info.ModTime())
	check("again within a tick of the clock", "a", true, "")
	write(t, path, "+b\nx", time.Hour)
	check("got bad", "a", false, path+":2: ")
	check("still bad", "a", false, path+":2: ")
	os.Remove(path)
	check("gone", "a", false, path)
	os.Mkdir(path, 0o777)
	check("a directory", "a", false, "is a directory")
	os.Remove(path)
	write(t, path, "+a", time.Hour)
	check("back as it was", "a", false, "")
	if describe(f) != "regex filter of 1 rules ("+path+")" {
		t.Error(f)
	}
}

// readAll parses a file into a filter or normalizer that is its content.
type content string

func (c content) Accept(u string) bool                        { return strings.Contains(string(c), u) }
func (c content) Normalize(_ Scope, u string) (string, error) { return u + string(c), nil }

func readAll(r io.Reader, _ Options) (Normalizer, error) {
	b, err := io.ReadAll(r)
	if string(b) == "bad" {
		err = errors.New("bad")
	}
	return content(b), err
}

func TestNormalizerFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.txt")
	write(t, path, "bad", time.Hour)
	if _, err := OpenNormalizer(path, readAll, Options{}); fmt.Sprint(err) != "urlfilter: "+path+": bad" {
		t.Error(err)
	}
	write(t, path, "x", time.Hour)
	f := must[Normalizer](t)(OpenNormalizer(path, readAll, Options{}))
	write(t, path, "yy", time.Hour)
	if got, err := f.Normalize(Outlink, "a"); got != "ax" || err != nil {
		t.Error(got, err)
	}
	if changed, err := reload(f); !changed || err != nil {
		t.Error(changed, err)
	}
	if got, err := f.Normalize(Outlink, "a"); got != "ayy" || err != nil || explain(f, "a") != "" {
		t.Error(got, err)
	}
	if want := "urlfilter.content (" + path + ")"; describe(f) != want {
		t.Error(f)
	}
}

// Each answer follows one state of the file or the other, whichever caller reloads.
func TestReloadInUse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.txt")
	states := []string{"+a", "+a\n+b"}
	write(t, path, states[0], time.Hour)
	f := must[Filter](t)(OpenFilter(path, ParseRegex, Options{}))
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for range 200 {
				if !f.Accept("a") || f.Accept("c") {
					t.Error("an answer of no state")
				}
				if i == 0 {
					reload(f)
				}
			}
		})
	}
	for i := range 20 {
		// Replaced as editors do, so that no reader meets half a file.
		write(t, path+".new", states[i%2], time.Hour)
		if err := os.Rename(path+".new", path); err != nil {
			t.Error(err)
		}
		if _, err := reload(f); err != nil {
			t.Error(err)
		}
	}
	wg.Wait()
}
