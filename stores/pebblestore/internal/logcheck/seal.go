package logcheck

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/damage"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/storedir"
)

// A seal is a file that exists while a store is closed after an orderly end. It
// holds the checksums of the engine's small files: its logs, and the manifest
// that says which tables are the database. The engine takes damage inside these
// for the end of what a crash let it write, and silently returns to the state
// before; if there is a seal there was no crash, and damage is damage. Tables
// have checksums of their own.
//
// The file is removed before the engine is opened and written after it was
// closed. A store without one is opened as after a crash.
const (
	SealName    = "SEAL"
	NewSealName = "SEAL.new"
	sealMagic   = "recrawl pebblestore seal 1\n"
)

// sealed reports whether a file is covered by the seal.
func sealed(name string) bool {
	return IsManifest(name) || strings.HasPrefix(name, "marker.") || strings.HasPrefix(name, "OPTIONS-") || strings.HasSuffix(name, ".log")
}

// sealText describes the files of the database as they are.
func sealText(under vfs.FS, path string) ([]byte, error) {
	names, err := under.List(path)
	if err != nil {
		return nil, err
	}
	text := []byte(sealMagic)
	for _, name := range names {
		if !sealed(name) {
			continue
		}
		sum, size, err := checksum(under, under.PathJoin(path, name))
		if err != nil {
			return nil, err
		}
		text = fmt.Appendf(text, "%08x %d %s\n", sum, size, name)
	}
	return fmt.Appendf(text, "%08x\n", crc32.Checksum(text, castagnoli())), nil
}

func checksum(under vfs.FS, name string) (sum uint32, size int64, err error) {
	f, err := under.Open(name)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	h := crc32.New(castagnoli())
	size, err = io.Copy(h, f)
	return h.Sum32(), size, err
}

// Seal seals the store in dir, whose database is in path.
func Seal(dir string, under vfs.FS, path string) error {
	text, err := sealText(under, path)
	if err != nil {
		return err
	}
	name := filepath.Join(dir, SealName)
	made := filepath.Join(dir, NewSealName)
	if err := storedir.WriteFile(under, made, text); err != nil {
		return errors.Join(err, under.Remove(made))
	}
	if err := under.Rename(made, name); err != nil {
		return err
	}
	return storedir.SyncDir(under, dir)
}

// Unseal checks the seal, if there is one, and removes it unless it must stay.
func Unseal(dir string, under vfs.FS, path string, stays bool) error {
	name := filepath.Join(dir, SealName)
	text, err := storedir.ReadFile(under, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := CheckSeal(text, under, path); err != nil || stays {
		return err
	}
	if err := under.Remove(name); err != nil {
		return err
	}
	return storedir.SyncDir(under, dir)
}

var (
	ErrSeal    = errors.New("wrong checksum of the seal")
	ErrChanged = errors.New("it has changed since the store was closed")
	ErrAdded   = errors.New("it was not there when the store was closed")
)

// sealSum is the length of the line that ends a seal.
const sealSum = 8 + 1

// WholeSeal reports whether a seal is complete.
func WholeSeal(text []byte) bool {
	n := len(text) - sealSum
	return n >= len(sealMagic) && bytes.HasPrefix(text, []byte(sealMagic)) &&
		string(text[n:]) == fmt.Sprintf("%08x\n", crc32.Checksum(text[:n], castagnoli()))
}

// changedAt returns where a file has changed, as far as that can be determined.
func changedAt(under vfs.FS, name string, size, want int64, err error) int64 {
	if err != nil {
		return -1
	}
	if r, err := ReadFile(under, name, LogNumber(name)); err == nil && r.End < size {
		return r.End
	}
	return min(size, want)
}

// A SealedFile is a file as it was when the store was closed.
type SealedFile struct {
	sum  uint32
	size int64
}

// SealedFiles returns the files that a complete seal describes, by name.
func SealedFiles(text []byte) (map[string]SealedFile, error) {
	files := map[string]SealedFile{}
	for line := range strings.Lines(string(text[len(sealMagic) : len(text)-sealSum])) {
		var f SealedFile
		var name string
		if _, err := fmt.Sscanf(line, "%x %d %s\n", &f.sum, &f.size, &name); err != nil {
			return nil, damage.At(SealName, -1, err)
		}
		files[name] = f
	}
	return files, nil
}

// CheckSeal compares the database with its seal. A damaged seal proves nothing. A log that
// the seal does not describe is another's, and the engine would replay it; but an old one,
// which is not replayed, may come back when the power fails.
func CheckSeal(text []byte, under vfs.FS, path string) error {
	if !WholeSeal(text) {
		return nil
	}
	files, err := SealedFiles(text)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		want, full := files[name], under.PathJoin(path, name)
		if info, err := under.Stat(full); err == nil && info.Size()-storedir.MaxText > want.size {
			return damage.At(full, want.size, fmt.Errorf("%w: %w", ErrChanged, ErrLong))
		}
		switch sum, size, err := checksum(under, full); {
		case errors.Is(err, fs.ErrNotExist) && strings.HasSuffix(name, ".log"):
			return damage.At(full, -1, ErrNoLog)
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return err
		case err != nil || sum != want.sum || size != want.size:
			return damage.At(full, changedAt(under, full, size, want.size, err), ErrChanged)
		}
	}
	names, err := under.List(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	least, err := LeastLog(under, path)
	if err != nil {
		return err
	}
	for _, name := range names {
		if _, ok := files[name]; !ok && strings.HasSuffix(name, ".log") && uint64(LogNumber(name)) >= least {
			return damage.At(under.PathJoin(path, name), -1, ErrAdded)
		}
	}
	return nil
}
