package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

// named is a link to a name, or a name with its package, in a comment.
var named = regexp.MustCompile(`\[\*?([\w./-]+)\](?:[^:(]|$)|\b([a-z]\w*\.[A-Z]\w*(?:\.[A-Z]\w*)?)\b`)

// The comment of a function or type begins with its name, and names in comments exist: a rename
// that forgets comments is found.
func TestCommentsNameWhatExists(t *testing.T) {
	repo := os.DirFS("../..")
	code := readCode(t, repo)
	err := fs.WalkDir(repo, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := path.Base(name)
		if d.IsDir() && name != "." && (base == "testdata" || base[0] == '.' || base[0] == '_') {
			return fs.SkipDir
		}
		if path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		files := token.NewFileSet()
		f, err := parser.ParseFile(files, name, read(t, repo, name), parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range f.Decls {
			if of, text := described(d); of != "" && !beginsWith(text, of) {
				t.Errorf("%s: the comment of %s begins with another name: %.40s…", files.Position(d.Pos()), of, text)
			}
		}
		for _, c := range f.Comments {
			for _, m := range named.FindAllStringSubmatch(c.Text(), -1) {
				if !code.knows(f.Name.Name, m[1], m[2]) {
					t.Errorf("%s: there is no %s", files.Position(c.Pos()), m[1]+m[2])
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// described returns the name of a function or of a type that is declared alone, and its comment.
func described(d ast.Decl) (name, text string) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		return d.Name.Name, d.Doc.Text()
	case *ast.GenDecl:
		if d.Tok == token.TYPE && len(d.Specs) == 1 {
			return d.Specs[0].(*ast.TypeSpec).Name.Name, d.Doc.Text()
		}
	}
	return "", ""
}

func beginsWith(text, name string) bool {
	for _, article := range []string{"A ", "An ", "The "} {
		text = strings.TrimPrefix(text, article)
	}
	rest, ok := strings.CutPrefix(text, name)
	return text == "" || ok && (rest == "" || strings.IndexByte(" ,'.:\n", rest[0]) >= 0)
}

// knows reports whether a link or a name in a comment of a package is of something that exists, or
// of another module.
func (c codeNames) knows(pkg, link, name string) bool {
	if link != "" {
		name = path.Base(link)
	}
	m := identifier.FindStringSubmatch(name)
	switch {
	case m == nil:
		return true
	case m[1] != "":
		return c.packages[m[1]] == nil || c.has(m[1], m[2], m[3])
	}
	return strings.Contains(link, "/") || c.has(pkg, m[2], m[3])
}
