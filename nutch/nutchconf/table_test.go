package nutchconf

import (
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/crawldb/dedup"
	"github.com/recrawl/recrawl/crawldb/inject"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/generate"
	"github.com/recrawl/recrawl/hostdb/hoststat"
	"github.com/recrawl/recrawl/index"
	"github.com/recrawl/recrawl/linkdb"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/parse"
	"github.com/recrawl/recrawl/parse/htmlparse"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/fileproto"
	"github.com/recrawl/recrawl/protocol/httpproto"
	"github.com/recrawl/recrawl/protocol/robots"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/signature"
	"github.com/recrawl/recrawl/update"
	"github.com/recrawl/recrawl/urlfilter"
)

// everything is a configuration in which every plugin is active, so that every
// property is asked for.
func everything(t *testing.T) *builder {
	t.Helper()
	c := New("testdata/everything")
	c.Set("http.agent.name", "testbot")
	c.Set("plugin.includes", ".*")
	c.Set("db.fetch.schedule.class", "org.apache.nutch.crawl.MimeAdaptiveFetchSchedule")
	b := newBuilder(c)
	b.options()
	for _, err := range b.errs {
		t.Error(err)
	}
	return b
}

// The table says of a property that it is honoured exactly if somebody asks for
// it.
func TestTableAndCodeAgree(t *testing.T) {
	b := everything(t)
	for title, p := range Properties() {
		if asked := b.asked[p.Name]; asked != (p.Support != NotHonoured) && !strings.Contains(p.Name, "<") {
			t.Errorf("%s: %s: the table says %v, but asked for it is %v", title, p.Name, p.Support, asked)
		}
		if p.Support == NotHonoured && p.why() == "" {
			t.Errorf("%s: %s: nothing says why it is not honoured", title, p.Name)
		}
		if p.Support != NotHonoured && p.Field == "" {
			t.Errorf("%s: %s: honoured, but nothing says where", title, p.Name)
		}
	}
	for name := range b.asked {
		if row(name) == nil {
			t.Errorf("%s is asked for and not in the table", name)
		}
	}
}

func TestTableIsSound(t *testing.T) {
	seen := map[string]bool{}
	shape := regexp.MustCompile(`^[a-zA-Z0-9_.<>-]+$`)
	for _, p := range Properties() {
		if seen[p.Name] || !shape.MatchString(p.Name) {
			t.Errorf("%q is there twice, or no name", p.Name)
		}
		seen[p.Name] = true
		if name, ok := strings.CutPrefix(p.Note, "see "); ok && !strings.Contains(name, " ") {
			if q := row(name); q == nil || q.Note == "" {
				t.Errorf("%s refers to %s, which says nothing", p.Name, name)
			}
		}
		if strings.Contains(p.Note, "|") {
			t.Errorf("%s: a bar in the note would be another column", p.Name)
		}
	}
	for now := range renamed {
		if row(now) != nil || row(renamed[now]) == nil {
			t.Errorf("%s is not the old name of a property", now)
		}
	}
}

// The Go names in the table exist.
func TestNamesInTableExist(t *testing.T) {
	types := map[string]reflect.Type{}
	for _, typ := range []reflect.Type{
		reflect.TypeFor[recrawl.Options](), reflect.TypeFor[recrawl.SitemapOptions](), reflect.TypeFor[fetch.SitemapOptions](), reflect.TypeFor[update.SitemapOptions](), reflect.TypeFor[httpproto.Options](), reflect.TypeFor[fileproto.Options](), reflect.TypeFor[fileproto.Client](), reflect.TypeFor[fetch.Options](), reflect.TypeFor[fetch.Limiter](),
		reflect.TypeFor[generate.Options](), reflect.TypeFor[update.Options](), reflect.TypeFor[update.SweepOptions](), reflect.TypeFor[inject.Options](), reflect.TypeFor[index.Options](),
		reflect.TypeFor[index.Document](), reflect.TypeFor[index.Writer](), reflect.TypeFor[hoststat.Options](), reflect.TypeFor[dedup.Options](), reflect.TypeFor[linkdb.InvertOptions](),
		reflect.TypeFor[htmlparse.Parser](), reflect.TypeFor[parse.Mux](), reflect.TypeFor[protocol.Mux](), reflect.TypeFor[protocol.Response](), reflect.TypeFor[page.Parsed](), reflect.TypeFor[robots.Cache](), reflect.TypeFor[robots.Policy](),
		reflect.TypeFor[schedule.Default](), reflect.TypeFor[schedule.Adaptive](), reflect.TypeFor[schedule.MimeAdaptive](), reflect.TypeFor[scoring.OPIC](), reflect.TypeFor[scoring.Depth](),
		reflect.TypeFor[scoring.Orphan](), reflect.TypeFor[scoring.Metadata](), reflect.TypeFor[scoring.LinkAnalysis](), reflect.TypeFor[scoring.Chain](), reflect.TypeFor[signature.TextProfile](),
		reflect.TypeFor[urlfilter.Rules](), reflect.TypeFor[urlfilter.Basic](), reflect.TypeFor[urlfilter.FastOptions](), reflect.TypeFor[Options](),
	} {
		types[typ.String()] = typ
	}
	// check returns the struct that has the field that name ends with, such as
	// "fetch.Options.Limits" for fetch.Options.Limits.MaxBytes.
	check := func(where, name string) (owner string) {
		parts := strings.Split(name, ".")
		typ := types[strings.Join(parts[:2], ".")]
		if typ == nil {
			if name != "scoring.URLMeta" { // a function
				t.Errorf("%s: there is no %s", where, name)
			}
			return ""
		}
		for i, part := range parts[2:] {
			f, ok := typ.FieldByName(part)
			if !ok {
				t.Errorf("%s: there is no %s", where, name)
				break
			}
			typ, owner = f.Type, strings.Join(parts[:2+i], ".")
			if typ.Kind() != reflect.Struct && i < len(parts)-3 {
				t.Errorf("%s: %s is no struct", where, name)
				break
			}
		}
		return owner
	}
	inText := regexp.MustCompile(`\b[a-z]+(\.[A-Z]\w*)+`)
	for _, p := range Properties() {
		owner := ""
		for f := range strings.SplitSeq(p.Field, ", ") {
			switch {
			case f == "":
			case strings.Contains(f, "."):
				owner = check(p.Name, f)
			case owner == "":
				t.Errorf("%s: a field %s of nothing", p.Name, f)
			default:
				check(p.Name, owner+"."+f)
			}
		}
		for _, name := range inText.FindAllString(p.Note, -1) {
			check(p.Name, name)
		}
	}
	for _, s := range stock {
		for _, name := range inText.FindAllString(s.why, -1) {
			check(s.id, name)
		}
	}
	for _, f := range foreign {
		for _, name := range inText.FindAllString(f.why, -1) {
			check(f.prefix, name)
		}
	}
}
