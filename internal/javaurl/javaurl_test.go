package javaurl

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
)

// What java.net.URL of OpenJDK 17 made of each base and reference: see testdata/README.md.
func TestResolveAsJava(t *testing.T) {
	f, err := os.Open("testdata/java-urls.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows := 0
	for s := bufio.NewScanner(f); s.Scan(); rows++ {
		var c struct {
			Base, Ref, Host, Path, User string
			URL                         *string // nil: refused
			Port                        int
		}
		if err := json.Unmarshal(s.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		var base *URL
		if c.Base != "" {
			b, err := Parse(c.Base, Handled)
			if err != nil {
				t.Fatalf("%q: %v", c.Base, err)
			}
			base = &b
		}
		u, err := Resolve(base, c.Ref, Handled)
		switch {
		case (err == nil) != (c.URL != nil):
			t.Errorf("%s: %v", s.Text(), err)
		case err == nil && (u.String() != *c.URL || u.Host != c.Host || u.Port != c.Port || u.Path != c.Path || u.User != c.User):
			t.Errorf("%s: %q, %+v", s.Text(), u.String(), u)
		}
	}
	if rows == 0 {
		t.Error("no rows")
	}
}

func TestParseErrors(t *testing.T) {
	for in, want := range map[string]error{
		"javascript:x": errProtocol, "h": errProtocol, "http://h:x/": errPort, "http://[::g]/": errAuthority, "http://a\x01/": errHost,
		"mailto: ": errMail, "jar:http://h/": errJar, "jar:http://h:x/!/y": errPort,
	} {
		if _, err := Parse(in, Handled); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", in, err, want)
		}
	}
	if _, err := DecodeForm("%zz"); !errors.Is(err, errEscape) {
		t.Error(err)
	}
	base, err := Parse("http://h"+strings.Repeat("/..", 4000)+"/", Handled)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Resolve(&base, "x", Handled); !errors.Is(err, errPath) {
		t.Errorf("a path that is too long to resolve: %v", err)
	}
}

// A URL is its own normal form, and so is what it is resolved to.
func FuzzResolve(f *testing.F) {
	for _, ref := range []string{"../a?b#c", "//[::1]:8/x/..", "jar:file:/x!/y", "mailto:a@b", "http:x/../y", " URL:http://u:p@h", "////c", "?q"} {
		f.Add("http://h/a/b", ref)
	}
	f.Fuzz(func(t *testing.T, from, ref string) {
		base, err := Parse(from, Handled)
		if err != nil {
			return
		}
		u, err := Resolve(&base, ref, Handled)
		if err != nil {
			return
		}
		if uri, err := u.NormalizedURI(); err == nil && uri == "" {
			t.Fatalf("%q at %q: an empty URI", ref, from)
		}
		again, err := Parse(u.String(), Handled)
		if err != nil || u.Protocol == "mailto" || u.Authority == "" || u.Path == "" && u.HasQuery {
			return // Java may refuse or split its own result in another way
		}
		if again.String() != u.String() || again.Host != u.Host || again.Port != u.Port {
			t.Fatalf("%q at %q: %q, read again %q", ref, from, u.String(), again.String())
		}
	})
}
