package render

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl/cmd/recrawl/internal/flags"
)

// AddHelp gives a command and those below it a help text that shows flags as they
// are typed, in groups, and fits a terminal. It is printed for --help anywhere in
// the command line, and for recrawl help VERB. Of a verb with many flags, --help explains
// the common ones and names the others; --help-all explains all.
func AddHelp(root *cli.Command) {
	root.HideHelp = true // the help of the library
	root.Flags = append(root.Flags,
		&cli.BoolFlag{Name: "help", Aliases: []string{"h"}, Hidden: true},
		&cli.BoolFlag{Name: "help-all", Hidden: true})
	root.CustomRootCommandHelpTemplate = rootHelp(root) // it runs no action
	for _, verb := range root.Commands {
		withHelp(verb, verb.Name)
		for _, sub := range verb.Commands {
			withHelp(sub, verb.Name+" "+sub.Name)
		}
	}
}

// withHelp makes a verb print its help, if asked to, instead of doing anything.
func withHelp(verb *cli.Command, name string) {
	do := verb.Action
	verb.Action = func(ctx context.Context, c *cli.Command) error {
		asked := c.Bool("help") || c.Bool("help-all")
		if verb.SkipFlagParsing && !verb.Hidden {
			asked = slices.ContainsFunc(c.Args().Slice(), func(arg string) bool { return arg == "-h" || arg == "-help" || arg == "--help" })
		}
		if !asked {
			return do(ctx, c)
		}
		_, err := io.WriteString(c.Root().Writer, verbHelp(verb, name, c.Bool("help-all")))
		return err
	}
}

func rootHelp(c *cli.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n\nUsage: recrawl VERB [flags] [arguments]\n\n", c.Name, c.Usage)
	fill(&b, c.Description)
	group := ""
	for _, verb := range c.Commands {
		if verb.Hidden {
			continue
		}
		if verb.Category != group {
			group = verb.Category
			fmt.Fprintf(&b, "\n%s:\n", group)
		}
		entry(&b, verb.Name, 14, verb.Usage)
	}
	b.WriteString("\n")
	fill(&b, "recrawl VERB --help shows the flags of a verb, with examples; with --help-all every flag. Exit codes: 0 success, 1 failed or interrupted, 2 invalid command line, 3 salvaged with losses.")
	return b.String()
}

// MoreHelp begins the part of a verb's description that only --help-all shows.
const MoreHelp = "\f"

// manyFlags is how many flags --help explains before it leaves some to --help-all.
const manyFlags = 20

// verbHelp returns the help of a verb, short or with every flag.
func verbHelp(c *cli.Command, name string, all bool) string {
	var b strings.Builder
	args := ""
	if c.ArgsUsage != "" {
		args = " " + c.ArgsUsage
	}
	fill(&b, "recrawl "+name+": "+c.Usage+nutchName(c.Names()[1:], ""))
	what := ""
	if len(c.Commands) > 0 && len(c.Flags) == 0 {
		what = " WHAT"
	}
	fmt.Fprintf(&b, "\nUsage: recrawl %s%s [flags]%s\n", name, what, args)
	groups, lists := flagGroups(c)
	short := !all && (len(slices.Concat(slices.Collect(maps.Values(lists))...)) > manyFlags || strings.Contains(c.Description, MoreHelp))
	description, more, _ := strings.Cut(c.Description, MoreHelp)
	if !short {
		description += more
	}
	if description != "" {
		b.WriteString("\n")
		fill(&b, strings.TrimRight(description, "\n"))
	}
	if !short {
		for _, group := range groups {
			fmt.Fprintf(&b, "\n%s:\n", group)
			for _, f := range lists[group] {
				flagEntry(&b, f)
			}
		}
		return b.String()
	}
	b.WriteString("\nThe common flags:\n")
	for _, group := range groups {
		for _, f := range lists[group] {
			if flags.Common(f) {
				flagEntry(&b, f)
			}
		}
	}
	fmt.Fprintf(&b, "\nThe other flags; recrawl %s --help-all explains them all:\n", name)
	for _, group := range groups {
		var names []string
		for _, f := range lists[group] {
			if !flags.Common(f) {
				names = append(names, "-"+f.Names()[0])
			}
		}
		if len(names) > 0 {
			entry(&b, group, 24, strings.Join(names, " "))
		}
	}
	return b.String()
}

// flagGroups returns the visible flags of a verb by group, and the groups in order.
func flagGroups(c *cli.Command) (groups []string, lists map[string][]cli.Flag) {
	lists = map[string][]cli.Flag{}
	for _, f := range c.Flags {
		if v, ok := f.(cli.VisibleFlag); ok && !v.IsVisible() {
			continue
		}
		group := "Flags"
		if g, ok := f.(cli.CategorizableFlag); ok && g.GetCategory() != "" {
			group = g.GetCategory()
		}
		if lists[group] == nil {
			groups = append(groups, group)
		}
		lists[group] = append(lists[group], f)
	}
	return groups, lists
}

// flagEntry writes a flag, its value and what it means.
func flagEntry(b *strings.Builder, f cli.Flag) {
	placeholder, usage := "", ""
	if d, ok := f.(cli.DocGenerationFlag); ok {
		placeholder, usage = SplitUsage(d.GetUsage())
	}
	entry(b, strings.TrimSpace("-"+f.Names()[0]+" "+placeholder), 17, usage+nutchName(f.Names()[1:], "-"))
}

// nutchName gives the alias of a verb or a flag, which is its name in Nutch.
func nutchName(aliases []string, dash string) string {
	if len(aliases) == 0 {
		return ""
	}
	return " (Nutch: " + dash + aliases[0] + ")"
}

// SplitUsage returns the word in backquotes in a usage, and the usage without the
// quotes, as package flag does.
func SplitUsage(usage string) (word, plain string) {
	before, rest, ok := strings.Cut(usage, "`")
	if !ok {
		return "", usage
	}
	word, after, _ := strings.Cut(rest, "`")
	return word, before + word + after
}

// helpWidth is the last column of a help text.
const helpWidth = 80

// fill writes a text and fills its paragraphs. Indented lines stay as they are.
func fill(b *strings.Builder, text string) {
	column := 0
	end := func() {
		if column > 0 {
			b.WriteString("\n")
		}
		column = 0
	}
	for line := range strings.SplitSeq(text, "\n") {
		if line == "" || line[0] == ' ' {
			end()
			b.WriteString(line + "\n")
			continue
		}
		for _, word := range strings.Fields(line) {
			switch {
			case column+1+len(word) > helpWidth:
				end()
			case column > 0:
				b.WriteString(" ")
				column++
			}
			b.WriteString(word)
			column += len(word)
		}
	}
	end()
}

// entry writes a term and what it means, in a column of its own.
func entry(b *strings.Builder, term string, width int, text string) {
	indent := strings.Repeat(" ", 2+width+1)
	fmt.Fprintf(b, "  %-*s", width, term)
	column := 2 + max(width, len(term))
	if len(term) > width {
		b.WriteString("\n" + indent[:len(indent)-1])
		column = len(indent) - 1
	}
	for _, word := range strings.Fields(text) {
		if column+1+len(word) > helpWidth {
			b.WriteString("\n" + indent[:len(indent)-1])
			column = len(indent) - 1
		}
		b.WriteString(" " + word)
		column += 1 + len(word)
	}
	b.WriteString("\n")
}
