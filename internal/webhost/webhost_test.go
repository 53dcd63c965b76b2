package webhost

import "testing"

func TestASCII(t *testing.T) {
	for name, want := range map[string]string{
		"Example.COM":        "example.com",
		"BÜCHER.example":     "xn--bcher-kva.example",
		"bücher。example．":    "xn--bcher-kva.example.",
		"faß.de":             "xn--fa-hia.de",
		"ẞ.de":               "xn--zca.de", // not ss.de, as before Unicode 15.1
		"-ü_a.de":            "xn---_a-hoa.de",
		"ex\u00admple.com":   "exmple.com",
		"１.２":                "1.2",
		"XN--TDA.ü":          "xn--tda.xn--tda",
		"a..ü":               "a..xn--tda",
		"İ.de":               "xn--i-9bb.de",
		"":                   "",
		"xn--":               "refused",
		"ü.xn--":             "refused", // not the host of "ü."
		"ü.xn--.com":         "refused",
		"ü.ｘN--.com":         "refused",
		"ü.\u00ad.com":       "xn--tda..com",
		"\u00ad":             "",
		"xn--a":              "refused",
		"ü.xn--example-.com": "refused",
		"ü⒈":                 "refused",
		"ü\ufffd":            "refused",
		"ü\xff":              "refused",
	} {
		got, ok := ASCII(name)
		if !ok {
			got = "refused"
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}

func TestIPv4(t *testing.T) {
	for host, want := range map[string]string{
		"1.2.3.4": "1.2.3.4", "1.2.3": "1.2.0.3", "1.2": "1.0.0.2", "1": "0.0.0.1", "4294967295": "255.255.255.255", "0x7f.1": "127.0.0.1",
		"0x": "0.0.0.0", "0": "0.0.0.0", "00": "0.0.0.0", "0177.0.0.01": "127.0.0.1", "0x000000000000000000000001": "0.0.0.1", "1.16777215": "1.255.255.255",
		"": "", "1.": "", ".1": "", "1..2": "", "09": "", "256.1": "", "1.2.3.256": "", "1.2.65536": "", "1.16777216": "", "4294967296": "",
		"1.2.3.4.5": "", "1.2.3.4.5.6": "", "+1": "", "-1": "", "1_0": "", "0x1_0": "", "0xg": "", "a": "", "1e3": "",
	} {
		got := ""
		if a, ok := IPv4(host); ok {
			got = a.String()
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", host, got, want)
		}
	}
	for label, want := range map[string]bool{"1": true, "09": true, "0x": true, "0xfg": false, "0xff": true, "": false, "1a": false, "a": false} {
		if IsNumber(label) != want {
			t.Errorf("%q: got %v", label, !want)
		}
	}
}

func TestUnescape(t *testing.T) {
	for in, want := range map[string]string{"a%62c": "abc", "%": "%", "%4": "%4", "%zz%41": "%zzA", "%+1": "%+1", "%2541": "%41", "%C3%bc": "ü"} {
		if got := Unescape(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}
