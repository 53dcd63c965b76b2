package verbs

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/crawls"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/flags"
	"github.com/recrawl/recrawl/crawldb/inject"
	"github.com/recrawl/recrawl/protocol/httpproto"
	"github.com/recrawl/recrawl/warc"
)

func (a *app) warc() *cli.Command {
	return &cli.Command{
		Name: "warc", Category: flags.ReadVerbs, Usage: "write what the segments keep to WARC files", ArgsUsage: "[SEGMENT...]",
		Description: `Writes the visits of the segments, by default of all, to WARC 1.1 files in OUTDIR.
A segment keeps bodies as decoded and few headers, and no request: the answers are
composed of them.

  recrawl warc -d crawl -o archive -cdxj
  recrawl warc -d crawl -o archive -wacz site.wacz

To archive answers as they are sent, and to crawl an archive without a request:

  recrawl crawl -d crawl -agent mybot -warc archive https://example.com/
  recrawl crawl -d again -replay archive`,
		Flags: flags.Join(flags.Dir(),
			&cli.StringFlag{Name: "o", Usage: "write the files into `OUTDIR`, which is created if it does not exist (required)"},
			&cli.BoolFlag{Name: "cdxj", Usage: "write the index of each file beside it, as FILE.cdxj"},
			&cli.StringFlag{Name: "wacz", Usage: "also write the files of this run and their index to `FILE`, as a WACZ package"},
			flags.Compression(), flags.Reporting()),
		Action: func(ctx context.Context, c *cli.Command) error {
			if c.String("o") == "" {
				return flags.Usagef("-o OUTDIR is required")
			}
			compression, err := flags.ReadCompression(c)
			if err != nil {
				return err
			}
			return a.readStoreWithCache(ctx, c, onceCache, func(db crawls.DB) error {
				return a.writeWARC(ctx, c, db, compression)
			})
		},
	}
}

func (a *app) writeWARC(ctx context.Context, c *cli.Command, db crawls.DB, compression warc.Compression) error {
	for _, name := range c.Args().Slice() {
		if err := hasSegment(ctx, db, name); err != nil {
			return err
		}
	}
	w, err := warc.NewWriter(c.String("o"), warc.Options{
		Compression: compression, CDXJ: c.Bool("cdxj"),
		Info: warc.Fields{{Name: "description", Value: warc.SegmentsDescription}},
	})
	if err != nil {
		return err
	}
	err = warc.WriteSegments(ctx, w, db.Segments(), c.Args().Slice()...)
	if e := w.Close(); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	written := w.Files()
	if path := c.String("wacz"); path != "" {
		if len(written) == 0 {
			return fmt.Errorf("-wacz: the segments keep no visits")
		}
		if err := warc.Pack(ctx, path, warc.Package{}, written...); err != nil {
			return err
		}
	}
	if c.Bool("json") {
		return a.printJSON(map[string][]string{"files": append([]string{}, written...)})
	}
	for _, path := range written {
		fmt.Fprintln(a.out, path)
	}
	return nil
}

// openReplay makes the session answer visits from the files that -replay names.
func (s *session) openReplay(ctx context.Context, c *cli.Command, files []string, o *recrawl.Options, client httpproto.Options) (err error) {
	o.Agent = cmp.Or(o.Agent, "recrawl")
	flags.WithoutPauses(c, &o.Fetch.Politeness)
	client.Agent, client.Now = o.Agent, s.now
	s.archive, err = warc.Open(ctx, warc.ReplayOptions{Client: client}, files...)
	o.Protocol = s.archive
	return err
}

// captureTo makes the client write what it sends and receives to the folder that -warc names.
func (s *session) captureTo(dir string, client *httpproto.Options) (err error) {
	if dir == "" {
		return nil
	}
	if s.warc, err = warc.NewWriter(dir, warc.Options{CDXJ: true, Now: s.now}); err == nil {
		client.Capture = s.warc.Capture
	}
	return err
}

// archivedSeeds returns the URLs of an archive as seeds, those of robots.txt left out.
func archivedSeeds(archive *warc.Archive) *seedSource {
	return &seedSource{name: "the archive", more: func(yield func(inject.Seed, error) bool) {
		for url := range archive.URLs() {
			if strings.HasSuffix(url, "/robots.txt") {
				continue
			}
			if !yield(inject.Seed{URL: url}, nil) {
				return
			}
		}
	}}
}
