package main_test

import (
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/recrawl/recrawl/cmd/recrawl/internal/flags"
	commands "github.com/recrawl/recrawl/cmd/recrawl/internal/verbs"
	"github.com/urfave/cli/v3"
)

// The command lines in the documents have verbs and flags that exist.
func TestDocumentsShowFlagsThatExist(t *testing.T) {
	t.Parallel()
	known := map[string][]string{}
	root := &cli.Command{Commands: commands.All(io.Discard, io.Discard)}
	flags.AddConfigFiles(root)
	addFlags(known, "", root.Commands)
	var (
		command = regexp.MustCompile("(?m)(?:^    |[`| ])recrawl ([a-z]+)( [a-z]+)?([^`|#\n]*)")
		flag    = regexp.MustCompile(` -{1,2}([a-z][\w-]*)`)
	)
	lines := 0
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "examples/*.md"} {
		names, err := filepath.Glob(filepath.Join("..", "..", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range command.FindAllStringSubmatch(string(text), -1) {
				verb := m[1]
				if known[verb] == nil {
					continue // a word of a sentence
				}
				if known[verb+m[2]] != nil {
					verb += m[2]
				}
				lines++
				for _, f := range flag.FindAllStringSubmatch(m[0], -1) {
					if !slices.Contains(known[verb], f[1]) {
						t.Errorf("%s: recrawl %s has no flag -%s", name, verb, f[1])
					}
				}
			}
		}
	}
	if lines < 30 {
		t.Errorf("%d command lines in the documents", lines)
	}
}

// addFlags adds the names of the flags of commands, below a path of verbs.
func addFlags(known map[string][]string, path string, all []*cli.Command) {
	for _, c := range all {
		if c.SkipFlagParsing {
			continue // its arguments are those of another verb
		}
		names := map[string]bool{"help": true}
		for _, f := range c.Flags {
			for _, n := range f.Names() {
				names[n] = true
			}
		}
		for _, verb := range c.Names() {
			known[path+verb] = slices.Sorted(maps.Keys(names))
			addFlags(known, path+verb+" ", c.Commands)
		}
	}
}
