package flags

import (
	"context"
	"testing"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl/fetch"
)

// On the command line 0 means none, whatever a configuration says.
func TestZeroRemovesLimits(t *testing.T) {
	o := fetch.Options{Politeness: fetch.Politeness{Limiter: &fetch.Limiter{Requests: 3, Bytes: 1000}}}
	cmd := &cli.Command{Flags: Politeness(), Action: func(_ context.Context, c *cli.Command) error { return ApplyPoliteness(c, &o) }}
	if err := cmd.Run(t.Context(), []string{"crawl", "-max-bandwidth", "0"}); err != nil {
		t.Fatal(err)
	}
	if o.Politeness.Limiter == nil || o.Politeness.Limiter.Requests != 3 || o.Politeness.Limiter.Bytes != 0 {
		t.Errorf("the bounds are %+v", o.Politeness.Limiter)
	}
	if err := cmd.Run(t.Context(), []string{"crawl", "-max-rate", "0", "-max-bandwidth", "0"}); err != nil || o.Politeness.Limiter != nil {
		t.Errorf("the bounds are %+v, %v", o.Politeness.Limiter, err)
	}
}
