package flags

import (
	"slices"

	"github.com/urfave/cli/v3"
)

// The groups of verbs in the help of the command.
const (
	AllInOne   = "All in one"
	StageVerbs = "A round, stage by stage"
	ReadVerbs  = "Look inside" // these change no crawl
	MergeVerbs = "Import and merge"
	StoreVerbs = "The store"
	SelfVerbs  = "The command"
)

// The groups of flags in the help of a verb.
const (
	NetworkGroup      = "The network"
	SelectionGroup    = "Which pages"
	OutputGroup       = "Clock and output"
	politenessGroup   = "Politeness and bandwidth"
	limitsGroup       = "Limits of a fetch"
	endlessSitesGroup = "Endless sites"
	nutchConfGroup    = "Nutch configuration"
)

// Common reports whether a flag is among those that most crawls need.
func Common(f cli.Flag) bool {
	return slices.Contains([]string{
		"d", "seeds", "config", "agent", "contact", "delay", "threads", "allow-private", "rounds", "topN", "adddays",
		"url-rules", "ignore-external", "schedule", "budget", "scoring", "keep-segments", "conf", "json", "v",
	}, f.Names()[0])
}
