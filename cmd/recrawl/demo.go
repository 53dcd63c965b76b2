package main

import (
	"context"

	"github.com/urfave/cli/v3"
)

func (a *app) demo() *cli.Command {
	return &cli.Command{
		Name: "demo", Category: "All in one", Usage: "crawl a web of its own on loopback for some simulated weeks",
		Action: func(ctx context.Context, c *cli.Command) error { return nil },
	}
}
