package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What is right where an int has 64 bits and wrong where it has 32 is found, in tests too; so is a package that there is not.
func TestRun(t *testing.T) {
	for _, test := range []struct {
		name, file, text, goarch string
		want                     string // in what is written; empty: nothing is wrong
	}{
		{"sound", "a.go", "package a\n\nvar A int64 = 1 << 40\n", "386", ""},
		{"64 bits", "a.go", "package a\n\nvar A int = 1 << 40\n", "amd64", ""},
		{"32 bits", "a.go", "package a\n\nvar A int = 1 << 40\n", "386", "a.go:3:13: cannot use 1 << 40"},
		{"a test", "a_test.go", "package a\n\nvar A int = 1 << 40\n", "386", "a_test.go:3:13: cannot use 1 << 40"},
		{"nothing there", "a.go", "package a\n\nimport _ \"a.test/b\"\n", "386", "a.test/b"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range map[string]string{"go.mod": "module a.test\n\ngo 1.26\n", test.file: test.text} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			t.Setenv("GOWORK", "off")
			var out strings.Builder
			err := run(t.Context(), []string{"-C", dir, "-goarch", test.goarch, "./..."}, &out)
			if (err != nil) != (test.want != "") || !strings.Contains(out.String(), test.want) {
				t.Errorf("%v, and wrote %q; want %q", err, out.String(), test.want)
			}
		})
	}
}

func TestNothingMatches(t *testing.T) {
	t.Setenv("GOWORK", "off")
	if err := run(t.Context(), []string{"-C", t.TempDir(), "./..."}, &strings.Builder{}); err == nil {
		t.Error("a directory without packages is no error")
	}
}
