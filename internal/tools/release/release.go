package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
)

// job is one release in the making.
type job struct {
	version string
	dry     bool
	out     io.Writer

	repo   string   // the root of the repository
	temp   string   // everything that is made on the way
	tree   string   // a clean checkout of HEAD, below temp
	root   string   // the path of the root module
	nested []nested // in the order of modules.txt
	proxy  proxy
	env    []string // of go commands
}

// nested is one nested module.
type nested struct{ dir, path string }

func (n nested) tag(version string) string { return n.dir + "/" + version }

func release(ctx context.Context, dir, version string, dry bool, out io.Writer) (err error) {
	if semver.Canonical(version) != version {
		return fmt.Errorf("version %q is not of the form v1.2.3", version)
	}
	if major := semver.Major(version); major != "v0" && major != "v1" {
		return fmt.Errorf("version %s: from v2 on the paths of the modules have to change first", version)
	}
	j := &job{version: version, dry: dry, out: out}
	if j.repo, err = git(ctx, dir, "rev-parse", "--show-toplevel"); err != nil {
		return err
	}
	if err := j.mayBegin(ctx); err != nil {
		return err
	}
	if j.temp, err = os.MkdirTemp("", "release-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(j.temp)) }()
	j.tree = filepath.Join(j.temp, "tree")
	if _, err := git(ctx, j.repo, "worktree", "add", "--quiet", "--detach", j.tree, "HEAD"); err != nil {
		return err
	}
	defer func() {
		_, e := git(context.WithoutCancel(ctx), j.repo, "worktree", "remove", "--force", j.tree)
		err = errors.Join(err, e)
	}()
	if err := j.prepare(ctx); err != nil {
		return err
	}
	for _, n := range j.nested {
		if err := j.nestedModule(ctx, n); err != nil {
			return fmt.Errorf("%s: %w", n.dir, err)
		}
	}
	if err := j.consumer(ctx); err != nil {
		return fmt.Errorf("consumer: %w", err)
	}
	if dry {
		j.say("%s could be released; nothing was tagged", version)
		return nil
	}
	return j.tag(ctx)
}

func (j *job) say(format string, args ...any) { fmt.Fprintf(j.out, "release: "+format+"\n", args...) }

// mayBegin refuses what would go wrong later.
func (j *job) mayBegin(ctx context.Context) error {
	changes, err := git(ctx, j.repo, "status", "--porcelain")
	if err != nil {
		return err
	}
	if changes != "" && !j.dry {
		return fmt.Errorf("there are changes that are not committed:\n%s", changes)
	}
	if changes != "" {
		j.say("changes that are not committed are left out")
	}
	tags, err := git(ctx, j.repo, "tag", "--list", j.version, "*/"+j.version)
	if err != nil {
		return err
	}
	if tags != "" && !j.dry {
		return fmt.Errorf("there are tags of this version already: %s", strings.Join(strings.Fields(tags), " "))
	}
	return nil
}

// prepare reads the modules and puts the root module into the proxy.
func (j *job) prepare(ctx context.Context) error {
	mod, err := readMod(j.tree)
	if err != nil {
		return err
	}
	j.root = mod.Module.Mod.Path
	if len(mod.Replace) > 0 {
		return errors.New("go.mod of the root has a replace directive")
	}
	dirs, err := readModules(j.tree)
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		mod, err := readMod(filepath.Join(j.tree, filepath.FromSlash(dir)))
		if err != nil {
			return err
		}
		n := nested{dir, mod.Module.Mod.Path}
		if n.path != path.Join(j.root, dir) {
			return fmt.Errorf("%s: module path is %s, want %s", dir, n.path, path.Join(j.root, dir))
		}
		j.nested = append(j.nested, n)
	}
	if err := j.workspace(); err != nil {
		return err
	}
	j.proxy = proxy(filepath.Join(j.temp, "proxy"))
	if err := j.environment(ctx); err != nil {
		return err
	}
	return j.proxy.add(module.Version{Path: j.root, Version: j.version}, j.tree, j.tree)
}

// unreleased reports whether a module of the workspace is not released: it is there so that
// "go run ./bench" works from the root, or holds nothing but tests.
func unreleased(dir string) bool { return dir == "bench" || dir == "internal/hostile" }

// workspace demands that go.work and modules.txt name the same modules.
func (j *job) workspace() error {
	data, err := os.ReadFile(filepath.Join(j.tree, "go.work"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	work, err := modfile.ParseWork("go.work", data, nil)
	if err != nil {
		return err
	}
	var used []string
	for _, u := range work.Use {
		if dir := path.Clean(u.Path); dir != "." {
			used = append(used, dir)
		}
	}
	for _, n := range j.nested {
		if !slices.Contains(used, n.dir) {
			return fmt.Errorf("%s is in modules.txt but not in go.work", n.dir)
		}
	}
	for _, dir := range used {
		if !unreleased(dir) && !slices.ContainsFunc(j.nested, func(n nested) bool { return n.dir == dir }) {
			return fmt.Errorf("%s is in go.work but not in modules.txt", dir)
		}
	}
	return nil
}

// environment makes go commands see the proxy first, then what this machine has
// downloaded before, then the proxies it is set up for. What they download goes
// to a module cache of its own: the version may yet change, and the cache of the
// machine would keep it forever.
func (j *job) environment(ctx context.Context) error {
	vars, err := command(ctx, j.tree, append(os.Environ(), "GOWORK=off"), "go", "env", "GOMODCACHE", "GOPROXY")
	if err != nil {
		return err
	}
	cache, upstream, _ := strings.Cut(vars, "\n")
	j.env = append(os.Environ(),
		"GOWORK=off",
		"GOFLAGS=-mod=mod -modcacherw -buildvcs=false -trimpath", // so that a second run finds what the first has built
		"GOMODCACHE="+filepath.Join(j.temp, "mod"),
		"GOBIN="+filepath.Join(j.temp, "bin"),
		"GOPROXY="+fileURL(string(j.proxy))+","+fileURL(filepath.Join(cache, "cache", "download"))+","+strings.TrimSpace(upstream),
		"GOENV=off", "GOPRIVATE=", "GONOPROXY=", "GOVCS=*:off", // nothing but these proxies
		// The sums of third parties are in the go.sum files; ours nobody knows yet.
		"GOSUMDB=off",
	)
	return nil
}

func fileURL(dir string) string {
	dir = filepath.ToSlash(dir)
	if !strings.HasPrefix(dir, "/") {
		dir = "/" + dir
	}
	return "file://" + dir
}

// nestedModule turns one module into what a consumer gets, checks it, and puts it
// into the proxy for the next one.
func (j *job) nestedModule(ctx context.Context, n nested) error {
	j.say("checking %s", n.dir)
	dir := filepath.Join(j.tree, filepath.FromSlash(n.dir))
	if err := j.require(n, dir); err != nil {
		return err
	}
	if err := j.goRun(ctx, dir, "mod", "tidy"); err != nil {
		return err
	}
	// Before the tests, which may leave files behind.
	if err := j.proxy.add(module.Version{Path: n.path, Version: j.version}, dir, j.tree); err != nil {
		return err
	}
	if j.dry {
		// Whether it compiles, tests and all, is what the other modules may change.
		return j.goRun(ctx, dir, "list", "-export", "-test", "./...")
	}
	if err := j.goRun(ctx, dir, "vet", "./..."); err != nil {
		return err
	}
	return j.goRun(ctx, dir, "test", "./...")
}

// require drops the replace directives for modules of this repository and
// requires their new version instead.
func (j *job) require(n nested, dir string) error {
	mod, err := readMod(dir)
	if err != nil {
		return err
	}
	ours := func(p string) bool {
		return p == j.root || slices.ContainsFunc(j.nested, func(o nested) bool { return o.path == p })
	}
	for _, r := range slices.Clone(mod.Replace) {
		if !ours(r.Old.Path) {
			return fmt.Errorf("go.mod replaces %s, which no consumer would see", r.Old.Path)
		}
		if err := mod.DropReplace(r.Old.Path, r.Old.Version); err != nil {
			return err
		}
	}
	for _, r := range slices.Clone(mod.Require) {
		p := r.Mod.Path
		if !ours(p) {
			continue
		}
		if !j.proxy.has(module.Version{Path: p, Version: j.version}) {
			return fmt.Errorf("it requires %s, which comes after it in modules.txt", p)
		}
		if err := mod.AddRequire(p, j.version); err != nil {
			return err
		}
	}
	mod.Cleanup()
	data, err := mod.Format()
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "go.mod"), data, 0o666)
}

// consumer does what users will do: import the libraries, install the commands.
func (j *job) consumer(ctx context.Context) error {
	j.say("checking a consumer")
	dir := filepath.Join(j.temp, "consumer")
	if err := os.Mkdir(dir, 0o777); err != nil {
		return err
	}
	if err := j.goRun(ctx, dir, "mod", "init", "consumer.test"); err != nil {
		return err
	}
	var imports []string
	for _, n := range append([]nested{{"", j.root}}, j.nested...) {
		from := filepath.Join(j.tree, filepath.FromSlash(n.dir))
		name, err := command(ctx, from, j.env, "go", "list", "-e", "-f", "{{.Name}}", ".")
		if err != nil {
			return err
		}
		switch strings.TrimSpace(name) {
		case "": // a module of programs
		case "main":
			if err := j.goRun(ctx, dir, "install", n.path+"@"+j.version); err != nil {
				return err
			}
		default:
			if err := j.goRun(ctx, dir, "get", n.path+"@"+j.version); err != nil {
				return err
			}
			imports = append(imports, fmt.Sprintf("\t_ %q\n", n.path))
		}
	}
	if len(imports) == 0 {
		return nil
	}
	source := "package main\n\nimport (\n" + strings.Join(imports, "") + ")\n\nfunc main() {}\n"
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(source), 0o666); err != nil {
		return err
	}
	return j.goRun(ctx, dir, "build", "-o", os.DevNull, ".")
}

// tag is the only step that changes the repository. If it fails half way, it
// takes back what it did.
func (j *job) tag(ctx context.Context) (err error) {
	base, err := git(ctx, j.tree, "rev-parse", "HEAD")
	if err != nil {
		return err
	}
	var tags []string
	defer func() {
		if err != nil && len(tags) > 0 {
			_, e := git(context.WithoutCancel(ctx), j.repo, append([]string{"tag", "--delete"}, tags...)...)
			err = errors.Join(err, e)
		}
	}()
	set := func(name, commit string) error {
		_, err := git(ctx, j.repo, "tag", "-m", name, name, commit)
		if err == nil {
			tags = append(tags, name)
		}
		return err
	}
	if err := set(j.version, base); err != nil {
		return err
	}
	if len(j.nested) > 0 {
		args := []string{"add", "--"}
		for _, n := range j.nested {
			for _, file := range []string{"go.mod", "go.sum"} {
				if name := path.Join(n.dir, file); exists(filepath.Join(j.tree, filepath.FromSlash(name))) {
					args = append(args, name)
				}
			}
		}
		if _, err := git(ctx, j.tree, args...); err != nil {
			return err
		}
		message := "release: " + j.version + "\n\nThe nested modules require this version of each other instead of replacing it."
		if _, err := git(ctx, j.tree, "commit", "--quiet", "--allow-empty", "--message", message); err != nil {
			return err
		}
		commit, err := git(ctx, j.tree, "rev-parse", "HEAD")
		if err != nil {
			return err
		}
		for _, n := range j.nested {
			if err := set(n.tag(j.version), commit); err != nil {
				return err
			}
		}
	}
	j.say("%s is tagged. The root comes first:", j.version)
	j.say("git push REMOTE %s && git push REMOTE %s", tags[0], strings.Join(tags[1:], " "))
	return nil
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// readModules reads modules.txt: a directory a line, # begins a comment.
func readModules(repo string) ([]string, error) {
	data, err := os.ReadFile(filepath.Join(repo, "modules.txt"))
	if err != nil {
		return nil, err
	}
	var dirs []string
	for line := range strings.Lines(string(data)) {
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line != "" {
			dirs = append(dirs, line)
		}
	}
	return dirs, nil
}

func readMod(dir string) (*modfile.File, error) {
	name := filepath.Join(dir, "go.mod")
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	mod, err := modfile.Parse(name, data, nil)
	if err == nil && mod.Module == nil {
		err = fmt.Errorf("%s: no module line", name)
	}
	return mod, err
}

func (j *job) goRun(ctx context.Context, dir string, args ...string) error {
	_, err := command(ctx, dir, j.env, "go", args...)
	return err
}

// git returns what git prints, without the line feed at its end.
func git(ctx context.Context, dir string, args ...string) (string, error) {
	out, err := command(ctx, dir, os.Environ(), "git", args...)
	return strings.TrimRight(out, "\n"), err
}

// command returns the standard output of a command. Its error has all that the
// command printed.
func command(ctx context.Context, dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, env
	var stdout, all bytes.Buffer
	cmd.Stdout, cmd.Stderr = io.MultiWriter(&stdout, &all), &all
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, bytes.TrimSpace(all.Bytes()))
	}
	return stdout.String(), nil
}
