package arch

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The documents that must stay true. Generated ones have tests of their own.
var documents = []string{
	"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md",
	"docs/*.md", "docs/design/*.md", "docs/adr/*.md",
}

// sizes are the most bytes of what a pattern names, all together.
var sizes = map[string]int{
	"README.md":            8 << 10,
	"ARCHITECTURE.md":      12 << 10,
	"docs/benchmarks.md":   12 << 10,
	"docs/integrations.md": 20_000,
	"docs/design/*.md":     80 << 10,
	"docs/adr/*.md":        80 << 10,
}

// notPaths look like paths of this repository and are names of something else.
var notPaths = map[string]string{
	"schedule/plan":    "a mark of the crawl db",
	"schedule/account": "a mark of the crawl db",
	"schedule/left":    "a mark of the crawl db",
}

func TestDocumentSizes(t *testing.T) {
	repo := os.DirFS("../..")
	for pattern, most := range sizes {
		n := 0
		for _, name := range glob(t, repo, pattern) {
			n += len(read(t, repo, name))
		}
		if n == 0 || n > most {
			t.Errorf("%s: %d bytes; want 1 to %d", pattern, n, most)
		}
	}
}

// The glossary of CONTRIBUTING.md is short enough to be read.
func TestGlossaryIsShort(t *testing.T) {
	text := string(read(t, os.DirFS("../.."), "CONTRIBUTING.md"))
	_, words, _ := strings.Cut(text, "## Words\n")
	words, _, _ = strings.Cut(words, "\n## ")
	terms := strings.Count(words, "\n| ") - 2 // heads
	if terms < 10 || terms > 40 {
		t.Errorf("%d terms; want 10 to 40", terms)
	}
}

var (
	link       = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	quoted     = regexp.MustCompile("`([^`\n]+)`")
	pathLike   = regexp.MustCompile(`^[\w.-]+(/[\w.-]+)+/?$`)
	identifier = regexp.MustCompile(`^(?:([a-z]\w*)\.)?([A-Z]\w*)(?:\.([A-Z]\w*))?(?:\(.*\))?$`)
	testName   = regexp.MustCompile(`\b(?:Test|Fuzz|Benchmark)[A-Z]\w*`)
)

// Links and paths in back quotes lead to files and directories that exist; identifiers in back
// quotes, such as `fetch.Options.Threads`, and names of tests exist in the code.
func TestDocumentsNameWhatExists(t *testing.T) {
	repo := os.DirFS("../..")
	top, err := fs.ReadDir(repo, ".")
	if err != nil {
		t.Fatal(err)
	}
	code := readCode(t, repo)
	for _, pattern := range documents {
		for _, name := range glob(t, repo, pattern) {
			text := string(read(t, repo, name))
			for _, m := range link.FindAllStringSubmatch(text, -1) {
				to, _, _ := strings.Cut(m[1], "#")
				if to == "" || strings.Contains(to, "://") {
					continue
				}
				if !exists(repo, path.Join(path.Dir(name), to)) {
					t.Errorf("%s: link to %s, which does not exist", name, m[1])
				}
			}
			for _, m := range quoted.FindAllStringSubmatch(text, -1) {
				if fault := code.check(repo, top, m[1]); fault != "" {
					t.Errorf("%s: `%s`: %s", name, m[1], fault)
				}
			}
			for _, m := range testName.FindAllString(text, -1) {
				if !code.hasTest(m) {
					t.Errorf("%s: there is no test %s", name, m)
				}
			}
		}
	}
}

var (
	goTest     = regexp.MustCompile("(?m)\\bgo test [^`|#\n]*(?:\\\\\\|[^`|#\n]*)*")
	packageArg = regexp.MustCompile(` \./([a-z][\w/]*)`)
	flagArg    = regexp.MustCompile(` -([a-z][\w.-]*)`)
)

// goTestFlags are flags of go test itself.
var goTestFlags = strings.Fields("args bench benchmem benchtime count cover coverprofile fuzz fuzzminimizetime fuzztime race run tags timeout v vet")

// The flags in commands that begin with "go test ./package" are flags of its tests.
func TestDocumentsShowFlagsOfTests(t *testing.T) {
	repo := os.DirFS("../..")
	commands := 0
	for _, pattern := range documents {
		for _, name := range glob(t, repo, pattern) {
			for _, command := range goTest.FindAllString(string(read(t, repo, name)), -1) {
				var files []string
				for _, m := range packageArg.FindAllStringSubmatch(command, -1) {
					files = append(files, glob(t, repo, m[1]+"/*_test.go")...)
				}
				if files == nil {
					continue
				}
				commands++
				for _, m := range flagArg.FindAllStringSubmatch(command, -1) {
					has := func(file string) bool { return bytes.Contains(read(t, repo, file), []byte(`"`+m[1]+`"`)) }
					if !slices.Contains(goTestFlags, m[1]) && !slices.ContainsFunc(files, has) {
						t.Errorf("%s: %s: no test of these packages has the flag -%s", name, command, m[1])
					}
				}
			}
		}
	}
	if commands < 10 {
		t.Errorf("%d commands", commands)
	}
}

// Each decision has four parts, stands, and is in the index.
func TestDecisionsHaveFourParts(t *testing.T) {
	repo := os.DirFS("../..")
	index := strings.Join(strings.Fields(string(read(t, repo, "docs/adr/README.md"))), " ")
	for _, name := range glob(t, repo, "docs/adr/0*.md") {
		text := string(read(t, repo, name))
		heads := regexp.MustCompile(`(?m)^## (.*)$`).FindAllStringSubmatch(text, -1)
		var parts []string
		for _, h := range heads {
			parts = append(parts, h[1])
		}
		if !slices.Equal(parts, []string{"Context", "Decision", "Alternatives", "Consequences"}) {
			t.Errorf("%s has the parts %q", name, parts)
		}
		title, _, _ := strings.Cut(text, "\n")
		_, title, _ = strings.Cut(title, ". ")
		if !strings.Contains(index, "["+title+"]("+path.Base(name)+")") {
			t.Errorf("%s is not in docs/adr/README.md under its title", name)
		}
		for _, word := range []string{"supersede", "amend"} {
			if strings.Contains(text, word) {
				t.Errorf("%s says %q: change the decision that it is about", name, word)
			}
		}
	}
}

var hop = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| `(\\w+)` \\|")

// The way of one URL through the code, in ARCHITECTURE.md, has at most 30 steps, each a function of
// the file that it names.
func TestWayOfAURL(t *testing.T) {
	repo := os.DirFS("../..")
	hops := hop.FindAllStringSubmatch(string(read(t, repo, "ARCHITECTURE.md")), -1)
	if len(hops) < 10 || len(hops) > 30 {
		t.Errorf("%d steps", len(hops))
	}
	for i, m := range hops {
		function := regexp.MustCompile(`(?m)^func (?:\([^)]+\) )?` + m[2] + `[\[(]`)
		if !exists(repo, m[1]) || !function.Match(read(t, repo, m[1])) {
			t.Errorf("step %d: %s has no function %s", i+1, m[1], m[2])
		}
	}
}

// codeNames are the exported names of all packages, by package name, and the names of all tests.
type codeNames struct {
	packages map[string]map[string]members
	tests    []string
}

// members are the fields and methods of a type, and which types it embeds; nil for what is no type.
type members map[string]bool

func readCode(t *testing.T, repo fs.FS) codeNames {
	c := codeNames{packages: map[string]map[string]members{}}
	files := token.NewFileSet()
	err := fs.WalkDir(repo, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := path.Base(name)
		if d.IsDir() {
			if name != "." && (base == "testdata" || base[0] == '.' || base[0] == '_') {
				return fs.SkipDir
			}
			return nil
		}
		if path.Ext(name) != ".go" {
			return nil
		}
		f, err := parser.ParseFile(files, name, read(t, repo, name), parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		c.add(f, strings.HasSuffix(name, "_test.go"))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *codeNames) add(f *ast.File, test bool) {
	if test {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && testName.MatchString(fn.Name.Name) {
				c.tests = append(c.tests, fn.Name.Name)
			}
		}
		return
	}
	p := c.packages[f.Name.Name]
	if p == nil {
		p = map[string]members{}
		c.packages[f.Name.Name] = p
	}
	of := func(name string) members {
		if p[name] == nil {
			p[name] = members{}
		}
		return p[name]
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				of(d.Name.Name)
			} else {
				of(typeName(d.Recv.List[0].Type))[d.Name.Name] = true
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.ValueSpec:
					for _, n := range s.Names {
						of(n.Name)
					}
				case *ast.TypeSpec:
					addFields(of(s.Name.Name), s.Type)
				}
			}
		}
	}
}

func addFields(m members, e ast.Expr) {
	var fields *ast.FieldList
	switch e := e.(type) {
	case *ast.StructType:
		fields = e.Fields
	case *ast.InterfaceType:
		fields = e.Methods
	default:
		return
	}
	for _, f := range fields.List {
		for _, n := range f.Names {
			m[n.Name] = true
		}
		if len(f.Names) == 0 {
			m["embeds "+typeName(f.Type)] = true
			m[typeName(f.Type)] = true
		}
	}
}

// typeName returns the name of a type without its package, pointer and type arguments.
func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return typeName(e.X)
	case *ast.IndexExpr:
		return typeName(e.X)
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// check returns what is wrong with a text in back quotes, or nothing.
func (c codeNames) check(repo fs.FS, top []fs.DirEntry, text string) string {
	if pathLike.MatchString(text) {
		first, _, _ := strings.Cut(text, "/")
		ours := slices.ContainsFunc(top, func(d fs.DirEntry) bool { return d.Name() == first })
		if ours && notPaths[text] == "" && !exists(repo, strings.TrimSuffix(text, "/")) {
			return "no such file or directory"
		}
		return ""
	}
	m := identifier.FindStringSubmatch(text)
	if m == nil {
		return ""
	}
	pkg, name, member := m[1], m[2], m[3]
	if pkg == "" {
		if member == "" {
			return ""
		}
		for of := range c.packages {
			if c.has(of, name, member) {
				return ""
			}
		}
		return "no package has it"
	}
	if c.packages[pkg] == nil || c.has(pkg, name, member) {
		return "" // of another module, or there
	}
	return "package " + pkg + " does not have it"
}

// has reports whether a package has a name, and a type of that name a member, perhaps of an
// embedded type.
func (c codeNames) has(pkg, name, member string) bool {
	m, ok := c.packages[pkg][name]
	if !ok || member == "" || m[member] {
		return ok
	}
	for k := range m {
		if t, ok := strings.CutPrefix(k, "embeds "); ok {
			for of := range c.packages {
				if _, ok := c.packages[of][t]; ok && t != name && c.has(of, t, member) {
					return true
				}
			}
		}
	}
	return false
}

// hasTest reports whether the name of a test begins with a text, as a pattern of go test.
func (c codeNames) hasTest(prefix string) bool {
	return slices.ContainsFunc(c.tests, func(n string) bool { return strings.HasPrefix(n, prefix) })
}

func glob(t *testing.T, repo fs.FS, pattern string) []string {
	names, err := fs.Glob(repo, pattern)
	if err != nil {
		t.Fatal(err)
	}
	if len(names) == 0 {
		t.Errorf("no document %s", pattern)
	}
	return names
}

func read(t *testing.T, repo fs.FS, name string) []byte {
	b, err := fs.ReadFile(repo, name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func exists(repo fs.FS, name string) bool {
	_, err := fs.Stat(repo, path.Clean(name))
	return err == nil
}
