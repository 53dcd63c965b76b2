// Package flags has the flags that verbs share, what they mean for the options of the
// library, the flags that a crawl remembers (savedflags.go), and suggestions for misspelt
// ones (suggest.go). It opens no crawl and prints nothing but warnings. Join puts the
// groups of a verb together; each group is a function of its own, such as Network.
package flags

import (
	"strings"
	"time"

	"github.com/urfave/cli/v3"
)

// The flags. Each verb lists those it heeds.

// Dir returns the flag -d.
func Dir() cli.Flag {
	return &cli.StringFlag{Name: "d", Usage: "the directory `DIR` of the crawl, or the URL of a database: postgres://HOST/DATABASE?crawl=NAME (required)"}
}

// IsURL reports whether a crawl is named by a URL, and is no directory.
func IsURL(name string) bool { return strings.Contains(name, "://") }

// segments returns the flag -segments.
func segments() cli.Flag {
	return &cli.StringFlag{Name: SegmentsName, Usage: "keep the segments of a new crawl in an object store: s3://BUCKET/PREFIX?endpoint=URL&region=NAME&credentials=FILE (and KEY:SECRET@ before BUCKET, which is not remembered). The crawl remembers the `URL`"}
}

// SegmentsName is the name of the flag -segments.
const SegmentsName = "segments"

// Segments returns the place of the segments that the command line or the configuration gives;
// empty if there is none. Of generate, the flag of this name is a number.
func Segments(c *cli.Command) string {
	place, _ := c.Value(SegmentsName).(string)
	return place
}

// Seeds returns the flag -seeds.
func Seeds() cli.Flag {
	return &cli.StringFlag{Name: "seeds", Usage: "inject the URLs in `FILE`, one a line, or in every file of a directory; - is standard input"}
}

// Reporting returns the flags that every verb with a directory has.
func Reporting() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "now", Category: OutputGroup, Usage: "use this RFC 3339 `TIME` as the current time, for example 2026-01-31T08:00:00Z, so that two runs can be compared"},
		&cli.BoolFlag{Name: "json", Category: OutputGroup, Usage: "print JSON instead of text"},
		&cli.BoolFlag{Name: "v", Category: OutputGroup, Usage: "report anything unusual on standard error"},
	}
}

// Clock returns the time to record.
func Clock(c *cli.Command) (func() time.Time, error) {
	s := c.String("now")
	if s == "" {
		return time.Now, nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return nil, Usagef("-now: %q is not an RFC 3339 time such as 2026-01-31T08:00:00Z", s)
	}
	return func() time.Time { return t }, nil
}

// JSON returns the flag -json of verbs that print an object a line.
func JSON() cli.Flag {
	return &cli.BoolFlag{Name: "json", Category: OutputGroup, Usage: "print JSON, an object a line, instead of text"}
}

// StdinArg stands for standard input.
const StdinArg = "-"
