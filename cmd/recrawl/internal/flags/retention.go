package flags

import (
	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl"
)

// Retention returns the flags that say how long finished segments are kept.
func Retention() []cli.Flag {
	return []cli.Flag{
		&cli.IntFlag{Name: "keep-segments", Usage: "after each round, keep only the newest `N` finished segments, and those that a consumer has yet to read (see changes); index and readseg cannot read those removed (0: keep all)"},
		Span("", "keep-age", "after each round, remove finished segments older than this `TIME`, such as 7d, that all consumers have read"),
		&cli.StringFlag{Name: "keep-bytes", Usage: "after each round, remove the oldest segments while all of them take more than `SIZE`, such as 50G, read or not; a consumer that is behind starts again from a snapshot"},
	}
}

// ReadRetention returns what those flags say.
func ReadRetention(c *cli.Command) (o recrawl.Retention, err error) {
	o.Segments = c.Int("keep-segments")
	spans := Spans{C: c}
	if o.Age = spans.Get("keep-age"); spans.Err != nil {
		return o, spans.Err
	}
	o.Bytes, _, err = readSize(c, "keep-bytes")
	return o, err
}
