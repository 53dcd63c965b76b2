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

// A seed on this machine is refused: the report says so, and the program fails with the reason.
func TestPrivateAddressIsReported(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	cmd := exec.CommandContext(t.Context(), os.Args[0], server.URL)
	cmd.Dir, cmd.Env = t.TempDir(), append(os.Environ(), "QUICKSTART=1")
	out, err := cmd.CombinedOutput()
	var failed *exec.ExitError
	if !errors.As(err, &failed) {
		t.Errorf("the program ended with %v", err)
	}
	for _, want := range []string{"1 round: ", "1 refused", "127.0.0.1"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the program does not print %q: %s", want, out)
		}
	}
}
