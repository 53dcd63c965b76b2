package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// tiny is a repository like ours: a root, an engine that needs it, a command that
// needs both, and examples without a package at their root. Its path ends in .git,
// so that the go command can be sent to the repository itself.
var tiny = map[string]string{
	"LICENSE":     "None.\n",
	"modules.txt": "# order matters\nstores/kv\ncmd/acme # needs kv\nexamples\n",
	"go.work":     "go 1.26.0\n\nuse (\n\t.\n\t./stores/kv\n\t./cmd/acme\n\t./examples\n)\n",
	"go.mod":      "module example.test/acme.git\n\ngo 1.26.0\n",
	"acme.go":     "package acme\n\nfunc Name() string { return \"acme\" }\n",
	"stores/kv/go.mod": "module example.test/acme.git/stores/kv\n\ngo 1.26.0\n\nrequire example.test/acme.git v0.0.0\n\n" +
		"replace example.test/acme.git => ../..\n",
	"stores/kv/kv.go":      "package kv\n\nimport \"example.test/acme.git\"\n\nfunc Name() string { return acme.Name() + \" kv\" }\n",
	"stores/kv/kv_test.go": "package kv\n\nimport \"testing\"\n\nfunc TestName(t *testing.T) {\n\tif Name() != \"acme kv\" {\n\t\tt.Error(Name())\n\t}\n}\n",
	"cmd/acme/go.mod": "module example.test/acme.git/cmd/acme\n\ngo 1.26.0\n\nrequire (\n\texample.test/acme.git v0.0.0\n\texample.test/acme.git/stores/kv v0.0.0\n)\n\n" +
		"replace (\n\texample.test/acme.git => ../..\n\texample.test/acme.git/stores/kv => ../../stores/kv\n)\n",
	"cmd/acme/main.go": "package main\n\nimport (\n\t\"fmt\"\n\n\t\"example.test/acme.git\"\n\t\"example.test/acme.git/stores/kv\"\n)\n\n" +
		"func main() { fmt.Println(acme.Name(), kv.Name()) }\n",
	"examples/go.mod": "module example.test/acme.git/examples\n\ngo 1.26.0\n\nrequire example.test/acme.git v0.0.0\n\n" +
		"replace example.test/acme.git => ../\n",
	"examples/one/main.go": "package main\n\nimport \"example.test/acme.git\"\n\nfunc main() { println(acme.Name()) }\n",
}

// repository makes a repository of tiny with some files changed; an empty text
// removes one. The go and git commands of the test see nothing but this machine.
func repository(t *testing.T, changed map[string]string) string {
	t.Helper()
	config := filepath.Join(t.TempDir(), "gitconfig")
	repo := filepath.Join(t.TempDir(), "acme")
	write(t, config, "[user]\n\tname = A. Tester\n\temail = tester@example.test\n[init]\n\tdefaultBranch = main\n"+
		"[url \"file://"+filepath.ToSlash(repo)+"\"]\n\tinsteadOf = https://example.test/acme\n[protocol \"file\"]\n\tallow = always\n")
	for name, value := range map[string]string{
		"GIT_CONFIG_GLOBAL": config, "GIT_CONFIG_NOSYSTEM": "1", "GOPROXY": "off", "GOFLAGS": "", "GOENV": "off", "GOWORK": "",
	} {
		t.Setenv(name, value)
	}
	for name, text := range tiny {
		if other, ok := changed[name]; ok {
			text = other
		}
		if text != "" {
			write(t, filepath.Join(repo, name), text)
		}
	}
	for name, text := range changed {
		if _, ok := tiny[name]; !ok {
			write(t, filepath.Join(repo, name), text)
		}
	}
	mustGit(t, repo, "init", "--quiet")
	mustGit(t, repo, "add", ".")
	mustGit(t, repo, "commit", "--quiet", "-m", "all")
	return repo
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

func mustGit(t *testing.T, repo string, args ...string) string {
	t.Helper()
	out, err := git(t.Context(), repo, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// refs is everything about a repository that a release may change.
func refs(t *testing.T, repo string) string {
	t.Helper()
	return mustGit(t, repo, "show-ref", "--head") + "\n" + mustGit(t, repo, "status", "--porcelain") + "\n" + mustGit(t, repo, "worktree", "list")
}

func TestRelease(t *testing.T) {
	repo := repository(t, nil)
	head, before := mustGit(t, repo, "rev-parse", "HEAD"), refs(t, repo)
	var out bytes.Buffer
	if err := run(t.Context(), []string{"-C", filepath.Join(repo, "stores"), "-n", "v0.1.0"}, &out, &out); err != nil {
		t.Fatal(err)
	}
	if after := refs(t, repo); after != before {
		t.Errorf("-n changed\n%s\ninto\n%s", before, after)
	}
	if err := run(t.Context(), []string{"-C", repo, "v0.1.0"}, &out, &out); err != nil {
		t.Fatal(err)
	}

	want := "git push REMOTE v0.1.0 && git push REMOTE stores/kv/v0.1.0 cmd/acme/v0.1.0 examples/v0.1.0\n"
	if !strings.HasSuffix(out.String(), want) {
		t.Errorf("said\n%s", out.String())
	}
	if got := mustGit(t, repo, "rev-parse", "v0.1.0^{commit}"); got != head {
		t.Errorf("the root is tagged at %s, want %s", got, head)
	}
	if mustGit(t, repo, "rev-parse", "HEAD") != head || mustGit(t, repo, "status", "--porcelain") != "" {
		t.Error("the branch has changed")
	}
	if got := mustGit(t, repo, "rev-parse", "cmd/acme/v0.1.0~1"); got != head {
		t.Errorf("the release commit follows %s, want %s", got, head)
	}
	mod := mustGit(t, repo, "show", "cmd/acme/v0.1.0:cmd/acme/go.mod")
	if strings.Contains(mod, "replace") || strings.Count(mod, " v0.1.0") != 2 {
		t.Errorf("the command was released with\n%s", mod)
	}
	if files := mustGit(t, repo, "diff", "--name-only", head, "examples/v0.1.0"); strings.Contains(files, ".go\n") || !strings.Contains(files, "stores/kv/go.sum") {
		t.Errorf("the release commit changes\n%s", files)
	}

	// The go command now makes the modules out of the tags by itself. Their sums
	// must be those that the release has written down.
	dir := t.TempDir()
	env := append(os.Environ(), "GOPROXY=direct", "GOSUMDB=off", "GOWORK=off", "GOFLAGS=-mod=mod -modcacherw",
		"GOMODCACHE="+filepath.Join(dir, "mod"), "GOBIN="+filepath.Join(dir, "bin"))
	consumer := filepath.Join(dir, "consumer")
	write(t, filepath.Join(consumer, "main.go"), "package main\n\nimport (\n\t\"example.test/acme.git\"\n\t\"example.test/acme.git/stores/kv\"\n)\n\nfunc main() { println(acme.Name(), kv.Name()) }\n")
	for _, args := range [][]string{
		{"mod", "init", "consumer.test"}, {"get", "example.test/acme.git@v0.1.0"}, {"get", "example.test/acme.git/stores/kv@v0.1.0"},
		{"build", "-o", os.DevNull, "."}, {"install", "example.test/acme.git/cmd/acme@v0.1.0"},
	} {
		if _, err := command(t.Context(), consumer, env, "go", args...); err != nil {
			t.Fatal(err)
		}
	}
	said, err := exec.CommandContext(t.Context(), filepath.Join(dir, "bin", "acme")).Output()
	if err != nil || string(said) != "acme acme kv\n" {
		t.Errorf("the installed command said %q, %v", said, err)
	}

	if err := run(t.Context(), []string{"-C", repo, "v0.1.0"}, &out, &out); err == nil || !strings.Contains(err.Error(), "tags of this version already") {
		t.Errorf("a second release: %v", err)
	}
	if err := run(t.Context(), []string{"-C", repo, "v0.2.0-rc.1"}, &out, &out); err != nil {
		t.Errorf("the next release: %v", err)
	}
}

func TestReleaseIsRefused(t *testing.T) {
	for _, c := range []struct {
		name    string
		version string
		changed map[string]string
		loose   bool // leave a file uncommitted
		want    string
	}{
		{name: "a version without v", version: "0.1.0", want: "not of the form"},
		{name: "half a version", version: "v0.1", want: "not of the form"},
		{name: "a second major version", version: "v2.0.0", want: "paths of the modules"},
		{name: "changes not committed", loose: true, want: "not committed"},
		{name: "no list of modules", changed: map[string]string{"modules.txt": ""}, want: "modules.txt"},
		{name: "a module that is not there", changed: map[string]string{"modules.txt": "stores/none\n"}, want: "go.mod"},
		{name: "a module not in the list", changed: map[string]string{"modules.txt": "stores/kv\ncmd/acme\n"}, want: "examples is in go.work but not in modules.txt"},
		{name: "a module not in the workspace", changed: map[string]string{"go.work": "go 1.26.0\n\nuse ./stores/kv\n"}, want: "cmd/acme is in modules.txt but not in go.work"},
		{name: "the wrong order", changed: map[string]string{"modules.txt": "cmd/acme\nstores/kv\nexamples\n"}, want: "cmd/acme: it requires example.test/acme.git/stores/kv, which comes after it"},
		{name: "another path", changed: map[string]string{"examples/go.mod": "module example.test/examples\n"}, want: "want example.test/acme.git/examples"},
		{name: "a replace in the root", changed: map[string]string{"go.mod": tiny["go.mod"] + "replace example.test/x => ./stores\n"}, want: "root has a replace"},
		{name: "a replace of a third party", changed: map[string]string{"stores/kv/go.mod": tiny["stores/kv/go.mod"] + "replace example.test/x => ../..\n"}, want: "replaces example.test/x"},
		{name: "a test that fails", changed: map[string]string{"stores/kv/kv.go": "package kv\n\nfunc Name() string { return \"\" }\n"}, want: "stores/kv: go test ./..."},
		{name: "a module that does not build", changed: map[string]string{"examples/one/main.go": "package main\n\nimport \"example.test/acme.git\"\n\nfunc main() { acme.None() }\n"}, want: "undefined: acme.None"},
		{name: "a requirement nobody has", changed: map[string]string{"examples/one/main.go": "package main\n\nimport \"example.test/none\"\n\nfunc main() { none.None() }\n"}, want: "example.test/none"},
	} {
		t.Run(c.name, func(t *testing.T) {
			repo := repository(t, c.changed)
			if c.loose {
				write(t, filepath.Join(repo, "loose.txt"), "x")
			}
			before := refs(t, repo)
			version := c.version
			if version == "" {
				version = "v0.1.0"
			}
			var out bytes.Buffer
			err := run(t.Context(), []string{"-C", repo, version}, &out, &out)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error is %v, want one with %q", err, c.want)
			}
			if after := refs(t, repo); after != before {
				t.Errorf("it changed\n%s\ninto\n%s", before, after)
			}
		})
	}
}

// If one tag cannot be made, the others are taken back.
func TestTagsAreTakenBack(t *testing.T) {
	repo := repository(t, nil)
	mustGit(t, repo, "tag", "examples") // so that examples/v0.1.0 cannot be made
	before := refs(t, repo)
	var out bytes.Buffer
	if err := run(t.Context(), []string{"-C", repo, "v0.1.0"}, &out, &out); err == nil {
		t.Fatal("no error")
	}
	if after := refs(t, repo); after != before {
		t.Errorf("it left\n%s\nwas\n%s", after, before)
	}
}

func TestArguments(t *testing.T) {
	var out bytes.Buffer
	for _, args := range [][]string{nil, {"v0.1.0", "v0.2.0"}, {"-x"}} {
		if err := run(t.Context(), args, &out, &out); err == nil {
			t.Errorf("%q: no error", args)
		}
	}
}
