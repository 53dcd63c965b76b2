package warc

import (
	"archive/zip"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Package describes a WACZ package.
type Package struct {
	// Title and Description are for people; empty ones are left out.
	Title, Description string
	// MainPage is the URL that a viewer opens first; empty means the first page.
	MainPage string
	// Created is the time of the package; zero means now.
	Created time.Time
}

// resource is an entry of datapackage.json.
type resource struct {
	Name  string `json:"name"`
	Path  string `json:"path"`
	Hash  string `json:"hash"`
	Bytes int64  `json:"bytes"`
}

// pageLine is a line of pages.jsonl.
type pageLine struct {
	ID    string `json:"id"`
	URL   string `json:"url"`
	TS    string `json:"ts"`
	Title string `json:"title,omitempty"`
}

// Pack writes WARC files and their index to one file, by WACZ 1.1.1. It replaces the file
// at path as a whole. Pages are the first captures of HTML with status 200, one for each
// URL.
func Pack(ctx context.Context, path string, p Package, files ...string) (err error) {
	if len(files) == 0 {
		return errors.New("warc: a package needs a WARC file")
	}
	if p.Created.IsZero() {
		p.Created = time.Now()
	}
	out, err := os.CreateTemp(filepath.Dir(path), ".wacz-*")
	if err != nil {
		return fmt.Errorf("warc: %w", err)
	}
	defer os.Remove(out.Name()) // after the renaming it does not exist
	defer out.Close()
	if err := pack(ctx, out, p, files); err != nil {
		return fmt.Errorf("warc: package %s: %w", path, err)
	}
	if err := errors.Join(out.Chmod(0o644), out.Sync(), out.Close(), os.Rename(out.Name(), path)); err != nil {
		return fmt.Errorf("warc: %w", err)
	}
	return nil
}

func pack(ctx context.Context, out io.Writer, p Package, files []string) error {
	z := packer{zip: zip.NewWriter(out), created: p.Created}
	var index []Line
	names := map[string]bool{}
	for _, path := range files {
		name := filepath.Base(path)
		if names[name] {
			return fmt.Errorf("two files have the name %s", name)
		}
		names[name] = true
		for l, err := range lines(ctx, path) {
			if err != nil {
				return err
			}
			index = append(index, l)
		}
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		err = z.add("archive/"+name, zip.Store, file) // stored, so that a viewer can read from the middle
		file.Close()
		if err != nil {
			return err
		}
	}
	slices.SortFunc(index, compareLines)
	var b bytes.Buffer
	for _, l := range index {
		b.WriteString(l.String() + "\n")
	}
	if err := z.add("indexes/index.cdxj", zip.Deflate, &b); err != nil {
		return err
	}
	pages, mainPage, err := pagesOf(index)
	if err != nil {
		return err
	}
	if err := z.add("pages/pages.jsonl", zip.Deflate, bytes.NewReader(pages)); err != nil {
		return err
	}
	return z.finish(p, cmp.Or(p.MainPage, mainPage))
}

// pagesOf returns pages.jsonl, and the URL of its first page.
func pagesOf(index []Line) (b []byte, first string, err error) {
	header := struct {
		Format string `json:"format"`
		ID     string `json:"id"`
		Title  string `json:"title"`
	}{"json-pages-1.0", "pages", "All Pages"}
	if b, err = json.Marshal(header); err != nil {
		return nil, "", err
	}
	b = append(b, '\n')
	var pages []Line
	seen := map[string]bool{}
	for _, l := range index {
		if l.Status == "200" && l.MIME == "text/html" && !seen[l.URL] {
			seen[l.URL] = true
			pages = append(pages, l)
		}
	}
	slices.SortStableFunc(pages, func(a, b Line) int { return a.Time.Compare(b.Time) })
	for i, l := range pages {
		sum := sha256.Sum256([]byte(l.URL + "\n" + l.Time.Format(timeLayout)))
		line, err := json.Marshal(pageLine{ID: hex.EncodeToString(sum[:8]), URL: l.URL, TS: l.Time.Format(time.RFC3339)})
		if err != nil {
			return nil, "", err
		}
		b = append(append(b, line...), '\n')
		if i == 0 {
			first = l.URL
		}
	}
	return b, first, nil
}

// A packer writes the entries of a package, and remembers them.
type packer struct {
	zip       *zip.Writer
	created   time.Time
	resources []resource
}

// add adds an entry that datapackage.json lists.
func (z *packer) add(path string, method uint16, r io.Reader) error {
	w, err := z.zip.CreateHeader(&zip.FileHeader{Name: path, Method: method, Modified: z.created})
	if err != nil {
		return err
	}
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(w, sum), r)
	if err != nil {
		return err
	}
	z.resources = append(z.resources, resource{filepath.Base(path), path, "sha256:" + hex.EncodeToString(sum.Sum(nil)), n})
	return nil
}

// finish writes datapackage.json and its digest.
func (z *packer) finish(p Package, mainPage string) error {
	description, err := json.MarshalIndent(struct {
		Profile     string     `json:"profile"`
		Version     string     `json:"wacz_version"`
		Title       string     `json:"title,omitempty"`
		Description string     `json:"description,omitempty"`
		MainPageURL string     `json:"mainPageURL,omitempty"`
		Created     string     `json:"created"`
		Software    string     `json:"software"`
		Resources   []resource `json:"resources"`
	}{"data-package", "1.1.1", p.Title, p.Description, mainPage, p.Created.UTC().Format(time.RFC3339), "recrawl", z.resources}, "", "  ")
	if err != nil {
		return err
	}
	if err := z.add("datapackage.json", zip.Deflate, bytes.NewReader(description)); err != nil {
		return err
	}
	sum := sha256.Sum256(description)
	digest, err := json.Marshal(struct {
		Path string `json:"path"`
		Hash string `json:"hash"`
	}{"datapackage.json", "sha256:" + hex.EncodeToString(sum[:])})
	if err != nil {
		return err
	}
	if err := z.add("datapackage-digest.json", zip.Deflate, bytes.NewReader(digest)); err != nil {
		return err
	}
	return z.zip.Close()
}
