package hoststat

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/recrawl/recrawl/hostdb"
)

// due reports whether the name of a host should be looked up.
func (j *job) due(h *hostdb.Host) bool {
	wait := j.o.Recheck
	switch {
	case h.LastCheck.IsZero():
		return j.o.CheckNew
	case h.DNSFailures == 0:
		if !j.o.CheckKnown {
			return false
		}
	default:
		if !j.o.CheckFailed {
			return false
		}
		const most = 100 * 365 * 24 * time.Hour // before it overflows
		if wait > most/time.Duration(h.DNSFailures) {
			wait = most
		} else {
			wait *= time.Duration(h.DNSFailures)
		}
	}
	// If a clock was ahead, its results must not be believed for years.
	return j.o.Force || j.now.Before(h.LastCheck) || !j.now.Before(h.LastCheck.Add(wait))
}

// check is a host to be written once its name was looked up. also is another
// name for it, empty if there is none: a domain need not have an address.
type check struct {
	name, also string
	st         hostdb.Host
}

// answer is the result of a lookup.
type answer uint8

const (
	unanswered answer = iota
	known
	unknown
)

// checks are the goroutines that look up names.
type checks struct {
	j     *job
	queue chan check
	wg    sync.WaitGroup

	mu     sync.Mutex
	report Report
	err    error
}

// startChecks starts the goroutines if there is anything to look up. After an
// error they cancel the run, and continue to drain the queue.
func startChecks(ctx context.Context, cancel func(), j *job) *checks {
	c := &checks{j: j, queue: make(chan check)}
	if j.o.Lookup == nil {
		return c
	}
	for range j.o.Resolvers {
		c.wg.Go(func() {
			for h := range c.queue {
				err := c.one(ctx, h)
				if err == nil {
					continue
				}
				c.mu.Lock()
				if c.err == nil {
					c.err = err
				}
				c.mu.Unlock()
				cancel()
			}
		})
	}
	return c
}

// look passes a host to a goroutine.
func (c *checks) look(ctx context.Context, h check) error {
	select {
	case c.queue <- h:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// wait ends the goroutines and adds their results to the report.
func (c *checks) wait(r *Report) error {
	close(c.queue)
	c.wg.Wait()
	d := &c.report
	r.Hosts += d.Hosts
	r.Checked, r.NewKnown, r.NewUnknown, r.Rediscovered = d.Checked, d.NewKnown, d.NewUnknown, d.Rediscovered
	r.ExistingKnown, r.ExistingUnknown, r.Purged, r.Unanswered = d.ExistingKnown, d.ExistingUnknown, d.Purged, d.Unanswered
	return c.err
}

// one looks up a name and writes the host.
func (c *checks) one(ctx context.Context, h check) error {
	j := c.j
	found, err := c.lookup(ctx, h.name)
	if err == nil && found != known && h.also != "" && h.also != h.name {
		if other, e := c.lookup(ctx, h.also); e != nil || other != unknown {
			found, err = other, e
		}
	}
	if err != nil {
		return err
	}
	var was hostdb.Host
	purged := false
	err = j.write(ctx, h.name, &h.st, func(n *hostdb.Host) *hostdb.Host {
		was, purged = *n, false
		switch found {
		case known:
			n.LastCheck, n.DNSFailures = j.now, 0
		case unknown:
			n.LastCheck, n.DNSFailures = j.now, n.DNSFailures+1
			if purged = j.o.PurgeAfter >= 0 && n.DNSFailures > j.o.PurgeAfter; purged {
				return nil
			}
		}
		return n
	})
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	r, isNew := &c.report, was.LastCheck.IsZero()
	r.Checked++
	switch {
	case found == unanswered:
		r.Unanswered++
	case found == known && isNew:
		r.NewKnown++
	case found == known && was.DNSFailures > 0:
		r.Rediscovered++
	case found == known:
		r.ExistingKnown++
	case isNew:
		r.NewUnknown++
	default:
		r.ExistingUnknown++
	}
	if purged {
		r.Purged++
	} else {
		r.Hosts++
	}
	return nil
}

// lookup looks up a name. An error ends the run.
func (c *checks) lookup(ctx context.Context, name string) (answer, error) {
	addrs, err := c.ask(ctx, strings.Trim(name, "[]"))
	if ctx.Err() != nil {
		return unanswered, ctx.Err()
	}
	var dns *net.DNSError
	switch {
	case err == nil && len(addrs) > 0:
		return known, nil
	case err == nil, c.j.o.NutchCompat, errors.As(err, &dns) && dns.IsNotFound:
		return unknown, nil
	}
	return unanswered, nil
}

// ask calls Lookup, and turns its panic into an error: it runs in a goroutine of
// this package, where the caller cannot recover it.
func (c *checks) ask(ctx context.Context, host string) (addrs []netip.Addr, err error) {
	defer func() {
		if p := recover(); p != nil {
			addrs, err = nil, fmt.Errorf("Lookup panicked: %v", p)
		}
	}()
	return c.j.o.Lookup(ctx, host)
}
