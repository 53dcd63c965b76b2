package nutchconf

import (
	"errors"
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
</configuration>`))
	if err != nil {
		t.Fatal(err)
	}
	want := []setting{
		{"a", " 1 ", false, 5}, {"b", "<2>", true, 6}, {"c", "3", true, 12}, {"d", "", false, 13}, {"e", "", false, 14}, {"g", "7 & 8", false, 16},
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
		got, err := readSettings(strings.NewReader(head + strings.Replace(body, "%", char, 1)))
		if err != nil || len(got) != 1 || got[0].value != "é" {
			t.Errorf("%q: %v, %v", head, got, err)
		}
	}
}

func TestSettingsThatAreNone(t *testing.T) {
	for text, want := range map[string]struct {
		line int
		text string
	}{
		"":                          {1, "there is no <configuration>"},
		"<properties></properties>": {1, "begins with <properties>"},
		"<configuration>\n<property>\n<name>a</property>":                                                    {3, "element"},
		"<configuration>\n<property><value>1</value>\n</property></configuration>":                           {2, "has no <name>"},
		"<configuration>\n<xi:include href='x' xmlns:xi='http://www.w3.org/2001/XInclude'/></configuration>": {2, "xi:include is not supported"},
		`<?xml version="1.0" encoding="EBCDIC"?><configuration/>`:                                            {1, "EBCDIC"},
		"<configuration>" + strings.Repeat("<configuration>", 20):                                            {1, "too deep"},
		"<configuration>\n\n<property><name>&nbsp;</name></property></configuration>":                        {3, "nbsp"},
	} {
		_, err := readSettings(strings.NewReader(text))
		var l *lineError
		if !errors.As(err, &l) || l.line != want.line || !strings.Contains(err.Error(), want.text) {
			t.Errorf("%q: %v, want line %d: …%s…", text, err, want.line, want.text)
		}
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
		"<configuration><!DOCTYPE a [<!ENTITY b 'c'>]>&b;</configuration>", "<a", "",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		settings, err := readSettings(strings.NewReader(string(data)))
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
