package nutchconf

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
)

func TestReadSettings(t *testing.T) {
	got, err := readSettings(strings.NewReader(`<?xml version="1.0"?>
<?xml-stylesheet type="text/xsl" href="configuration.xsl"?>
<!-- a comment -->
<configuration>
  <property><name> a </name><value> 1 </value><description>no <b>matter</b></description></property>
  <property>
    <name>b</name>
    <value><![CDATA[<2>]]></value>
    <final>true</final>
    <source>x</source><tag>y</tag>
  </property>
  <property name="c" value="3" final="true"/>
  <property><name>d</name><value></value></property>
  <property><name>e</name></property>
  <unknown><name>f</name><value>6</value></unknown>
  <configuration><property><name>g</name><value>7 &amp; <!-- split -->8</value></property></configuration>
</configuration>`), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []setting{
		{name: "a", value: " 1 ", line: 5}, {name: "b", value: "<2>", final: true, line: 6}, {name: "c", value: "3", final: true, line: 12},
		{name: "d", line: 13}, {name: "e", line: 14}, {name: "g", value: "7 & 8", line: 16},
	}
	if len(got) != len(want) {
		t.Fatalf("%d settings, want %d: %v", len(got), len(want), got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("setting %d is %+v, want %+v", i, got[i], want[i])
		}
	}
}

func TestReadSettingsEncodings(t *testing.T) {
	const body = "<configuration><property><name>a</name><value>%</value></property></configuration>"
	for head, char := range map[string]string{
		"": "é", `<?xml version="1.0" encoding="UTF-8"?>`: "é", `<?xml version="1.0" encoding="iso-8859-1"?>`: "\xe9", "\ufeff": "é",
	} {
		got, err := readSettings(strings.NewReader(head+strings.Replace(body, "%", char, 1)), nil)
		if err != nil || len(got) != 1 || got[0].value != "é" {
			t.Errorf("%q: %v, %v", head, got, err)
		}
	}
}

func TestInvalidSettings(t *testing.T) {
	for text, want := range map[string]struct {
		line int
		text string
	}{
		"":                          {1, "no <configuration>"},
		"<properties></properties>": {1, "begins with <properties>"},
		"<configuration>\n<property>\n<name>a</property>":                                                    {3, "element"},
		"<configuration>\n<property><value>1</value>\n</property></configuration>":                           {2, "has no <name>"},
		"<configuration>\n<xi:include href='x' xmlns:xi='http://www.w3.org/2001/XInclude'/></configuration>": {2, "xi:include without fallback: x is not there"},
		"<configuration>\n\n<xi:include href='bad'>\n<xi:fallback/></xi:include></configuration>":            {3, "xi:include: x:1: it is bad"},
		`<?xml version="1.0" encoding="EBCDIC"?><configuration/>`:                                            {1, "EBCDIC"},
		"<configuration>" + strings.Repeat("<configuration>", 20):                                            {1, "too deep"},
		"<!DOCTYPE c [<!ENTITY x '" + strings.Repeat("x", 300) + "'>]><configuration/>":                      {1, "entities are longer"},
		"<!DOCTYPE c [<!ENTITY x SYSTEM 'file'>]>\n<configuration>&x;</configuration>":                       {2, "&x;"},
		"<configuration>\n\n<property><name>&nbsp;</name></property></configuration>":                        {3, "nbsp"},
	} {
		_, err := readSettings(strings.NewReader(text), includes)
		var l *lineError
		if !errors.As(err, &l) || l.line != want.line || !strings.Contains(err.Error(), want.text) {
			t.Errorf("%q: %v, want line %d: …%s…", text, err, want.line, want.text)
		}
	}
}

func TestEntities(t *testing.T) {
	got, err := readSettings(strings.NewReader(`<!DOCTYPE configuration SYSTEM "x.dtd" [
  <!ENTITY org "example.org"> <!ENTITY who 'us'>
]>
<configuration><property><name>a</name><value>&who;@&org; &lt;&#65;></value></property></configuration>`), nil)
	if err != nil || len(got) != 1 || got[0].value != "us@example.org <A>" {
		t.Errorf("%+v, %v", got, err)
	}
}

// includes are the files that tests include.
func includes(href string) ([]setting, error) {
	switch href {
	case "there":
		return []setting{{name: "x", value: "1", file: "there", line: 7}}, nil
	case "bad":
		return nil, errors.New("x:1: it is bad")
	}
	return nil, fmt.Errorf("%s is not there: %w", href, fs.ErrNotExist)
}

// What is included stands where the include does; a fallback counts only if it is
// needed.
func TestInclude(t *testing.T) {
	got, err := readSettings(strings.NewReader(`<configuration xmlns:xi="http://www.w3.org/2001/XInclude">
  <property><name>a</name><value>1</value></property>
  <xi:include href="there"><xi:fallback><property><name>b</name><value>2</value></property>
    <xi:include href="bad"/></xi:fallback></xi:include>
  <xi:include href="there"/>
  <xi:include href="missing"><xi:fallback>
    <property><name>c</name><value>3</value></property>
    <xi:include href="missing"><xi:fallback/></xi:include>
  </xi:fallback></xi:include>
  <property><name>d</name><value>4</value></property>
</configuration>`), includes)
	want := []setting{
		{name: "a", value: "1", line: 2}, {name: "x", value: "1", file: "there", line: 7}, {name: "x", value: "1", file: "there", line: 7},
		{name: "c", value: "3", line: 7}, {name: "d", value: "4", line: 10},
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v, %v, want\n%+v", got, err, want)
	}
}

func TestExpand(t *testing.T) {
	values := map[string]string{"a": "1", "b": "${a}2", "c": "a", "loop": "${loop}", "ping": "${pong}", "pong": "x${ping}"}
	get := func(name string) (string, bool) { v, ok := values[name]; return v, ok }
	for in, want := range map[string]string{
		"": "", "x": "x", "${a}": "1", "<${b}>": "<12>", "${${c}}": "1", "${unbound} ${a}": "${unbound} ${a}",
		"$": "$", "${": "${", "${}": "${}", "${a": "${a", "${a b}": "${a b}", "${env.HOME}": "${env.HOME}",
	} {
		if got, err := expand(in, get); got != want || err != nil {
			t.Errorf("expand(%q) = %q, %v, want %q", in, got, err, want)
		}
	}
	for _, in := range []string{"${loop}", "${ping}"} {
		if got, err := expand(in, get); err == nil {
			t.Errorf("expand(%q) = %q, want an error", in, got)
		}
	}
}

func FuzzReadSettings(f *testing.F) {
	for _, s := range []string{
		"<configuration><property><name>a</name><value>${b}</value><final>true</final></property></configuration>",
		`<?xml version="1.0" encoding="iso-8859-1"?><configuration>` + "\xe9" + `<property name="x" value="y"/></configuration>`,
		`<configuration><include href="there"/><include href="x"><fallback><property name="y" value="z"/></fallback></include></configuration>`,
		`<!DOCTYPE c [<!ENTITY a "b"><!ENTITY c '&a;'>]><configuration><property name="x"><value>&a;&c;</value></property></configuration>`,
		"<configuration><!DOCTYPE a [<!ENTITY b 'c'>]>&b;</configuration>", "<a", "",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		settings, err := readSettings(strings.NewReader(string(data)), includes)
		if err != nil {
			if l := (*lineError)(nil); !errors.As(err, &l) || l.line < 1 {
				t.Errorf("%v names no line", err)
			}
			return
		}
		values := map[string]string{}
		for _, s := range settings {
			if s.name == "" || s.line < 1 {
				t.Errorf("%+v", s)
			}
			values[s.name] = s.value
		}
		for _, s := range settings {
			expand(s.value, func(name string) (string, bool) { v, ok := values[name]; return v, ok })
		}
	})
}
