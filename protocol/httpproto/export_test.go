package httpproto

import (
	"context"
	"net"
)

// SetDial replaces what a client dials with, guard and all.
func (c *Client) SetDial(dial func(ctx context.Context, network, address string) (net.Conn, error)) {
	c.dial, c.dialOwn = dial, dial
}

// What the fuzz targets call.
var (
	RobotsTag  = robotsTag
	RetryAfter = retryAfter
	Date       = date
	Printable  = printable
)

const (
	MaxDials   = maxDials
	MaxRatio   = maxRatio
	RatioFloor = ratioFloor
)
