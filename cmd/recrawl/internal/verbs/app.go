package verbs

import (
	"io"
	"log/slog"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl/cmd/recrawl/internal/render"
)

// app is what all verbs share.
type app struct{ out, err io.Writer }

func (a *app) logger(c *cli.Command) *slog.Logger { return render.NewLogger(a.err, c.Bool("v")) }

// printJSON prints one object.
func (a *app) printJSON(v any) error { return render.JSON(a.out, v) }

// printLine prints one object on one line.
func (a *app) printLine(v any) error { return render.JSONLine(a.out, v) }
