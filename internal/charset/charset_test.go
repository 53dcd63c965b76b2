package charset

import "testing"

func TestParam(t *testing.T) {
	for in, want := range map[string]string{
		"text/html":                       "",
		"text/html; charset=UTF-8":        "UTF-8",
		"text/html;CHARSET = koi8-r ;a=b": "koi8-r",
		`charset="a b"; charset=c`:        "a b",
		`charset='a'`:                     "a",
		`charset="a`:                      "",
		"charset=":                        "",
		"charset=a,text/html":             "a",
		"charset; charset=a":              "a",
		"charse\u017f=a":                  "",
	} {
		if got := string(Param([]byte(in))); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestXML(t *testing.T) {
	for in, want := range map[string]string{
		`<?xml version="1.0" encoding="UTF-8"?>`:    "utf-8",
		`<?xml encoding = 'latin1' ?>`:              "windows-1252",
		`<?xml encoding='latin1"?>`:                 "",
		`<?xml encoding=latin1?>`:                   "",
		`<?xml encoding`:                            "",
		`<?xml encoding="utf-8"`:                    "",
		`<?xml version="1.0"?><a encoding="utf-8">`: "",
		` <?xml encoding="utf-8"?>`:                 "",
	} {
		if got := XML([]byte(in)); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestMark(t *testing.T) {
	for in, want := range map[string]string{"\xef\xbb\xbfa": "utf-8", "\xfe\xff": "utf-16be", "\xff\xfea": "utf-16le", "a": "", "": "", "\xef\xbb": ""} {
		if got, n := Mark([]byte(in)); got != want || n > len(in) || (n == 0) != (want == "") {
			t.Errorf("%q: %q, %d", in, got, n)
		}
	}
}
