package nutchconf

import (
	"regexp"
	"strings"
	"testing"
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
