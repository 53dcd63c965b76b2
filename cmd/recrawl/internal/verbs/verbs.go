// Package verbs has the verbs of the command, a file each, named after the verb. It opens
// crawls, calls the library and prints what that reports; decisions of a crawl are not made
// here. All is the list of verbs: a new one is added there.
package verbs

import (
	"io"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl/cmd/recrawl/internal/demo"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/flags"
)

// All returns every verb of the command, in the order of its help. Results go to out,
// and what a user should know besides to warn.
func All(out, warn io.Writer) []*cli.Command {
	a := &app{out: out, err: warn}
	return []*cli.Command{
		demo.Command(out, warn), a.crawl(),

		a.inject(), a.generate(), a.freegen(), a.sitemap(), a.fetch(), a.parse(), a.update(), a.invert(),
		a.updatehostdb(), a.dedup(),

		a.status(), a.serve(), a.mcp(), a.readdb(), a.explain(), a.hosts(), a.readlinks(), a.readseg(), a.warc(), a.index(), a.search(), a.clean(),
		a.domainstats(), a.protocolstats(), a.crawlcomplete(), a.check(), a.schedule(), a.scoring(),

		a.importDump(), a.mergedb(), a.mergelinkdb(), a.mergesegs(),

		a.changes(), a.verify(), a.salvage(), a.compact(), a.backup(), a.move(),

		a.config(), a.completion(), a.version(),

		demo.ChildCommand(warn), a.completeWords(), // hidden
	}
}

// StartsOver reports whether a verb that was interrupted starts over when it is run again;
// the others have kept what they did, and resume.
func StartsOver(verb *cli.Command) bool {
	switch verb.Name {
	case "demo", "verify", "salvage", "backup":
		return true
	}
	return verb.Category == flags.ReadVerbs
}
