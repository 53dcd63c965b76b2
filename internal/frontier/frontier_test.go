package frontier

import (
	"crypto/md5"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestParts(t *testing.T) {
	for url, want := range map[string]string{
		"http://www.example.org/":                   "www.example.org/",
		"http://www.example.org":                    "www.example.org/",
		"http://www.example.org/about.html":         "www.example.org/",
		"http://www.example.org/docs/a/b.html":      "www.example.org/docs/",
		"http://www.example.org/docs/?x=1#y":        "www.example.org/docs/?",
		"http://www.example.org/search?q=a/b":       "www.example.org/search?",
		"http://www.example.org/?q":                 "www.example.org/?",
		"http://www12.example.org/2024/05":          "www#.example.org/#/",
		"http://h/s1a2b3c4d5/x":                     "h/*/",
		"http://h/deadbeefdeadbeef00/x":             "h/*/",
		"http://h/python3/x":                        "h/python#/",
		"http://h/" + strings.Repeat("é", 40) + "/": "h/" + strings.Repeat("é", 31),
		"": "/",
	} {
		if got := PartOf(url); got != want {
			t.Errorf("%s: %q, want %q", url, got, want)
		}
	}
	if got := slices.Collect(Steps("http://h/a/b2/c/d.html?x")); !reflect.DeepEqual(got, []string{"a/", "b#/", "c/", "d.html?"}) {
		t.Errorf("steps %q", got)
	}
}

func TestEndless(t *testing.T) {
	for url, want := range map[string]bool{
		"http://example.org/":                         false,
		"http://www.example.org/":                     false,
		"http://qwerty.example.org/":                  true,
		"http://qwerty.example.org/about":             false,
		"http://www.example.org/docs/python3.html":    false,
		"http://www.example.org/docs/15/x.html":       true,
		"http://www.example.org/2024-05-31/":          true,
		"http://www.example.org/news/4711.html":       true,
		"http://www.example.org/about?lang=en":        true,
		"http://www.example.org/s/a1b2c3d4/x":         true,
		"http://www.example.org/internationalisation": false,
		"http://www.example.org/--/x":                 false,
	} {
		if got := Endless(url, "example.org"); got != want {
			t.Errorf("%s: %v", url, got)
		}
	}
}

func sum(s string) []byte { h := md5.Sum([]byte(s)); return h[:] }

func TestMarkName(t *testing.T) {
	for domain, want := range map[string]string{"": "site/", "localhost": "site/localhost", "example.co.uk": "site/uk.co.example", "1.2.3.4": "site/4.3.2.1", "a..b": "site/b..a"} {
		if got := MarkName(domain); got != want {
			t.Errorf("the account of %q is %q, want %q", domain, got, want)
		}
	}
}

func TestAccount(t *testing.T) {
	var a Account
	// Two parts of a thousand pages, one of which repeats the same ten contents.
	for i := range 1000 {
		a.Read("h/good/", sum(fmt.Sprint("good", i)))
		a.Read("h/trap/", sum(fmt.Sprint("trap", i%10)))
	}
	good, trap := a.Part("h/good/"), a.Part("h/trap/")
	if good.New() != 1 || trap.New() > 0.1 || good.Sampled < 200 || a.Part("h/none/") != nil {
		t.Errorf("%+v %+v", good, trap)
	}
	// A mirror says nothing new.
	for i := range 1000 {
		a.Read("mirror/good/", sum(fmt.Sprint("good", i)))
	}
	if m := a.Part("mirror/good/"); m.SampledNew != 0 || m.Sampled < 100 {
		t.Errorf("mirror: %+v", m)
	}
	// Other hosts cannot take all the room.
	for i := range 100 {
		a.Read(fmt.Sprintf("%c%c/", 'a'+i/26, 'a'+i%26), sum("x"))
	}
	for i := range 100 {
		a.Read(fmt.Sprintf("h/%c%c/", 'a'+i/26, 'a'+i%26), sum("x"))
	}
	if hosts := a.Hosts(); len(a.Parts) != maxParts || len(hosts) != maxParts/2-1 || hosts[0] != "h" || hosts[1] != "mirror" {
		t.Errorf("%d parts of hosts %q", len(a.Parts), hosts)
	}
	a.Added, a.Visits, a.Segment, a.Undistributed = 1<<40, 7, "20240229235959-000", 1.0/3
	mark := a.Encode()
	if b, err := Decode(mark); err != nil || !reflect.DeepEqual(a, b) {
		t.Errorf("%+v becomes %+v, %v", a, b, err)
	}
	if len(mark) > 3<<10 {
		t.Errorf("%d bytes", len(mark))
	}
	if c := a.Clone(); !reflect.DeepEqual(a, c) {
		t.Errorf("clone %+v", c)
	}
	for i := range mark {
		if _, err := Decode(mark[:i]); err != nil && !errors.Is(err, ErrDamaged) {
			t.Errorf("%d bytes: %v", i, err)
		}
	}
}

// What is read is what is written, or damaged.
func FuzzDecode(f *testing.F) {
	var a Account
	f.Add(a.Encode())
	for i := range 40 {
		a.Read(fmt.Sprintf("h/%c/", 'a'+i%5), sum(fmt.Sprint(i%20)))
	}
	a.Added, a.Segment = 3, "s"
	f.Add(a.Encode())
	f.Add("\x00\x00\x00\x01\x00")
	f.Add("\x00\x00\x00\xff\xff\xff\xff\x0f")
	f.Fuzz(func(t *testing.T, mark string) {
		a, err := Decode(mark)
		if err != nil {
			if !errors.Is(err, ErrDamaged) {
				t.Fatal(err)
			}
			return
		}
		again, err := Decode(a.Encode())
		if err != nil || !reflect.DeepEqual(a, again) {
			t.Fatalf("%+v becomes %+v, %v", a, again, err)
		}
		a.Read("h/x/", []byte(mark))
		a.Hosts()
	})
}

func FuzzPartOf(f *testing.F) {
	f.Add("http://www1.example.org/a1/b?c#d")
	f.Fuzz(func(t *testing.T, url string) {
		if p := PartOf(url); len(p) > maxName {
			t.Errorf("%q", p)
		}
		for range Steps(url) {
		}
		Endless(url, "example.org")
	})
}
