package recrawl

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/recrawl/recrawl/segment"
)

// Damaged returns an error for each segment that New or a round has found damaged. No
// round takes up such a segment until the stores are opened by another New; it stays as
// it is, and its pages are due again when their leases end. Options.Logger receives the error.
func (c *Crawler) Damaged() []error {
	c.damageMutex.Lock()
	defer c.damageMutex.Unlock()
	return slices.Clone(c.damaged)
}

// setAside keeps rounds from a segment that is damaged.
func (c *Crawler) setAside(name string, err error) {
	c.damageMutex.Lock()
	defer c.damageMutex.Unlock()
	if c.setAsideNames == nil {
		c.setAsideNames = map[string]bool{}
	}
	c.setAsideNames[name] = true
	c.damaged = append(c.damaged, err)
	c.opts.Logger.Error("recrawl: a segment is damaged and left as it is", "segment", name, "error", err)
}

func (c *Crawler) isSetAside(name string) bool {
	c.damageMutex.Lock()
	defer c.damageMutex.Unlock()
	return c.setAsideNames[name]
}

// isDamageOf reports whether an error is about damage of this segment. Damage of the crawl db
// has the same type of error, and its files do not have the name of a segment in them.
func isDamageOf(err error, name string) bool {
	var damage *segment.CorruptError
	return errors.As(err, &damage) && slices.Contains(strings.Split(filepath.ToSlash(damage.File), "/"), name)
}
