package main

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestMain(m *testing.M) {
	if os.Getenv("QUICKSTART") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// The program is the one in README.md.
func TestProgramIsThatOfREADME(t *testing.T) {
	program, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(readme, append([]byte("```go\n"), append(program, "```\n"...)...)) {
		t.Error("README.md does not have the text of examples/quickstart/main.go")
	}
}

// The program names a seed that is refused, and the reason, and fails: whether a seed is refused
// when it is injected, or when it is to be requested, for which there is an event, too.
func TestRefusedSeedIsPrinted(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	for seed, wants := range map[string][]string{
		server.URL:                      {"refused " + server.URL, "1 round: ", "1 refused", "1 refused seed", "address: loopback"},
		"http://example.com/image.png":  {"http://example.com/image.png", "suffix"},
		"http://exam ple.com/":          {"exam ple.com", "host"},
		"gopher://example.com/":         {"gopher://example.com/", "scheme"},
		"http://user:pass@example.com/": {"example.com", "user"},
	} {
		t.Run(seed, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), os.Args[0], seed)
			cmd.Dir, cmd.Env = t.TempDir(), append(os.Environ(), "QUICKSTART=1")
			out, err := cmd.CombinedOutput()
			var failed *exec.ExitError
			if !errors.As(err, &failed) {
				t.Errorf("the program ended with %v", err)
			}
			for _, want := range wants {
				if !strings.Contains(string(out), want) {
					t.Errorf("the program does not print %q: %s", want, out)
				}
			}
		})
	}
}
