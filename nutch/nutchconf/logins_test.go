package nutchconf

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

const anAuthFile = `<?xml version="1.0"?>
<!-- as shipped -->
<auth-configuration>
  <credentials username="me" password="s3cret">
    <authscope host="Wiki.example" port="8080" realm="r" scheme="Basic"/>
    <authscope host="plain.example" port="80"/><authscope host="tls.example" port="443" scheme=""/>
  </credentials>
  <credentials username="you" password=""><authscope host="2001:db8::1" port="-1"/></credentials>
</auth-configuration>`

func TestParseLogins(t *testing.T) {
	logins, err := parseLogins(strings.NewReader(anAuthFile))
	var got []string
	for _, l := range logins {
		got = append(got, l.User+":"+l.Password+"@"+l.Origin)
	}
	want := "[me:s3cret@http://wiki.example:8080 me:s3cret@https://wiki.example:8080 me:s3cret@http://plain.example me:s3cret@https://tls.example you:@http://[2001:db8::1] you:@https://[2001:db8::1]]"
	if err != nil || fmt.Sprint(got) != want {
		t.Errorf("%v, %v", got, err)
	}
	if logins, err := parseLogins(strings.NewReader("<auth-configuration/>")); err != nil || logins != nil {
		t.Errorf("%v, %v", logins, err)
	}
}

func TestInvalidLogins(t *testing.T) {
	in := func(s string) string {
		return "<auth-configuration>\n<credentials username='me' password='s3cret'>\n" + s + "\n</credentials></auth-configuration>"
	}
	for text, want := range map[string]string{
		"":                     "line 1: no <auth-configuration>",
		"<configuration/>":     "line 1: the file begins with <configuration>",
		"<auth-configuration>": "line 1: unexpected EOF",
		"<auth-configuration>\n<credentials password='s3cret'/></auth-configuration>":                     "line 2: <credentials> without a username",
		"<auth-configuration>\n\n<credentials authMethod='formAuth' loginUrl='x'/></auth-configuration>":  `line 3: <credentials authMethod="formAuth">: forms are not supported`,
		"<auth-configuration><credentials username='me' password='s3cret&s3cret;'/></auth-configuration>": "line 1: invalid character entity",
		in("<default/>"):                                                   "line 3: <default> would send the password to every server",
		in("<authscope port='80'/>"):                                       `line 3: <authscope>: "" is not a host name`,
		in("<authscope host='a.example/x'/>"):                              `"a.example/x" is not a host name`,
		in("<authscope host='a.example:80'/>"):                             "is not a host name",
		in("<authscope host='a.example' port='x'/>"):                       `"x" is not a port`,
		in("<authscope host='a.example' port='65536'/>"):                   `"65536" is not a port`,
		in("<authscope host='a.example' scheme='NTLM'/>"):                  `line 3: <authscope scheme="NTLM">: only basic is supported`,
		in("<authscope host='a.example' scheme='digest'/>"):                `only basic is supported`,
		in("<authscope host='a.example'/>\n<authscope host='A.example'/>"): "line 4: <authscope>: there is another login for http://a.example",
		in("<loginPostData/>"):                                             "line 3: unknown element <loginPostData> within <credentials>",
	} {
		logins, err := parseLogins(strings.NewReader(text))
		if l := (*lineError)(nil); err == nil || logins != nil || !errors.As(err, &l) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s\ngives %v, %v, want %s", text, logins, err, want)
		}
	}
}

func TestParseCookies(t *testing.T) {
	cookies, err := parseCookies(strings.NewReader("# a comment\n\na.example\tid=7#8; b=c\r\n  B.Example \t x=y\n"))
	var got []string
	for _, c := range cookies {
		got = append(got, c.Origin+" "+c.Value)
	}
	if want := "[http://a.example id=7#8; b=c https://a.example id=7#8; b=c http://b.example x=y https://b.example x=y]"; err != nil || fmt.Sprint(got) != want {
		t.Errorf("%v, %v", got, err)
	}
	line := "a.example\ts3cret=" + strings.Repeat("x", 60<<10) + "\n#" + strings.Repeat("-", 1000) + "\n"
	for text, want := range map[string]string{
		// Neither is cut, nor what follows it.
		"# long\na.example\ts3cret=" + strings.Repeat("x", 70<<10): "line 2: bufio.Scanner: token too long",
		strings.Repeat("#"+line, 5<<20/len(line)):                  "the file is longer than 4 MiB",
		"a.example s3cret=1":                                       "line 1: a line needs a host, a tab and a cookie",
		"\na.example\t":                                            "line 2: a line needs",
		"\ts3cret=1":                                               "line 1: a line needs",
		"http://a.example\ts3cret=1":                               "line 1: \"http://a.example\" is not a host name",
		"a.example\ts3cret=\xfc":                                   "line 1: the cookie is not printable",
		"a.example\ts3cret=1\nA.example\ts3cret=2":                 "line 2: there is another cookie for http://a.example",
	} {
		cookies, err := parseCookies(strings.NewReader(text))
		if err == nil || cookies != nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%q gives %v, %v, want %s", text, cookies, err, want)
		}
	}
}

func FuzzParseLogins(f *testing.F) {
	f.Add([]byte(anAuthFile))
	f.Add([]byte("<auth-configuration><credentials username='a' password='&amp;'><authscope host='[::1]' port='1'/></credentials></auth-configuration>"))
	f.Add([]byte("<auth-configuration></credentials>"))
	f.Fuzz(func(t *testing.T, data []byte) {
		logins, err := parseLogins(strings.NewReader(string(data)))
		if l := (*lineError)(nil); err != nil && (logins != nil || !errors.As(err, &l) || l.line < 1) {
			t.Errorf("%v, %v", logins, err)
		}
		for _, l := range logins {
			if l.User == "" || !strings.HasPrefix(l.Origin, "http") || strings.ContainsAny(l.Origin, "@?# ") {
				t.Errorf("%q", l.Origin)
			}
		}
	})
}

func FuzzParseCookies(f *testing.F) {
	f.Add([]byte("a.example\tb=c\n# no\nb.example\td"))
	f.Fuzz(func(t *testing.T, data []byte) {
		cookies, err := parseCookies(strings.NewReader(string(data)))
		if err != nil && cookies != nil {
			t.Errorf("%v, %v", cookies, err)
		}
		for _, c := range cookies {
			if c.Value == "" || strings.ContainsAny(c.Value, "\r\n") || strings.ContainsAny(c.Origin, "@?# ") {
				t.Errorf("%q: %q", c.Origin, c.Value)
			}
		}
	})
}
