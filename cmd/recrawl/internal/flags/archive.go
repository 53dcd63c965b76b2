package flags

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/warc"
)

// replayed says which files -replay reads.
const replayed = "a WARC file (.warc, .warc.gz, .warc.zst), or a folder of them"

// Archive returns the flags of verbs that write or read archives while they fetch.
func Archive() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "warc", Category: NetworkGroup, Usage: "write requests and answers, robots.txt included, as they were sent, to WARC files in `OUTDIR`, each with its CDXJ index"},
		&cli.StringSliceFlag{Name: "replay", Category: NetworkGroup, Usage: "make no requests: answer visits from `FILE`, " + replayed + ". What was not captured is not found. May be repeated"},
	}
}

// Documents returns the flag of verbs that parse.
func Documents() cli.Flag {
	return &cli.BoolFlag{Name: "documents", Category: NetworkGroup, Usage: "also read PDF, Word, PowerPoint, Excel, OpenDocument and EPUB: title, text and links"}
}

// Compression returns the flag of the compression of WARC files.
func Compression() cli.Flag {
	return &cli.StringFlag{Name: "compression", Usage: "how records are compressed: gzip, zstd or none", Value: "gzip"}
}

// ReadCompression returns what the flag of Compression says.
func ReadCompression(c *cli.Command) (warc.Compression, error) {
	switch name := c.String("compression"); name {
	case "gzip":
		return warc.Gzip, nil
	case "zstd":
		return warc.Zstd, nil
	case "none":
		return warc.None, nil
	default:
		return 0, Usagef("-compression: %q is not one of gzip, zstd and none", name)
	}
}

// ReplayFiles returns the files that -replay names; none without the flag.
func ReplayFiles(c *cli.Command) ([]string, error) {
	var files []string
	for _, path := range c.StringSlice("replay") {
		info, err := os.Stat(path)
		if err != nil {
			return nil, Usagef("-replay: %w", err)
		}
		if !info.IsDir() {
			files = append(files, path)
			continue
		}
		entries, err := os.ReadDir(path)
		if err != nil {
			return nil, Usagef("-replay: %w", err)
		}
		found := len(files)
		for _, e := range entries {
			if slices.ContainsFunc([]string{".warc", ".warc.gz", ".warc.zst"}, func(end string) bool { return strings.HasSuffix(e.Name(), end) }) {
				files = append(files, filepath.Join(path, e.Name()))
			}
		}
		if len(files) == found {
			return nil, UsageError{Err: errors.New("-replay: no WARC file in " + path)}
		}
	}
	for _, other := range []string{"warc", "render"} {
		if len(files) > 0 && c.String(other) != "" {
			return nil, Usagef("-%s and -replay exclude each other", other)
		}
	}
	return files, nil
}

// WithoutPauses sets the politeness of a crawl that makes no requests.
func WithoutPauses(c *cli.Command, p *fetch.Politeness) {
	if !c.IsSet("delay") {
		p.Delay = -1
		p.MaxCrawlDelay = cmp.Or(p.MaxCrawlDelay, time.Millisecond)
	}
}
