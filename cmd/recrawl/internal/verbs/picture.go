package verbs

import (
	"fmt"
	"io"
	"os"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl/cmd/recrawl/internal/render"
)

// checkPictures is placeFor for the files of -svg, whose names have these endings.
func checkPictures(c *cli.Command, endings ...string) error {
	name := c.String("svg")
	if name == "" {
		return nil
	}
	for _, ending := range endings {
		if err := render.CheckFile(name + ending); err != nil {
			return fmt.Errorf("-svg: %w", err)
		}
	}
	return nil
}

func picture(name string, draw func(io.Writer) error) error {
	if err := render.ReplaceFile(name, func(f *os.File) error { return draw(f) }); err != nil {
		return fmt.Errorf("-svg: %w", err)
	}
	return nil
}
