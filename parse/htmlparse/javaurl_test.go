package htmlparse

import "testing"

// The results of java.net.URL for references; an empty one is an exception.
func TestJavaURL(t *testing.T) {
	for _, c := range []struct{ base, ref, want string }{
		{"", "http://h", "http://h"},
		{"", " URL:http://H:80/a b ", "http://H:80/a b"},
		{"", "HTTP://u:p@h/./a/../b", "http://u:p@h/b"},
		{"", "http:///x", "http:/x"},
		{"", "foo://h/", ""},
		{"", "x", ""},
		{"", "http://h:x/", ""},
		{"", "http://h:/", "http://h:/"},
		{"", "http://[::1]:8/", "http://[::1]:8/"},
		{"", "http://[::1/", ""},
		{"", "jar:file:/x", ""},
		{"", "jar:file:/x!/y", "jar:file:/x!/y"},
		{"http://h/a/b?q#f", "", "http://h/a/b?q#f"},
		{"http://h/a/b?q#f", "#g", "http://h/a/b?q#g"},
		{"http://h/a/b?q#f", "c", "http://h/a/c"},
		{"http://h/a/b?q#f", "/c?d?e#f#g", "http://h/c?d?e#f#g"},
		{"http://h/a/b?q#f", "?x", "http://h/a/?x"},
		{"http://h/a/b", "//i/c", "http://i/c"},
		{"http://h/a/b", "//i", "http://i"},
		{"http://h/a/b", "////c", "http://h////c"},
		{"http://h/a/b", "http:c", "http://h/a/c"},
		{"http://h/a/b", "https:c", "https:c"},
		{"http://h/a/b", "a:b/c", ""},
		{"http://h/a/b", "./a:b/c", "http://h/a/a:b/c"},
		{"http://h", "c", "http://h/c"},
		{"http://h/a/b/c", "../d", "http://h/a/d"},
		{"http://h/a/b/c", "..", "http://h/a/"},
		{"http://h/a/b/c", ".", "http://h/a/b/"},
		{"http://h/a/b", "../../../c", "http://h/../../c"},
		{"http://h/a/b", "c/../..", "http://h/"},
		{"http://h/", "../a/..", "http://h/../a/.."}, // the first one stays, and so does the last
		{"http://h/a//b", "../c", "http://h/a/c"},
		{"http://h/a/b", "c/./././d", "http://h/a/c/d"},
		{"file:/a/b", "c", "file:/a/c"},
	} {
		var base *javaURL
		if c.base != "" {
			var err error
			if base, err = parseJavaURL(nil, c.base); err != nil {
				t.Fatal(err)
			}
		}
		got := ""
		if u, err := parseJavaURL(base, c.ref); err == nil {
			got = u.String()
		}
		if got != c.want {
			t.Errorf("%q at %q: %q, want %q", c.ref, c.base, got, c.want)
		}
	}
}
