package arch

import (
	"bufio"
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

type policy struct {
	module     string
	packages   map[string]row
	thirdParty map[string]string
	tables     map[string]string // names by directory
	panics     map[string]string // directory, and why
}

type row struct {
	kind    kind
	imports string
}

type kind string

const (
	vocabulary kind = "vocabulary"
	noun       kind = "noun"
	policyKind kind = "policy"
	adapter    kind = "adapter"
	verb       kind = "verb"
	store      kind = "store"
	tool       kind = "tool"
	kit        kind = "kit"
	frame      kind = "frame" // of kits, which alone import it
	root       kind = "root"
	front      kind = "front" // beside the commands: what puts the root to use
)

// source is one Go file.
type source struct {
	name, dir string
	test      bool
	data      []byte
}

// tree is the Go files of the module itself, and of each module nested in it by
// its directory.
type tree struct {
	files   []source
	nested  map[string][]source
	modules map[string]string // module path by directory
}

func load(fsys fs.FS) (tree, error) {
	t := tree{nested: map[string][]source{}, modules: map[string]string{}}
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := path.Base(name)
		if d.IsDir() {
			if name != "." && (base == "testdata" || base == "vendor" || base[0] == '.' || base[0] == '_') {
				return fs.SkipDir
			}
			if mod, err := fs.ReadFile(fsys, path.Join(name, "go.mod")); err == nil {
				t.modules[name] = modulePath(mod)
			}
			return nil
		}
		if path.Ext(name) != ".go" {
			return nil
		}
		data, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		f := source{name, path.Dir(name), strings.HasSuffix(base, "_test.go"), data}
		for dir := f.dir; dir != "."; dir = path.Dir(dir) {
			if _, ok := t.modules[dir]; ok {
				t.nested[dir] = append(t.nested[dir], f)
				return nil
			}
		}
		t.files = append(t.files, f)
		return nil
	})
	return t, err
}

func modulePath(mod []byte) string {
	for s := bufio.NewScanner(bytes.NewReader(mod)); s.Scan(); {
		if p, ok := strings.CutPrefix(strings.TrimSpace(s.Text()), "module "); ok {
			return strings.TrimSpace(p)
		}
	}
	return ""
}

func imports(f source) ([]string, error) {
	file, err := parser.ParseFile(token.NewFileSet(), f.name, f.data, parser.ImportsOnly)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, i := range file.Imports {
		p, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			return nil, err
		}
		paths = append(paths, p)
	}
	return paths, nil
}

// below reports whether a package is the parent or lies below it.
func below(pkg, parent string) bool {
	return pkg == parent || strings.HasPrefix(pkg, parent+"/")
}

// allowed returns what a package may import of the module.
func (p policy) allowed(dir string) []string {
	r := p.packages[dir]
	if r.kind == kit {
		x := path.Dir(dir)
		return append(strings.Fields(p.packages[x].imports+" "+r.imports), x)
	}
	return strings.Fields(r.imports)
}

func (p policy) checkImports(fsys fs.FS) []string {
	t, err := load(fsys)
	if err != nil {
		return []string{err.Error()}
	}
	var found []string
	failf := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }

	seen, used := map[string]bool{}, map[string]bool{}
	for _, f := range t.files {
		if !seen[f.dir] {
			seen[f.dir] = true
			if _, ok := p.packages[f.dir]; !ok {
				failf("%s: the package is not in the table", f.dir)
			}
		}
		paths, err := imports(f)
		if err != nil {
			failf("%v", err)
			continue
		}
		for _, imp := range paths {
			for dir, module := range t.modules {
				if dir != "." && below(imp, module) {
					failf("%s imports %s of a nested module", f.name, imp)
				}
			}
			if !f.test && imp == "testing" && !slices.Contains([]kind{kit, frame}, p.packages[f.dir].kind) {
				failf("%s imports testing, which only tests and kits may", f.name)
			}
			if below(imp, p.module) {
				dir := strings.TrimPrefix(strings.TrimPrefix(imp, p.module), "/")
				if dir == "" {
					dir = "."
				}
				// A test in package X_test is a user like any other; one in package X
				// could not import what would make a cycle.
				if !f.test && !slices.Contains(p.allowed(f.dir), dir) {
					failf("%s imports %s, which %s may not", f.name, dir, f.dir)
				}
				continue
			}
			if first, _, _ := strings.Cut(imp, "/"); !strings.Contains(first, ".") {
				continue // the standard library
			}
			module := ""
			for m := range p.thirdParty {
				if below(imp, m) {
					module = m
				}
			}
			switch {
			case module == "":
				failf("%s imports %s, which is not in the list of third-party modules", f.name, imp)
			case f.test:
			case !slices.Contains(strings.Fields(p.thirdParty[module]), f.dir):
				failf("%s imports %s, which %s may not", f.name, imp, f.dir)
			default:
				used[module+" "+f.dir] = true
			}
		}
	}
	for dir := range p.packages {
		if !seen[dir] {
			failf("%s: there is no such package, but a row in the table", dir)
		}
	}
	for module, dirs := range p.thirdParty {
		for _, dir := range strings.Fields(dirs) {
			if !used[module+" "+dir] {
				failf("%s does not import %s, but is in its list", dir, module)
			}
		}
	}

	for dir, files := range t.nested {
		module := t.modules[dir]
		for _, f := range files {
			paths, err := imports(f)
			if err != nil {
				failf("%v", err)
			}
			for _, imp := range paths {
				if imp == p.module+"/internal/testlevel" && strings.HasSuffix(f.name, "_test.go") {
					continue
				}
				if below(imp, p.module+"/internal") && !below(imp, module) {
					failf("%s imports %s: a nested module sees what a stranger sees", f.name, imp)
				}
			}
		}
	}
	slices.Sort(found)
	return found
}

// checkDirection holds the table to the sentences above it.
func (p policy) checkDirection() []string {
	may := map[kind][]kind{
		vocabulary: {},
		noun:       {vocabulary, noun, adapter, tool},
		policyKind: {vocabulary, noun},
		adapter:    {vocabulary, noun, adapter},
		verb:       {vocabulary, noun, policyKind, adapter, tool},
		store:      {vocabulary, noun, tool},
		tool:       {vocabulary, tool},
		root:       {vocabulary, noun, policyKind, adapter, verb, store, tool},
		front:      {vocabulary, noun, policyKind, adapter, verb, store, root},
	}
	var found []string
	for dir, r := range p.packages {
		base := path.Base(dir)
		if isKit := dir != base && base == path.Base(path.Dir(dir))+"test"; isKit != (r.kind == kit) {
			found = append(found, fmt.Sprintf("%s: X/Xtest is a kit, and nothing else is", dir))
		}
		for _, imp := range strings.Fields(r.imports) {
			to, ok := p.packages[imp]
			switch {
			case !ok:
				found = append(found, fmt.Sprintf("%s may import %s, which has no row", dir, imp))
			case r.kind == kit && to.kind == frame:
			case r.kind == kit:
				found = append(found, fmt.Sprintf("%s is a kit: its row is that of %s", dir, path.Dir(dir)))
			case !slices.Contains(may[r.kind], to.kind):
				found = append(found, fmt.Sprintf("%s, a %s, may import %s, a %s", dir, r.kind, imp, to.kind))
			case r.kind == noun && to.kind == adapter && imp != "protocol":
				// The outcome of a visit is stored, so its words are a noun's.
				found = append(found, fmt.Sprintf("%s, a noun, may import %s", dir, imp))
			}
		}
	}
	slices.Sort(found)
	return found
}

// checkHabits reads the code that is not a test.
func (p policy) checkHabits(fsys fs.FS) []string {
	t, err := load(fsys)
	if err != nil {
		return []string{err.Error()}
	}
	h := habits{policy: p, used: map[string]bool{}}
	for _, f := range t.files {
		if f.test {
			continue
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, f.name, f.data, parser.SkipObjectResolution)
		if err != nil {
			h.found = append(h.found, err.Error())
			continue
		}
		h.file(fset, f, file)
	}
	for _, dir := range slices.Sorted(maps.Keys(p.tables)) {
		for _, name := range strings.Fields(p.tables[dir]) {
			if !h.used["table "+dir+"."+name] {
				h.found = append(h.found, fmt.Sprintf("%s.%s: there is no such variable, but it is in the list of tables", dir, name))
			}
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(p.panics)) {
		if !h.used["panic "+dir] {
			h.found = append(h.found, fmt.Sprintf("%s: there is no panic, but a row in the list of panics", dir))
		}
	}
	return h.found
}

type habits struct {
	policy
	used  map[string]bool
	found []string
}

func (h *habits) file(fset *token.FileSet, f source, file *ast.File) {
	failf := func(at ast.Node, format string, args ...any) {
		h.found = append(h.found, fmt.Sprintf("%s: %s", fset.Position(at.Pos()), fmt.Sprintf(format, args...)))
	}
	names := map[string]string{} // what a package is called in this file
	for _, i := range file.Imports {
		p, _ := strconv.Unquote(i.Path.Value)
		name := path.Base(p)
		if i.Name != nil {
			name = i.Name.Name
		}
		names[name] = p
		switch {
		case name == ".":
			failf(i, "a dot import hides where a name comes from")
		case name == "_" && p != "embed":
			failf(i, "an import for its side effect")
		case p == "log":
			failf(i, "a library does not print: take a *slog.Logger")
		}
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil && d.Name.Name == "init" {
				failf(d, "func init: an import must change nothing")
			}
		case *ast.GenDecl:
			if d.Tok != token.VAR {
				continue
			}
			for _, s := range d.Specs {
				spec := s.(*ast.ValueSpec)
				for i, name := range spec.Names {
					if name.Name == "_" || i < len(spec.Values) && isSentinel(spec.Values[i], names) {
						continue
					}
					if h.table(f.dir, name.Name) {
						h.used["table "+f.dir+"."+name.Name] = true
						continue
					}
					failf(name, "package-level variable %s: no state, unless it is an error or in the list of tables", name.Name)
				}
			}
		}
	}
	var local map[string]bool
	visit := func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			id, ok := n.Fun.(*ast.Ident)
			if !ok {
				return true
			}
			switch id.Name {
			case "panic":
				if _, ok := h.panics[f.dir]; ok {
					h.used["panic "+f.dir] = true
				} else {
					failf(n, "panic: return an error")
				}
			case "print", "println":
				failf(n, "a library does not print")
			}
		case *ast.AssignStmt:
			for _, to := range n.Lhs {
				if name := h.written(f.dir, local, to); name != "" && n.Tok != token.DEFINE {
					failf(n, "%s is a table, and written to", name)
				}
			}
		case *ast.IncDecStmt:
			if name := h.written(f.dir, local, n.X); name != "" {
				failf(n, "%s is a table, and written to", name)
			}
		case *ast.UnaryExpr:
			if name := h.written(f.dir, local, n.X); n.Op == token.AND && name != "" {
				failf(n, "%s is a table, and its address is taken", name)
			}
		case *ast.SelectorExpr:
			id, ok := n.X.(*ast.Ident)
			if !ok {
				return true
			}
			if why := forbidden(names[id.Name], n.Sel.Name); why != "" {
				failf(n, "%s.%s: %s", id.Name, n.Sel.Name, why)
			}
		}
		return true
	}
	for _, d := range file.Decls {
		local = locals(d)
		ast.Inspect(d, visit)
	}
}

func (h *habits) table(dir, name string) bool {
	return slices.Contains(strings.Fields(h.tables[dir]), name)
}

// written returns the name of the table that an expression is a part of, if any.
func (h *habits) written(dir string, local map[string]bool, x ast.Expr) string {
	for {
		switch e := x.(type) {
		case *ast.ParenExpr:
			x = e.X
		case *ast.SelectorExpr:
			x = e.X
		case *ast.IndexExpr:
			x = e.X
		case *ast.SliceExpr:
			x = e.X
		case *ast.StarExpr:
			x = e.X
		case *ast.Ident:
			if h.table(dir, e.Name) && !local[e.Name] {
				return e.Name
			}
			return ""
		default:
			return ""
		}
	}
}

// locals returns the names that are declared within a declaration. One that is
// also the name of a table hides it, as far as this test is concerned.
func locals(d ast.Decl) map[string]bool {
	names := map[string]bool{}
	add := func(x ast.Expr) {
		if id, ok := x.(*ast.Ident); ok {
			names[id.Name] = true
		}
	}
	ast.Inspect(d, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				for _, x := range n.Lhs {
					add(x)
				}
			}
		case *ast.RangeStmt:
			if n.Tok == token.DEFINE {
				add(n.Key)
				add(n.Value)
			}
		case *ast.Field:
			for _, id := range n.Names {
				add(id)
			}
		case *ast.DeclStmt:
			for _, s := range n.Decl.(*ast.GenDecl).Specs {
				if s, ok := s.(*ast.ValueSpec); ok {
					for _, id := range s.Names {
						add(id)
					}
				}
			}
		}
		return true
	})
	return names
}

// isSentinel reports whether a value is an error made once.
func isSentinel(v ast.Expr, names map[string]string) bool {
	call, ok := v.(*ast.CallExpr)
	if !ok {
		return false
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	id, ok := sel.X.(*ast.Ident)
	if !ok {
		return false
	}
	full := names[id.Name] + "." + sel.Sel.Name
	return full == "errors.New" || full == "fmt.Errorf"
}

func forbidden(pkg, name string) string {
	switch pkg + "." + name {
	case "os.Getenv", "os.LookupEnv", "os.Environ", "os.ExpandEnv", "net/http.ProxyFromEnvironment":
		return "a library does not read the environment"
	case "os.Exit":
		return "a library does not end the program"
	case "os.Stdout", "os.Stderr", "fmt.Print", "fmt.Printf", "fmt.Println":
		return "a library does not print"
	case "log/slog.Default", "log/slog.SetDefault", "net/http.DefaultClient", "net/http.DefaultTransport", "net/http.DefaultServeMux":
		return "a library does not use what the whole program shares"
	}
	return ""
}
