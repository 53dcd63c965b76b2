package urlfilter

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestRulesExplain(t *testing.T) {
	r := Default()
	r.Filters = append(r.Filters, explained{})
	for _, c := range []struct {
		url   string
		steps []string // name, accepted, out, rule
	}{
		{"HTTP://Example.com/b", []string{"basic true http://example.com/b", "session true http://example.com/b", "suffix true http://example.com/b", "traps true http://example.com/b", "explained true http://example.com/b yes"}},
		{"http://example.com/b.gif", []string{"basic true http://example.com/b.gif", "session true http://example.com/b.gif", "suffix false "}},
		{"http://example.com/x", []string{"basic true http://example.com/x", "session true http://example.com/x", "suffix true http://example.com/x", "traps true http://example.com/x", "explained false  no"}},
		{"nonsense", []string{"basic false "}},
		{strings.Repeat("x", 5000), []string{"length false "}},
		{"http://example.com/" + strings.Repeat("\xff", 2000), []string{"basic true http://example.com/" + strings.Repeat("%FF", 2000), "session true http://example.com/" + strings.Repeat("%FF", 2000), "length false "}},
	} {
		steps := r.Explain(Outlink, c.url)
		var got []string
		for i, s := range steps {
			name := s.Name
			if strings.Contains(name, "Basic") || strings.Contains(name, "basic") {
				name = "basic"
			}
			name, _, _ = strings.Cut(name, " ")
			line := fmt.Sprintf("%s %v %s", name, s.Accepted, s.Out)
			if s.Rule != "" && (s.Name == "explained") {
				line += " " + s.Rule
			}
			got = append(got, line)
			if s.Accepted == (i == len(steps)-1 && s.Out == "") || i > 0 && s.In != steps[i-1].Out {
				t.Errorf("%.40q: step %d: %+v", c.url, i, s)
			}
		}
		if !reflect.DeepEqual(got, c.steps) {
			t.Errorf("%.40q: %.200q, want %.200q", c.url, got, c.steps)
		}
		form, err := r.Apply(Outlink, c.url)
		last := steps[len(steps)-1]
		if (err == nil) != last.Accepted || form != last.Out {
			t.Errorf("%.40q: Apply says %q, %v, the last step %+v", c.url, form, err, last)
		}
		if errors.Is(err, ErrInvalid) != (last.Err != nil) {
			t.Errorf("%.40q: Apply says %v, the last step %v", c.url, err, last.Err)
		}
	}
	if steps := new(Rules).Explain(Outlink, "a"); steps != nil {
		t.Error(steps)
	}
}

type explained struct{}

func (explained) Accept(u string) bool { return !strings.HasSuffix(u, "x") }
func (explained) String() string       { return "explained" }
func (explained) Explain(u string) string {
	if strings.HasSuffix(u, "x") {
		return "no"
	}
	return "yes"
}

func TestRulesReload(t *testing.T) {
	dir := t.TempDir()
	a, b, n := filepath.Join(dir, "a"), filepath.Join(dir, "b"), filepath.Join(dir, "n")
	for _, p := range []string{a, b} {
		write(t, p, "+.", time.Hour)
	}
	write(t, n, "n", time.Hour)
	r := &Rules{
		Normalizers: []Normalizer{Basic{}, must[Normalizer](t)(OpenNormalizer(n, readAll, Options{}))},
		Filters: []Filter{must[Filter](t)(OpenFilter(a, ParseRegex, Options{})), must[Filter](t)(OpenFilter(b, ParseRegex, Options{})),
			FilterFunc(func(string) bool { return true })},
	}
	if changed, err := r.Reload(); changed || err != nil {
		t.Error(changed, err)
	}
	write(t, a, "oops", time.Hour)
	write(t, b, "+b", time.Hour)
	os.Remove(n)
	changed, err := r.Reload()
	if !changed || !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), a+":1: ") {
		t.Error(changed, err)
	}
	if !r.Filters[0].Accept("x") || r.Filters[1].Accept("x") || !r.Filters[1].Accept("b") {
		t.Error("the bad file has not kept its rules, or the good one has")
	}
}
