package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestCompletionOfWords(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		words string // the last ends where the cursor is
		want  string // words that are among the candidates, or "none"
		not   string // words that are not
	}{
		{"", "crawl version check", "demo-crawl complete-words"},
		{"cra", "crawl crawlcomplete", "check"},
		{"check ", "filter robots", "crawl"},
		{"check fi", "filter", "robots"},
		{"crawl -", "-agent -rounds -host-rules", "-help --agent"},
		{"crawl -d x --ag", "--agent", "-agent --delay"},
		{"crawl -by ", "host domain", "-agent"},
		{"crawl -by d", "domain", "host"},
		{"crawl -allow-private -ro", "-rounds -round-time", ""},
		{"crawl -d ", "none", ""},
		{"crawl -agent -", "none", ""},
		{"crawl x", "none", ""},
		{"completion ", "bash zsh fish", ""},
		{"readdb -top", "-top", "-topN"}, // accepted, but without effect
		{"nothing ", "none", ""},
	} {
		var got []string
		for line := range strings.Lines(ok(t, append([]string{"complete-words", "--"}, strings.Split(test.words, " ")...)...)) {
			word, meaning, cut := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
			if !cut || strings.Contains(meaning, "`") {
				t.Errorf("%q: %q", test.words, line)
			}
			got = append(got, word)
		}
		if test.want == "none" {
			if len(got) > 0 {
				t.Errorf("%q: %q, want none", test.words, got)
			}
			continue
		}
		for _, word := range strings.Fields(test.want) {
			if !slices.Contains(got, word) {
				t.Errorf("%q: %q, without %s", test.words, got, word)
			}
		}
		for _, word := range strings.Fields(test.not) {
			if slices.Contains(got, word) {
				t.Errorf("%q: %q, with %s", test.words, got, word)
			}
		}
	}
	if r := recrawl(t, "completion", "tcsh"); r.code != 2 {
		t.Errorf("completion tcsh: %+v", r)
	}
}

// completes runs a shell in a directory where recrawl is the command and a file is called
// seeds.txt, and returns the lines that it prints.
func completes(t *testing.T, script string, shell ...string) []string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Symlink(program, filepath.Join(dir, "recrawl")); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write("seeds.txt", "")
	write("script", script)
	c := exec.Command(shell[0], append(shell[1:], "script")...)
	c.Dir = dir
	c.Env = append(os.Environ(), "PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"), "HOME="+dir)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", shell, err, out)
	}
	return strings.Fields(string(out))
}

func TestCompletionInBash(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("bash is not installed")
	}
	const ask = `
source <(recrawl completion bash)
ask() { COMP_WORDS=("$@"); COMP_CWORD=$(( $# - 1 )); _recrawl recrawl; echo "${COMPREPLY[@]}"; }
`
	if got := completes(t, ask+"ask recrawl crawlc; ask recrawl crawl -d x -agen; ask recrawl crawl -seeds see; complete -p recrawl", "bash", "--norc"); strings.Join(got, " ") != "crawlcomplete -agent complete -o default -F _recrawl recrawl" {
		t.Errorf("bash completes %q", got)
	}
}
