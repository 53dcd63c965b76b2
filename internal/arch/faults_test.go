package arch

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// small is a module that keeps its policy.
func small() (policy, fstest.MapFS) {
	p := policy{
		module: "example.com/m",
		packages: map[string]row{
			"page":            {vocabulary, ""},
			"crawldb":         {noun, "page"},
			"crawldb/dbtest":  {noun, ""},
			"protocol":        {adapter, "page"},
			"segment":         {noun, "page protocol"},
			"schedule":        {policyKind, "crawldb"},
			"fetch":           {verb, "crawldb"},
			"update":          {verb, "crawldb schedule"},
			"stores/mem":      {store, "crawldb"},
			"page/pagetest":   {kit, ""},
			"fetch/fetchtest": {kit, "internal/kit"},
			"internal/sort":   {tool, ""},
			"internal/kit":    {frame, ""},
			".":               {root, "crawldb fetch update schedule stores/mem"},
		},
		thirdParty: map[string]string{"golang.org/x/net": "crawldb"},
		tables:     map[string]string{"page": "table list"},
		panics:     map[string]string{"page/pagetest": "recovered"},
	}
	fsys := fstest.MapFS{
		"go.mod":            {Data: []byte("module example.com/m\n")},
		"nested/go.mod":     {Data: []byte("module example.com/m/nested\n")},
		"nested/nested.go":  {Data: file("nested", "example.com/m", "example.com/m/nested/internal/own")},
		"testdata/bad.go":   {Data: []byte("no Go at all")},
		"page/page_test.go": {Data: file("page_test", "example.com/m/fetch", "testing")},
	}
	for dir, r := range p.packages {
		imports := strings.Fields(r.imports)
		for i := range imports {
			imports[i] = p.module + "/" + imports[i]
		}
		switch dir {
		case "crawldb":
			imports = append(imports, "golang.org/x/net/html", "strings")
		case "page/pagetest":
			imports = append(imports, "testing", p.module+"/page")
		}
		fsys[path.Join(dir, "x.go")] = &fstest.MapFile{Data: file("x", imports...)}
	}
	fsys["page/vars.go"] = code(`
import ("errors"; "fmt")
type i interface{}
var _ i = 1
var ErrA = errors.New("a")
var errB, errC = fmt.Errorf("b"), errors.New("c")
var table = map[string]int{}
var list = []int{1}
func f() int { list := list[:0]; list = append(list, 1); return table["a"] }
func g(table []int) { table[0] = 1 }
`)
	fsys["page/pagetest/panics.go"] = code(`func f() { panic(1) }`)
	return p, fsys
}

func file(name string, imports ...string) []byte {
	out := "package " + name + "\n"
	for _, i := range imports {
		out += fmt.Sprintf("import %q\n", i)
	}
	return []byte(out)
}

func code(body string) *fstest.MapFile {
	return &fstest.MapFile{Data: []byte("package x\n" + body)}
}

func TestSoundModulePasses(t *testing.T) {
	p, fsys := small()
	report(t, p.checkImports(fsys))
	report(t, p.checkHabits(fsys))
	report(t, p.checkDirection())
}

// Each fault is found, and named.
func TestEachRuleFindsItsFault(t *testing.T) {
	add := func(name string, f *fstest.MapFile) func(*policy, fstest.MapFS) {
		return func(_ *policy, fsys fstest.MapFS) { fsys[name] = f }
	}
	imports := func(name string, paths ...string) func(*policy, fstest.MapFS) {
		return add(name, &fstest.MapFile{Data: file("x", paths...)})
	}
	table := func(dir string, r row) func(*policy, fstest.MapFS) {
		return func(p *policy, _ fstest.MapFS) { p.packages[dir] = r }
	}
	page := func(body string) func(*policy, fstest.MapFS) { return add("page/bad.go", code(body)) }
	for _, m := range []struct {
		fault string
		make  func(*policy, fstest.MapFS)
		want  string
	}{
		{"a forbidden import", imports("page/bad.go", "example.com/m/crawldb"), "page/bad.go imports crawldb, which page may not"},
		{"an import of the root", imports("page/bad.go", "example.com/m"), "page/bad.go imports ., which page may not"},
		{"a verb that imports a verb", imports("fetch/bad.go", "example.com/m/update"), "fetch/bad.go imports update, which fetch may not"},
		{"a package without a row", imports("new/new.go"), "new: the package is not in the table"},
		{"a test without a row", imports("new/new_test.go"), "new: the package is not in the table"},
		{"a row without a package", func(_ *policy, fsys fstest.MapFS) { delete(fsys, "fetch/x.go") }, "fetch: there is no such package"},
		{"a kit that imports more than its own", imports("fetch/fetchtest/bad.go", "example.com/m/update"), "fetch/fetchtest/bad.go imports update"},
		{"an unknown third-party module", imports("crawldb/bad.go", "github.com/who/what"), "is not in the list of third-party modules"},
		{"one that looks like a known", imports("crawldb/bad.go", "golang.org/x/network"), "is not in the list of third-party modules"},
		{"one in a test", imports("crawldb/bad_test.go", "github.com/who/what"), "is not in the list of third-party modules"},
		{"a known one elsewhere", imports("page/bad.go", "golang.org/x/net/html"), "page/bad.go imports golang.org/x/net/html, which page may not"},
		{"one that is not used", func(p *policy, _ fstest.MapFS) { p.thirdParty["golang.org/x/net"] = "crawldb page" }, "page does not import golang.org/x/net"},
		{"testing in a package that is no kit", imports("page/bad.go", "testing"), "page/bad.go imports testing"},
		{"a nested module that looks inside", imports("nested/bad.go", "example.com/m/internal/sort"), "nested/bad.go imports example.com/m/internal/sort"},
		{"a test of one that does", imports("nested/a/b/bad_test.go", "example.com/m/internal/sort"), "nested/a/b/bad_test.go imports"},
		{"a nested module that is imported", imports("bad.go", "example.com/m/nested"), "bad.go imports example.com/m/nested of a nested module"},
		{"one in a test", imports("page/bad_test.go", "example.com/m/nested/x"), "of a nested module"},
		{"a file that is not Go", add("page/bad.go", &fstest.MapFile{Data: []byte("hello")}), "expected 'package'"},

		{"vocabulary that imports", table("page", row{vocabulary, "internal/sort crawldb"}), "page, a vocabulary, may import crawldb, a noun"},
		{"a noun that imports a policy", table("crawldb", row{noun, "schedule"}), "crawldb, a noun, may import schedule, a policy"},
		{"a noun that imports an adapter", func(p *policy, _ fstest.MapFS) {
			p.packages["protocol/robots"] = row{adapter, ""}
			p.packages["crawldb"] = row{noun, "protocol/robots"}
		}, "crawldb, a noun, may import protocol/robots"},
		{"a policy that imports a store", table("schedule", row{policyKind, "stores/mem"}), "schedule, a policy, may import stores/mem, a store"},
		{"a policy that imports a verb", table("schedule", row{policyKind, "update"}), "schedule, a policy, may import update, a verb"},
		{"verbs that import each other", table("fetch", row{verb, "update"}), "fetch, a verb, may import update, a verb"},
		{"a store that imports a policy", table("stores/mem", row{store, "schedule"}), "stores/mem, a store, may import schedule, a policy"},
		{"anything that imports the root", table("fetch", row{verb, "."}), "fetch, a verb, may import ., a root"},
		{"anything that imports a kit", table(".", row{root, "page/pagetest"}), "may import page/pagetest, a kit"},
		{"anything but a kit that imports a frame", table("fetch", row{verb, "internal/kit"}), "fetch, a verb, may import internal/kit, a frame"},
		{"a kit that names more than a frame", table("page/pagetest", row{kit, "fetch"}), "page/pagetest is a kit: its row is that of page"},
		{"a row that names no row", table("fetch", row{verb, "gone"}), "fetch may import gone, which has no row"},
		{"a kit by another name", table("page/pagetest", row{noun, ""}), "page/pagetest: X/Xtest is a kit"},
		{"another by the name of a kit", table("page", row{kit, ""}), "page: X/Xtest is a kit, and nothing else is"},

		{"func init", page(`func init() {}`), "func init"},
		{"the environment", page(`import "os"; func f() { os.Getenv("X") }`), "os.Getenv: a library does not read the environment"},
		{"the environment by another name", page(`import sys "os"; var _ = sys.LookupEnv`), "sys.LookupEnv"},
		{"fmt.Println", page(`import "fmt"; func f() { fmt.Println() }`), "fmt.Println: a library does not print"},
		{"println", page(`func f() { println() }`), "a library does not print"},
		{"log", page(`import "log"`), "take a *slog.Logger"},
		{"os.Exit", page(`import "os"; func f() { os.Exit(1) }`), "does not end the program"},
		{"the client of all", page(`import "net/http"; var _ = http.DefaultClient`), "what the whole program shares"},
		{"panic", page(`func f() { panic("no") }`), "panic: return an error"},
		{"a panic that is not there", func(p *policy, _ fstest.MapFS) { p.panics["fetch"] = "" }, "fetch: there is no panic"},
		{"state", page(`var n int`), "package-level variable n"},
		{"state beside an error", page(`import "errors"; var errA, n = errors.New("a"), 1`), "package-level variable n"},
		{"an error made by a function", page(`func f() error { return nil }; var err = f()`), "package-level variable err"},
		{"a table that is not there", func(p *policy, _ fstest.MapFS) { p.tables["fetch"] = "gone" }, "fetch.gone: there is no such variable"},
		{"a table that is assigned", page(`func f() { table = nil }`), "table is a table, and written to"},
		{"a table with an element assigned", page(`func f() { table["a"] = 1 }`), "table is a table, and written to"},
		{"a table with an element counted", page(`func f() { table["a"]++ }`), "table is a table, and written to"},
		{"a table whose address is taken", page(`func f() *int { return &list[0] }`), "list is a table, and its address is taken"},
		{"a dot import", page(`import . "strings"`), "a dot import"},
		{"a blank import", page(`import _ "image/png"`), "an import for its side effect"},
	} {
		t.Run(m.fault, func(t *testing.T) {
			p, fsys := small()
			m.make(&p, fsys)
			found := slices.Concat(p.checkImports(fsys), p.checkHabits(fsys), p.checkDirection())
			if !slices.ContainsFunc(found, func(f string) bool { return strings.Contains(f, m.want) }) {
				t.Errorf("nothing like %q was found, but %q", m.want, found)
			}
		})
	}
}
