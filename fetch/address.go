package fetch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/protocol"
)

const (
	// lookupFor is how long the look-up of a name may take.
	lookupFor = 30 * time.Second
	// maxAddresses is the number of names whose addresses are remembered in a
	// run; others are looked up again.
	maxAddresses = 20_000
)

// queueOf returns the name of the queue for a URL. By address, that is the
// queue of its host until the address is known: there it waits for the lookup.
func (l *loop) queueOf(url string) string {
	name := l.opts.Politeness.By.Key(url)
	if l.opts.Politeness.By == hostdb.ByIP {
		if addr, ok := l.addresses.Get(name); ok {
			return addr
		}
	}
	return name
}

// needsLookup reports whether a queue is that of a host whose address has to be
// looked up.
func (l *loop) needsLookup(queue string) bool {
	if l.opts.Politeness.By != hostdb.ByIP || queue == "" {
		return false
	}
	_, err := netip.ParseAddr(strings.Trim(queue, "[]"))
	return err != nil
}

// resolve looks up which queue a host belongs to: that of the least of its
// addresses, which does not depend on the order of an answer.
func (l *loop) resolve(ctx context.Context, r *result) {
	lookup := l.opts.Politeness.Lookup
	if lookup == nil {
		lookup = hostdb.Lookup
	}
	limited, cancel := context.WithTimeout(ctx, lookupFor)
	defer cancel()
	addrs, err := l.lookup(limited, lookup, r.host.name)
	var dns *net.DNSError
	switch {
	case ctx.Err() != nil:
		r.err = ctx.Err()
	case limited.Err() != nil && err != nil:
		r.lookupFailure = fmt.Sprintf("the address could not be looked up within %v", lookupFor)
	case errors.As(err, &dns):
		r.lookupFailure = "the address could not be looked up: " + oneLine(dns.Err)
	case err != nil:
		r.lookupFailure = "the address could not be looked up: " + oneLine(err.Error())
	case len(addrs) == 0:
		r.lookupFailure = "the host has no address"
	default:
		for i := range addrs {
			addrs[i] = addrs[i].Unmap().WithZone("")
		}
		r.address = hostdb.AddrKey(slices.MinFunc(addrs, netip.Addr.Compare))
	}
}

// lookup calls the caller's function, and turns its panic into an error.
func (l *loop) lookup(ctx context.Context, f func(context.Context, string) ([]netip.Addr, error), host string) (addrs []netip.Addr, err error) {
	defer func() {
		if p := recover(); p != nil {
			l.opts.Logger.Error("fetch: Lookup panicked", "host", host, "panic", fmt.Sprint(p))
			addrs, err = nil, errors.New("Lookup panicked")
		}
	}()
	addrs, err = f(ctx, host)
	return slices.Clone(addrs), err
}

// moveResolved moves everything that waits for a host to its queue, now that its
// address is known, or that there is none.
func (l *loop) moveResolved(r *result) {
	h := r.host
	l.queues.putFront(h, r.item)
	if r.address != "" {
		l.addresses.Put(h.name, r.address)
		l.queues.move(h, r.address)
		return
	}
	l.giveUp(h, verdict{reason: r.lookupFailure, code: protocol.Failed})
}
