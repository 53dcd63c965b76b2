package render

import (
	"io"
	"log/slog"
)

// NewLogger makes the logger of a command: it reports anything unusual, or nothing.
func NewLogger(w io.Writer, verbose bool) *slog.Logger {
	if !verbose {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(w, nil))
}
