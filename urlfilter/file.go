package urlfilter

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A FilterFile is a [Filter] whose rules are in a file. It is made by one of
// the functions named after Nutch's formats, such as [RegexFile], or by
// [OpenFilter] for a custom format. Its Explain names file and line.
//
// It uses the same rules until Reload finds others. It may be used and reloaded
// from many goroutines at once; each answer follows the rules of a single
// version of the file.
type FilterFile struct{ file[Filter] }

// OpenFilter reads a file of rules. An error names the file and, if it is a
// [*SyntaxError], the line.
func OpenFilter[F Filter](path string, parse func(io.Reader) (F, error)) (*FilterFile, error) {
	f := new(FilterFile)
	if err := f.open(path, false, func(r io.Reader) (Filter, error) { return parse(r) }); err != nil {
		return nil, err
	}
	return f, nil
}

// Accept reports whether the rules accept the URL.
func (f *FilterFile) Accept(url string) bool { return f.current().Accept(url) }

// Filter returns the filter as it was last read.
func (f *FilterFile) Filter() Filter { return f.current() }

// A NormalizerFile is to a [Normalizer] what a [FilterFile] is to a filter.
type NormalizerFile struct{ file[Normalizer] }

// OpenNormalizer reads a file of rules. An error names the file and, if it is a
// [*SyntaxError], the line.
func OpenNormalizer[N Normalizer](path string, parse func(io.Reader) (N, error)) (*NormalizerFile, error) {
	f := new(NormalizerFile)
	if err := f.open(path, false, func(r io.Reader) (Normalizer, error) { return parse(r) }); err != nil {
		return nil, err
	}
	return f, nil
}

// Normalize returns the normal form of a URL by the rules.
func (f *NormalizerFile) Normalize(scope Scope, url string) (string, error) {
	return f.current().Normalize(scope, url)
}

// Normalizer returns the normalizer as it was last read.
func (f *NormalizerFile) Normalizer() Normalizer { return f.current() }

// file holds what was parsed from a file, and which version of the file that
// was.
type file[T any] struct {
	path     string
	optional bool // a file that never existed counts as empty
	parse    func(io.Reader) (T, error)
	value    atomic.Pointer[T]

	mu      sync.Mutex // of Reload
	info    fs.FileInfo
	settled bool // info suffices to tell that nothing has changed
	hash    [sha256.Size]byte
	missing bool
}

func (f *file[T]) current() T { return *f.value.Load() }

// racy is how coarse the clock of a file system may be: a file that was changed
// just before it was read may change again and keep its time.
const racy = 2 * time.Second

func (f *file[T]) open(path string, optional bool, parse func(io.Reader) (T, error)) error {
	f.path, f.optional, f.parse = path, optional, parse
	_, err := f.Reload()
	return err
}

// Reload reads the file again if it was replaced, or if its size, its time or, where these
// cannot tell, its content has changed, and reports whether the content had. On an error the
// rules are kept, and every Reload reports the error again until the file is fixed.
func (f *file[T]) Reload() (changed bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	began := time.Now()
	first := f.value.Load() == nil
	info, err := os.Stat(f.path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && f.optional && (first || f.missing):
		if !first {
			return false, nil
		}
		f.missing = true
		return f.set(nil)
	case err != nil:
		return false, fmt.Errorf("urlfilter: %w", err) // a PathError
	case info.IsDir():
		return false, fmt.Errorf("urlfilter: %s is a directory", f.path)
	}
	if f.settled && info.Size() == f.info.Size() && info.ModTime().Equal(f.info.ModTime()) && os.SameFile(info, f.info) {
		return false, nil
	}
	content, err := os.ReadFile(f.path)
	if err != nil {
		return false, fmt.Errorf("urlfilter: %w", err)
	}
	hash := sha256.Sum256(content)
	if first || f.missing || hash != f.hash {
		if changed, err = f.set(content); err != nil {
			return false, err
		}
	}
	// The file may have changed between Stat and ReadFile; then its size or
	// time differs the next time.
	f.info, f.hash, f.missing = info, hash, false
	f.settled = info.ModTime().Before(began.Add(-racy))
	return changed, nil
}

func (f *file[T]) set(content []byte) (changed bool, err error) {
	v, err := f.parse(bytes.NewReader(content))
	if err != nil {
		return false, inFile(f.path, err)
	}
	f.value.Store(&v)
	return true, nil
}

// Path returns the name of the file.
func (f *file[T]) Path() string { return f.path }

// Explain returns the rule that decides about a URL, as "path:line: rule"; empty
// if none does.
func (f *file[T]) Explain(url string) string {
	e, ok := any(f.current()).(Explainer)
	if !ok {
		return ""
	}
	rule := e.Explain(url)
	if rule == "" {
		return ""
	}
	if at, ok := strings.CutPrefix(rule, "line "); ok {
		return f.path + ":" + at
	}
	return f.path + ": " + rule
}

// String describes the rules and names the file.
func (f *file[T]) String() string { return describe(f.current()) + " (" + f.path + ")" }

// describe names a filter or normalizer.
func describe(v any) string {
	if s, ok := v.(fmt.Stringer); ok {
		return s.String()
	}
	return fmt.Sprintf("%T", v)
}

// A SyntaxError reports a line of rules that cannot be parsed.
type SyntaxError struct {
	// File is the path; empty if the rules come from elsewhere.
	File string
	// Line counts from 1.
	Line int
	// Err says what is wrong.
	Err error
}

// Error names file and line.
func (e *SyntaxError) Error() string {
	if e.File == "" {
		return fmt.Sprintf("urlfilter: line %d: %v", e.Line, e.Err)
	}
	return fmt.Sprintf("urlfilter: %s:%d: %v", e.File, e.Line, e.Err)
}

// Unwrap returns what is wrong.
func (e *SyntaxError) Unwrap() error { return e.Err }

// inFile adds to an error the file it is about.
func inFile(path string, err error) error {
	var s *SyntaxError
	if errors.As(err, &s) && s.File == "" {
		return &SyntaxError{path, s.Line, s.Err}
	}
	return fmt.Errorf("urlfilter: %s: %w", path, err)
}
