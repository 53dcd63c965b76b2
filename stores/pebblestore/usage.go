package pebblestore

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
)

// Usage returns how many bytes the files of the database ("db") and of the segments ("segments") have,
// and how many are free on the disk. It reads the directories, not the files.
func (d *DB) Usage(ctx context.Context) (parts map[string]int64, free int64, err error) {
	if err := d.enter(ctx, &d.crawl.view); err != nil {
		return nil, 0, err
	}
	defer d.leave()
	parts = map[string]int64{}
	for part, dir := range map[string]string{"db": d.path, "segments": filepath.Join(d.dir, segmentsName)} {
		size, err := d.sizeOf(ctx, dir)
		if err != nil {
			return nil, 0, d.outcome("size of "+part, err)
		}
		parts[part] = size
	}
	usage, err := d.under.GetDiskUsage(d.dir)
	if err != nil {
		return nil, 0, d.outcome("free space", err)
	}
	return parts, int64(usage.AvailBytes), nil
}

// sizeOf adds up the sizes of the files below a directory. Files may come and go meanwhile.
func (d *DB) sizeOf(ctx context.Context, dir string) (total int64, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	names, err := d.under.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	for _, name := range names {
		path := filepath.Join(dir, name)
		info, err := d.under.Stat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return 0, err
		case !info.IsDir():
			total += info.Size()
			continue
		}
		size, err := d.sizeOf(ctx, path)
		if err != nil {
			return 0, err
		}
		total += size
	}
	return total, err
}
