package recrawl

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/recrawl/recrawl/hostdb"
)

// PauseHost keeps requests from a host until a time of the real clock, also those of a fetch under
// way, but not requests that have begun. A time that has passed lets them begin again, after one
// pause of politeness, and ends what Retry-After or failures have asked for. The host shares its
// pauses with the others of its queue: see fetch.Politeness.By. With hostdb.ByIP the name is that of
// the address, as hostdb.AddrKey returns it. The pause is stored. For days or for good, use
// fetch.Politeness.HostRule.
func (c *Crawler) PauseHost(ctx context.Context, host string, until time.Time) error {
	name := c.opts.Fetch.Politeness.By.HostKey(host)
	if name == "" {
		return fmt.Errorf("recrawl: pause host: %w: %q is no host", ErrHost, host)
	}
	err := c.stores.Hosts.Update(ctx, name, func(old *hostdb.Host) (*hostdb.Host, error) {
		h := hostdb.Host{}
		if old != nil {
			h = *old
		}
		if now := time.Now(); until.After(now) {
			h.NextFetch = until.Truncate(time.Millisecond)
		} else {
			h.NextFetch = now.Add(c.opts.Fetch.Politeness.Pause(h.CrawlDelay)).Truncate(time.Millisecond)
			h.Backoff = 0
		}
		return &h, nil
	})
	if err != nil {
		return fmt.Errorf("recrawl: pause host %s: %w", host, err)
	}
	c.wake()
	return nil
}

// ErrHost says that a name is not that of a host.
var ErrHost = errors.New("not a host")

// ReloadRules reads again what a round reads again at its start: the files behind Options.Rules and
// Options.Reload. It takes effect at once, for what a round under way has yet to decide, too. What
// cannot be read stays as it was, and is in the error.
func (c *Crawler) ReloadRules() (changed bool, err error) {
	var failed []error
	for _, r := range c.reloaders() {
		again, err := r.Reload()
		changed = changed || again
		if err != nil {
			failed = append(failed, fmt.Errorf("recrawl: reload rules: %w", err))
		}
	}
	return changed, errors.Join(failed...)
}
