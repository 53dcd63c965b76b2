package main

import (
	"bytes"
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

// A seed on this machine is refused, and the report says so.
func TestPrivateAddressIsReported(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	cmd := exec.CommandContext(t.Context(), os.Args[0], server.URL)
	cmd.Dir, cmd.Env = t.TempDir(), append(os.Environ(), "QUICKSTART=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if !strings.Contains(string(out), "refused") {
		t.Errorf("the report does not say that the seed was refused: %s", out)
	}
}
