package verbs

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl/cmd/recrawl/internal/flags"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/render"
)

// The scripts ask complete-words for what may stand where the cursor is. It prints a line for
// each candidate: the word, a tab and what it means. If it prints none, the shell completes
// the names of files.

const bashCompletion = `# Completion of recrawl for bash: source <(recrawl completion bash)
_recrawl() {
  COMPREPLY=()
  local word
  while IFS=$'\t' read -r word _; do
    COMPREPLY+=("$word")
  done < <("$1" complete-words -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _recrawl recrawl
`

const zshCompletion = `#compdef recrawl
# Completion of recrawl for zsh: source <(recrawl completion zsh), or a file _recrawl in $fpath
_recrawl() {
  local -a lines candidates
  local line
  lines=("${(@f)$("$words[1]" complete-words -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  for line in $lines; do
    candidates+=("${line%%$'\t'*}:${line#*$'\t'}")
  done
  if (( $#candidates )); then
    _describe recrawl candidates
  else
    _files
  fi
}
if [ "$funcstack[1]" = "_recrawl" ]; then
  _recrawl "$@"
else
  compdef _recrawl recrawl
fi
`

const fishCompletion = `# Completion of recrawl for fish: recrawl completion fish > ~/.config/fish/completions/recrawl.fish
function __recrawl_complete
  set -l words (commandline -opc) (commandline -ct)
  set -l lines ($words[1] complete-words -- $words[2..-1] 2>/dev/null)
  if test (count $lines) -gt 0
    printf '%s\n' $lines
  else
    __fish_complete_path (commandline -ct)
  end
end
complete -c recrawl -f -a '(__recrawl_complete)'
`

func (a *app) completion() *cli.Command {
	scripts := map[string]string{"bash": bashCompletion, "zsh": zshCompletion, "fish": fishCompletion}
	return &cli.Command{
		Name: "completion", Category: flags.SelfVerbs, Usage: "print a script that completes verbs and flags in a shell", ArgsUsage: "bash|zsh|fish",
		Description: `In bash, for this session or in ~/.bashrc:

  source <(recrawl completion bash)

In zsh, in ~/.zshrc after compinit:

  source <(recrawl completion zsh)

In fish, once:

  recrawl completion fish > ~/.config/fish/completions/recrawl.fish`,
		Action: func(_ context.Context, c *cli.Command) error {
			script := scripts[c.Args().First()]
			if script == "" || c.Args().Len() != 1 {
				return flags.Usagef("completion takes one argument: bash, zsh or fish")
			}
			_, err := io.WriteString(a.out, script)
			return err
		},
	}
}

// completeWords is the verb that the scripts call.
func (a *app) completeWords() *cli.Command {
	return &cli.Command{
		Name: "complete-words", Hidden: true, SkipFlagParsing: true, Usage: "list what may complete the last of some words",
		Action: func(_ context.Context, c *cli.Command) error {
			words := c.Args().Slice()
			if len(words) > 0 && words[0] == "--" {
				words = words[1:]
			}
			w := bufio.NewWriter(a.out)
			for _, candidate := range complete(c.Root(), words) {
				fmt.Fprintf(w, "%s\t%s\n", candidate.word, candidate.meaning)
			}
			return w.Flush()
		},
	}
}

// candidate is a word that may stand where the cursor is.
type candidate struct{ word, meaning string }

// complete returns what may stand for the last of some words, which may be empty.
func complete(root *cli.Command, words []string) (all []candidate) {
	if len(words) == 0 {
		words = []string{""}
	}
	words, last := words[:len(words)-1], words[len(words)-1]
	add := func(word, meaning string) {
		if strings.HasPrefix(word, last) {
			all = append(all, candidate{word, meaning})
		}
	}
	verb := root
	for len(words) > 0 && verb.Command(words[0]) != nil {
		verb, words = verb.Command(words[0]), words[1:]
	}
	if len(words) > 0 {
		if f := flagNamed(verb, words[len(words)-1]); f != nil && takesValue(f) {
			for _, value := range valuesOf(f) {
				add(value, "")
			}
			return all
		}
	}
	if strings.HasPrefix(last, "-") {
		dash := "-"
		if strings.HasPrefix(last, "--") {
			dash = "--"
		}
		for _, f := range verb.Flags {
			if v, ok := f.(cli.VisibleFlag); ok && v.IsVisible() {
				add(dash+f.Names()[0], flagMeaning(f))
			}
		}
		slices.SortFunc(all, func(x, y candidate) int { return strings.Compare(x.word, y.word) })
		return all
	}
	if len(words) > 0 {
		return nil
	}
	for _, sub := range verb.Commands {
		if !sub.Hidden {
			add(sub.Name, sub.Usage)
		}
	}
	if len(verb.Commands) == 0 {
		for _, word := range alternatives(verb.ArgsUsage) {
			add(word, "")
		}
	}
	return all
}

// flagNamed returns the flag of a verb that a word such as -agent names; nil if there is none.
func flagNamed(verb *cli.Command, word string) cli.Flag {
	name, dashed := strings.CutPrefix(word, "-")
	name = strings.TrimPrefix(name, "-")
	for _, f := range verb.Flags {
		if dashed && slices.Contains(f.Names(), name) {
			return f
		}
	}
	return nil
}

func takesValue(f cli.Flag) bool {
	d, ok := f.(cli.DocGenerationFlag)
	return ok && d.TakesValue()
}

// valuesOf returns the values of a flag whose usage lists them as its placeholder.
func valuesOf(f cli.Flag) []string {
	placeholder, _ := render.SplitUsage(f.(cli.DocGenerationFlag).GetUsage())
	return alternatives(placeholder)
}

// alternatives splits a placeholder such as host|domain. One in capitals stands for something
// else, such as URL|HOST.
func alternatives(placeholder string) []string {
	if !strings.Contains(placeholder, "|") || strings.ToLower(placeholder) != placeholder {
		return nil
	}
	return strings.Split(placeholder, "|")
}

// flagMeaning returns what a flag means, up to the first sentence or clause.
func flagMeaning(f cli.Flag) string {
	d, ok := f.(cli.DocGenerationFlag)
	if !ok {
		return ""
	}
	_, usage := render.SplitUsage(d.GetUsage())
	if i := strings.IndexAny(usage, ".;("); i > 0 {
		usage = strings.TrimSpace(usage[:i])
	}
	return usage
}
