package main

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v3"
)

// Groups of verbs.
const (
	stages  = "A round, stage by stage"
	looking = "What is in there"
)

// teach gives a command and those below it a help text that shows flags as they
// are typed, in groups, and fits a terminal. The library takes it for a template
// without any action.
func teach(root *cli.Command) {
	root.CustomRootCommandHelpTemplate = rootHelp(root)
	for _, verb := range root.Commands {
		verb.CustomHelpTemplate = verbHelp(verb, verb.Name)
		for _, sub := range verb.Commands {
			sub.CustomHelpTemplate = verbHelp(sub, verb.Name+" "+sub.Name)
		}
	}
}

func rootHelp(c *cli.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n\nUsage: recrawl VERB [flags] [arguments]\n\n%s\n", c.Name, c.Usage, c.Description)
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
	b.WriteString("\nrecrawl VERB --help shows the flags of a verb, with examples. Exit codes: 0 done,\n1 failed or interrupted, 2 the command line cannot be understood.\n")
	return b.String()
}

func verbHelp(c *cli.Command, name string) string {
	var b strings.Builder
	args := ""
	if c.ArgsUsage != "" {
		args = " " + c.ArgsUsage
	}
	fmt.Fprintf(&b, "recrawl %s: %s\n\nUsage: recrawl %s [flags]%s\n", name, c.Usage, name, args)
	if c.Description != "" {
		fmt.Fprintf(&b, "\n%s\n", c.Description)
	}
	var groups []string
	lists := map[string][]cli.Flag{}
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
	for _, group := range groups {
		fmt.Fprintf(&b, "\n%s:\n", group)
		for _, f := range lists[group] {
			placeholder, usage := "", ""
			if d, ok := f.(cli.DocGenerationFlag); ok {
				placeholder, usage = unquote(d.GetUsage())
			}
			entry(&b, strings.TrimSpace("-"+f.Names()[0]+" "+placeholder), 17, usage)
		}
	}
	return b.String()
}

// unquote returns the word in backquotes in a usage, and the usage without the
// quotes, as package flag has it.
func unquote(usage string) (word, plain string) {
	before, rest, ok := strings.Cut(usage, "`")
	if !ok {
		return "", usage
	}
	word, after, _ := strings.Cut(rest, "`")
	return word, before + word + after
}

// entry writes a term and what it means, in a column of its own.
func entry(b *strings.Builder, term string, width int, text string) {
	const right = 80
	indent := strings.Repeat(" ", 2+width+1)
	fmt.Fprintf(b, "  %-*s", width, term)
	column := 2 + max(width, len(term))
	if len(term) > width {
		b.WriteString("\n" + indent[:len(indent)-1])
		column = len(indent) - 1
	}
	for _, word := range strings.Fields(text) {
		if column+1+len(word) > right {
			b.WriteString("\n" + indent[:len(indent)-1])
			column = len(indent) - 1
		}
		b.WriteString(" " + word)
		column += 1 + len(word)
	}
	b.WriteString("\n")
}
