//go:build !linux

package chromeproto

import "context"

// watchMemory does nothing here: only the heap of scripts is limited.
func watchMemory(context.Context, int, int64, func() bool) {}
