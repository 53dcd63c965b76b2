package main

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// proxy is a directory with the layout of a module proxy.
type proxy string

// name returns the file of a version with the given suffix.
func (p proxy) name(m module.Version, suffix string) (string, error) {
	escaped, err := module.EscapePath(m.Path)
	if err != nil {
		return "", err
	}
	return filepath.Join(string(p), filepath.FromSlash(escaped), "@v", m.Version+suffix), nil
}

func (p proxy) has(m module.Version) bool {
	name, err := p.name(m, ".zip")
	return err == nil && exists(name)
}

// add makes a version of the module in dir, whose repository is at root.
func (p proxy) add(m module.Version, dir, root string) error {
	info, err := p.name(m, ".info")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(info), 0o777); err != nil {
		return err
	}
	data, err := json.Marshal(struct {
		Version string
		Time    time.Time
	}{m.Version, time.Now().UTC()})
	if err != nil {
		return err
	}
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return err
	}
	base := info[:len(info)-len(".info")]
	err = errors.Join(
		os.WriteFile(info, data, 0o666),
		os.WriteFile(base+".mod", mod, 0o666),
		os.WriteFile(filepath.Join(filepath.Dir(info), "list"), []byte(m.Version+"\n"), 0o666),
	)
	if err != nil {
		return err
	}
	files, err := moduleFiles(dir, root)
	if err != nil {
		return err
	}
	w, err := os.Create(base + ".zip")
	if err != nil {
		return err
	}
	return errors.Join(zip.Create(w, m, files), w.Close())
}

// moduleFiles lists the files of a module as the go command does for a tag: all
// below its directory, and the LICENSE of the repository if it has none itself.
// What does not belong to the module, zip.Create leaves out.
func moduleFiles(dir, root string) ([]zip.File, error) {
	var files []zip.File
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.Name() == ".git" {
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil // a worktree has a file of that name
		}
		if d.IsDir() {
			return nil
		}
		rel, err := filepath.Rel(dir, name)
		files = append(files, file{name, filepath.ToSlash(rel)})
		return err
	})
	if license := filepath.Join(root, "LICENSE"); err == nil && dir != root && exists(license) && !exists(filepath.Join(dir, "LICENSE")) {
		files = append(files, file{license, "LICENSE"})
	}
	return files, err
}

// file is a file on disk and its name within a module.
type file struct{ disk, name string }

func (f file) Path() string                 { return f.name }
func (f file) Lstat() (fs.FileInfo, error)  { return os.Lstat(f.disk) }
func (f file) Open() (io.ReadCloser, error) { return os.Open(f.disk) }
