package flags

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"regexp"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl/protocol/chromeproto"
)

// Rendering returns the flags of verbs that can render pages in a browser.
func Rendering() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "render", Category: NetworkGroup, Usage: "render HTML pages in a headless Chromium: `MODE` is auto (those that are empty without their scripts), always or never (default)"},
		&cli.StringSliceFlag{Name: "render-url", Category: NetworkGroup, Usage: "render the pages whose URL matches `REGEXP`, whatever -render says. May be repeated"},
		&cli.StringFlag{Name: "chrome", Category: NetworkGroup, Usage: "the browser of -render is at this `PATH` (default: the first of chromium-headless-shell, chromium, chromium-browser, google-chrome)"},
		&cli.IntFlag{Name: "render-pages", Category: NetworkGroup, Usage: "render at most `N` pages at once, each about 100 MB (0: 4)"},
	}
}

// ReadRendering returns what the flags of Rendering say; nil if nothing is rendered.
func ReadRendering(c *cli.Command, warn io.Writer) (*chromeproto.Options, error) {
	mode, err := chromeproto.ParseMode(cmp.Or(c.String("render"), "never"))
	if err != nil {
		return nil, Usagef("-render: %q is not one of auto, always and never", c.String("render"))
	}
	o := &chromeproto.Options{Mode: mode, Chrome: c.String("chrome"), Limits: chromeproto.Limits{Pages: c.Int("render-pages")}}
	for _, p := range c.StringSlice("render-url") {
		re, err := regexp.Compile(p)
		if err != nil {
			return nil, Usagef("-render-url: %w", err)
		}
		o.Rules = append(o.Rules, chromeproto.Rule{Pattern: re, Mode: chromeproto.Always})
	}
	if mode == chromeproto.Never && len(o.Rules) == 0 {
		return nil, nil
	}
	if os.Geteuid() == 0 {
		fmt.Fprintln(warn, "recrawl: -render: as root, the browser runs without its sandbox")
		o.NoSandbox = true
	}
	return o, nil
}
