package fileproto

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"io/fs"
	"net/url"
	"path"
	"slices"
	"strings"
)

// list returns a directory as a page of links, in the order of names. If there
// are too many entries, the file system determines which ones are listed.
func (c *Client) list(ctx context.Context, f fs.File, name string) (body []byte, cut bool, err error) {
	dir, ok := f.(fs.ReadDirFile)
	if !ok {
		return nil, false, errors.New("fileproto: directory cannot be read")
	}
	var entries []fs.DirEntry
	for !cut {
		if err := ctx.Err(); err != nil {
			return nil, false, err
		}
		more, err := dir.ReadDir(1024)
		entries = append(entries, more...)
		if c.o.MaxEntries >= 0 && len(entries) > c.o.MaxEntries {
			entries, cut = entries[:c.o.MaxEntries], true
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, false, err
		}
	}
	// Package io/fs opens no name that is not UTF-8, so a link would lead nowhere.
	entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return !fs.ValidPath(e.Name()) })
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	b := fmt.Appendf(nil, "<!DOCTYPE html>\n<title>Index of %s</title>\n<ul>\n", html.EscapeString(path.Join(c.prefix, name)))
	for _, e := range entries {
		// A leading "./" keeps a name with a colon from being a scheme.
		text, href := e.Name(), "./"+url.PathEscape(e.Name())
		if e.IsDir() {
			text, href = text+"/", href+"/"
		}
		b = fmt.Appendf(b, "<li><a href=\"%s\">%s</a>\n", html.EscapeString(href), html.EscapeString(text))
	}
	return append(b, "</ul>\n"...), cut, nil
}

// typeOf returns the media type for the extension of a name; empty if unknown,
// so that the content decides. The tables of package mime differ between
// machines.
func typeOf(name string) string {
	switch strings.ToLower(path.Ext(name)) {
	case ".html", ".htm":
		return "text/html"
	case ".xhtml", ".xht":
		return "application/xhtml+xml"
	case ".txt", ".text", ".log":
		return "text/plain"
	case ".md", ".markdown":
		return "text/markdown"
	case ".csv":
		return "text/csv"
	case ".css":
		return "text/css"
	case ".js", ".mjs":
		return "text/javascript"
	case ".json":
		return "application/json"
	case ".xml":
		return "application/xml"
	case ".rss":
		return "application/rss+xml"
	case ".atom":
		return "application/atom+xml"
	case ".pdf":
		return "application/pdf"
	case ".rtf":
		return "application/rtf"
	case ".epub":
		return "application/epub+zip"
	case ".doc":
		return "application/msword"
	case ".docx":
		return "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
	case ".odt":
		return "application/vnd.oasis.opendocument.text"
	case ".zip":
		return "application/zip"
	case ".gz":
		return "application/gzip"
	case ".bin":
		return "application/octet-stream"
	case ".jpg", ".jpeg":
		return "image/jpeg"
	case ".png":
		return "image/png"
	case ".gif":
		return "image/gif"
	case ".webp":
		return "image/webp"
	case ".svg":
		return "image/svg+xml"
	case ".mp3":
		return "audio/mpeg"
	case ".mp4":
		return "video/mp4"
	}
	return ""
}
