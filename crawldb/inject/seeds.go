package inject

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/recrawl/recrawl/internal/textlines"
)

// URLs makes seeds of URLs.
func URLs(urls ...string) iter.Seq2[Seed, error] {
	return func(yield func(Seed, error) bool) {
		for _, u := range urls {
			if !yield(Seed{URL: u}, nil) {
				return
			}
		}
	}
}

var errUTF16 = errors.New("the seeds are in UTF-16; want UTF-8")

// maxLine limits the line of a seed; a longer one is not a URL.
const maxLine = 1 << 20

// Read reads seeds in Nutch's format: one per line, the URL and then, after tabs,
// pairs name=value. Empty lines and lines that begin with # are ignored. A line
// ends with a line feed, a carriage return or both. A line of a mebibyte or more is a seed
// that [Run] reports as unusable, without its URL.
func Read(r io.Reader) iter.Seq2[Seed, error] {
	return func(yield func(Seed, error) bool) {
		sc := textlines.NewScanner(r, maxLine)
		for sc.Scan() {
			if err := sc.LineErr(); err != nil {
				if !yield(Seed{Line: sc.Number(), err: err}, nil) {
					return
				}
				continue
			}
			line := string(sc.Bytes())
			if sc.Number() == 1 {
				if strings.HasPrefix(line, "\xff\xfe") || strings.HasPrefix(line, "\xfe\xff") {
					yield(Seed{}, errUTF16)
					return
				}
				line = strings.TrimPrefix(line, "\ufeff")
			}
			text := trim(line)
			if text == "" || text[0] == '#' {
				continue
			}
			s := Seed{URL: text, Line: sc.Number()}
			if url, pairs, ok := strings.Cut(line, "\t"); ok {
				s.URL, s.Meta = trim(url), fields(pairs)
			}
			if !yield(s, nil) {
				return
			}
		}
		if err := sc.Err(); err != nil {
			yield(Seed{}, fmt.Errorf("line %d: %w", sc.Number(), err))
		}
	}
}

// fields returns the fields between tabs, except blank ones.
func fields(pairs string) (all []string) {
	for f := range strings.SplitSeq(pairs, "\t") {
		if trim(f) != "" {
			all = append(all, f)
		}
	}
	return all
}

// trim removes surrounding white space and control characters, such as the one
// that ends a DOS text file.
func trim(s string) string {
	if n := len(s); n > 0 && isGraph(s[0]) && isGraph(s[n-1]) {
		return s
	}
	return strings.TrimFunc(s, func(r rune) bool { return r <= ' ' || unicode.IsSpace(r) })
}

func isGraph(c byte) bool { return ' ' < c && c < utf8.RuneSelf }

// ErrNoFiles says that a seed directory has no files.
var ErrNoFiles = errors.New("inject: no seed files")

// Files reads the seeds in a file, or in every plain file directly inside a
// directory, in the order of their names. A link to a file counts as a file;
// subdirectories are not read, nor are files whose names begin with a dot. A
// file whose name ends in .gz is decompressed. (Nutch: the directory of seeds.)
func Files(fsys fs.FS, name string) iter.Seq2[Seed, error] {
	return func(yield func(Seed, error) bool) {
		names, err := plainFiles(fsys, name)
		if err != nil {
			yield(Seed{}, err)
			return
		}
		for _, n := range names {
			if !readFile(fsys, n, yield) {
				return
			}
		}
	}
}

func plainFiles(fsys fs.FS, name string) (names []string, err error) {
	info, err := fs.Stat(fsys, name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{name}, nil
	}
	entries, err := fs.ReadDir(fsys, name)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") { // a leftover of a system or an editor
			continue
		}
		n := path.Join(name, e.Name())
		if info, err := fs.Stat(fsys, n); err != nil {
			return nil, err
		} else if info.Mode().IsRegular() {
			names = append(names, n)
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s: %w", name, ErrNoFiles)
	}
	return names, nil
}

// readFile reports whether to continue.
func readFile(fsys fs.FS, name string, yield func(Seed, error) bool) bool {
	f, err := fsys.Open(name)
	if err != nil {
		return yield(Seed{}, err)
	}
	defer f.Close()
	r := io.Reader(f)
	if strings.HasSuffix(name, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			return yield(Seed{File: name}, fmt.Errorf("%s: %w", name, err))
		}
	}
	for s, err := range Read(r) {
		if err != nil {
			err = fmt.Errorf("%s: %w", name, err)
		}
		s.File = name
		if !yield(s, err) {
			return false
		}
	}
	return true
}
