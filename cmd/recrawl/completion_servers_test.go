//go:build servers

package main_test

import (
	"strings"
	"testing"
)

// These need zsh and fish.

func TestCompletionInZsh(t *testing.T) {
	const script = `
autoload -U compinit && compinit -u -d .zcompdump
source <(recrawl completion zsh)
(( $+_comps[recrawl] )) || exit 1
_describe() { print -l -- "${(@P)2}" }
_files() { print files }
ask() { words=("$@") CURRENT=$#; _recrawl }
ask recrawl crawlc; ask recrawl crawl -d x -agen; ask recrawl crawl -seeds see
`
	got := strings.Join(completes(t, script, "zsh", "-f"), " ")
	for _, want := range []string{"crawlcomplete:count by host", " -agent:the NAME of the crawler", " files"} {
		if !strings.Contains(" "+got, want) {
			t.Errorf("zsh completes %q, without %q", got, want)
		}
	}
}

func TestCompletionInFish(t *testing.T) {
	const script = `
recrawl completion fish | source
complete -C "recrawl crawlc"
complete -C "recrawl crawl -d x -agen"
complete -C "recrawl crawl -seeds see"
`
	got := strings.Join(completes(t, script, "fish", "--no-config"), " ")
	for _, want := range []string{"crawlcomplete count by host", " -agent the NAME of the crawler", " seeds.txt"} {
		if !strings.Contains(" "+got, want) {
			t.Errorf("fish completes %q, without %q", got, want)
		}
	}
}
