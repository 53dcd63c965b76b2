package urlfilter

import (
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// OpenFilter reads a filter from a file, with a function such as [ParseRegex] for one of Nutch's
// formats, or one for a custom format. A file whose name ends in .gz or .bz2 is decompressed, and
// the path may be a file URL of this machine. An error names the file and, if it is a [*SyntaxError], the line.
//
// The filter is a [Reloader]: it uses the same rules until Reload finds others. It may be used and
// reloaded from many goroutines at once; each answer follows the rules of a single version of the
// file. Its Explain names file and line.
//
// A list without rules is an error, except for lists that only reject: losing a file must not change
// what is crawled. NutchCompat treats a missing list or one without rules as an empty one, which
// rejects everything in the prefix, suffix, regex and automaton filters and accepts everything in
// the two domain filters.
func OpenFilter(path string, parse func(io.Reader, Options) (Filter, error), o Options) (Filter, error) {
	path, err := localPath(path)
	if err != nil {
		return nil, err
	}
	// A list can be empty; a filter of another kind has no empty form.
	type list interface{ empty() bool }
	optional := false
	if o.NutchCompat {
		if f, err := parse(strings.NewReader(""), o); err == nil {
			_, optional = f.(list)
		}
	}
	return openFilter(path, optional, func(r io.Reader) (Filter, error) {
		f, err := parse(r, o)
		if err != nil {
			return nil, err
		}
		if l, ok := f.(list); ok && l.empty() && !o.NutchCompat {
			return nil, errNoRules
		}
		return f, nil
	})
}

var errNoRules = errors.New("no rules")

// OpenNormalizer does for a normalizer, with a function such as [ParseRegexNormalizer], what
// [OpenFilter] does for a filter. A file without rules is one that changes nothing.
func OpenNormalizer(path string, parse func(io.Reader, Options) (Normalizer, error), o Options) (Normalizer, error) {
	n := new(normalizerFile)
	if err := n.open(path, false, func(r io.Reader) (Normalizer, error) { return parse(r, o) }); err != nil {
		return nil, err
	}
	return n, nil
}

func openFilter(path string, optional bool, parse func(io.Reader) (Filter, error)) (*filterFile, error) {
	f := new(filterFile)
	if err := f.open(path, optional, parse); err != nil {
		return nil, err
	}
	return f, nil
}

// localPath returns the path of a file URL, and any other path as it is.
func localPath(path string) (string, error) {
	if !strings.HasPrefix(path, "file:") {
		return path, nil
	}
	u, err := url.Parse(path)
	if err != nil || u.Host != "" && u.Host != "localhost" || u.Path == "" {
		return "", inFile(path, errors.New("not the URL of a local file"))
	}
	return u.Path, nil
}

// Options say how rules are read.
type Options struct {
	// NutchCompat makes a filter or normalizer do exactly what Nutch's does, faults
	// included. Each function that takes options says what that changes.
	NutchCompat bool
}

// filterFile is a filter whose rules are in a file.
type filterFile struct{ file[Filter] }

// Accept reports whether the rules accept the URL.
func (f *filterFile) Accept(url string) bool { return f.current().Accept(url) }

// normalizerFile is a normalizer whose rules are in a file.
type normalizerFile struct{ file[Normalizer] }

// Normalize returns the normal form of a URL by the rules.
func (f *normalizerFile) Normalize(scope Scope, url string) (string, error) {
	return f.current().Normalize(scope, url)
}

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
	r, err := unpack(f.path, content)
	var v T
	if err == nil {
		v, err = f.parse(r)
	}
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

// unpack decompresses a file whose name says that it is compressed. A nil content is a file that
// does not exist.
func unpack(path string, content []byte) (io.Reader, error) {
	r := bytes.NewReader(content)
	switch {
	case content == nil:
	case strings.HasSuffix(path, ".gz"):
		return gzip.NewReader(r)
	case strings.HasSuffix(path, ".bz2"):
		return bzip2.NewReader(r), nil
	}
	return r, nil
}
