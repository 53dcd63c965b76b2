package httpproto_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/httpproto"
)

// TestCertificates has one fault of a certificate in each row, and demands its class.
func TestCertificates(t *testing.T) {
	noLeak(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	base := func() *x509.Certificate {
		return &x509.Certificate{
			SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "leaf"}, DNSNames: []string{"name.example"},
			NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour),
			KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		}
	}
	authority := func(name string, edit func(*x509.Certificate)) *x509.Certificate {
		c := base()
		c.Subject.CommonName, c.DNSNames, c.ExtKeyUsage = name, nil, nil
		c.IsCA, c.BasicConstraintsValid, c.KeyUsage = true, true, x509.KeyUsageCertSign
		if edit != nil {
			edit(c)
		}
		return c
	}
	sign := func(c, parent *x509.Certificate) []byte {
		der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, key)
		if err != nil {
			t.Fatal(err)
		}
		return der
	}
	root := authority("root", nil)
	pool := x509.NewCertPool()
	trust := func(c *x509.Certificate) {
		der, err := x509.ParseCertificate(sign(c, c))
		if err != nil {
			t.Fatal(err)
		}
		pool.AddCert(der)
	}
	trust(root)
	narrow := authority("narrow", func(c *x509.Certificate) {
		c.PermittedDNSDomains, c.PermittedDNSDomainsCritical = []string{"other.example"}, true
	})
	trust(narrow)

	leaf := func(parent *x509.Certificate, edit func(*x509.Certificate)) [][]byte {
		c := base()
		if edit != nil {
			edit(c)
		}
		return [][]byte{sign(c, parent)}
	}
	padded := func(n int) func(*x509.Certificate) {
		return func(c *x509.Certificate) {
			for i := range n {
				c.DNSNames = append(c.DNSNames, fmt.Sprintf("name-%06d.example", i))
			}
		}
	}
	var chain [][]byte
	for range 200 {
		chain = append(chain, sign(authority("nobody", nil), root))
	}
	for name, k := range map[string]struct {
		chain  [][]byte
		reason string
	}{
		"good":                {leaf(root, nil), ""},
		"expired":             {leaf(root, func(c *x509.Certificate) { c.NotAfter = now.Add(-time.Minute) }), "tls: certificate expired or not yet valid"},
		"not yet":             {leaf(root, func(c *x509.Certificate) { c.NotBefore = now.Add(time.Minute) }), "tls: certificate expired or not yet valid"},
		"another name":        {leaf(root, func(c *x509.Certificate) { c.DNSNames = []string{"name.example.evil.test"} }), "tls: certificate is for another name"},
		"name as CN only":     {leaf(root, func(c *x509.Certificate) { c.DNSNames, c.Subject.CommonName = nil, "name.example" }), "tls: certificate is for another name"},
		"wildcard":            {leaf(root, func(c *x509.Certificate) { c.DNSNames = []string{"*.name.example"} }), "tls: certificate is for another name"},
		"self-signed":         {leaf(base(), nil), "tls: certificate of an unknown authority"},
		"unknown authority":   {leaf(authority("stranger", nil), nil), "tls: certificate of an unknown authority"},
		"for clients":         {leaf(root, func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} }), "tls: certificate is invalid"},
		"outside constraints": {leaf(narrow, nil), "tls: certificate is invalid"},
		"60 KB":               {leaf(root, padded(2500)), ""},
		"300 KB":              {leaf(root, padded(15000)), "tls: handshake failed"},
		"200 authorities":     {append(leaf(root, nil), chain...), ""},
		"no certificate":      {[][]byte{[]byte("junk")}, "tls: handshake failed"},
	} {
		t.Run(name, func(t *testing.T) {
			noLeak(t)
			config := &tls.Config{Certificates: []tls.Certificate{{Certificate: k.chain, PrivateKey: key}}}
			s := serveRaw(t, func(nc net.Conn) {
				tc := tls.Server(nc, config)
				if _, ok := readRequest(tc); ok {
					io.WriteString(tc, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
				}
			})
			c := newClient(t, httpproto.Options{RootCAs: pool, ConnectTo: []httpproto.ConnectTo{loopback(t, s)}})
			r := fetch(t, c, protocol.Request{URL: "https://name.example/"})
			if (r.Outcome.Code == protocol.Success) != (k.reason == "") || r.Outcome.Reason != k.reason {
				t.Errorf("%v %q, want %q", r.Outcome.Code, r.Outcome.Reason, k.reason)
			}
			c.CloseIdleConnections()
			within(t, "a connection is open", func() bool { return s.open.Load() == 0 })
			// Verification is all that InsecureSkipVerify spares.
			if !strings.Contains(k.reason, "handshake") {
				c = newClient(t, httpproto.Options{InsecureSkipVerify: true, ConnectTo: []httpproto.ConnectTo{loopback(t, s)}})
				get(t, c, "https://name.example/", protocol.Success, 200, "")
			}
		})
	}
}

// loopback returns an entry that sends every connection to s.
func loopback(t testing.TB, s *rawServer) httpproto.ConnectTo {
	to, err := httpproto.ParseConnectTo("::" + strings.TrimSuffix(s.url[strings.Index(s.url, "//")+2:], "/"))
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// TestBrokenHandshakes has one raw answer to a greeting a row.
func TestBrokenHandshakes(t *testing.T) {
	greeted := func(first, again string) func(net.Conn) {
		return func(nc net.Conn) {
			nc.Read(make([]byte, 4<<10))
			_, err := io.WriteString(nc, first)
			for err == nil && again != "" {
				_, err = io.WriteString(nc, again)
			}
		}
	}
	closed := func(first string) func(net.Conn) {
		return func(nc net.Conn) { greeted(first, "")(nc); nc.Close() }
	}
	for name, k := range map[string]struct {
		handle func(net.Conn)
		reason string
	}{
		"closed at once":          {closed(""), "connect: closed while shaking hands"},
		"closed in a record":      {closed("\x16\x03\x03\x00\x10\x02"), "connect: closed while shaking hands"},
		"no common cipher":        {closed("\x15\x03\x03\x00\x02\x02\x28"), "tls: alert: handshake failure"},
		"unknown name":            {closed("\x15\x03\x03\x00\x02\x02\x70"), "tls: alert: unrecognized name"},
		"unknown alert":           {closed("\x15\x03\x03\x00\x02\x02\xfe"), "tls: alert: alert(254)"},
		"flood of warnings":       {greeted("", "\x15\x03\x03\x00\x02\x01\x70"), "tls: handshake failed"},
		"flood of empty records":  {greeted("", "\x16\x03\x03\x00\x00"), "tls: handshake failed"},
		"message of 16 MB":        {greeted("\x16\x03\x03\x40\x00\x02\xff\xff\xff", strings.Repeat("\x16\x03\x03\x40\x00", 4<<10)), "tls: handshake failed"},
		"record too long":         {greeted("\x16\x03\x03\xff\xff", strings.Repeat("x", 4<<10)), "tls: server does not speak TLS"},
		"greeting of nonsense":    {greeted("\x16\x03\x03\x00\x06\x02\x00\x00\x02xx", ""), "tls: handshake failed"},
		"SSL 2":                   {closed("\x80\x2e\x01\x00\x02"), "tls: server does not speak TLS"},
		"HTTP":                    {closed("HTTP/1.1 400 Bad Request\r\n\r\n"), "tls: server does not speak TLS"},
		"data before handshake":   {greeted("\x17\x03\x03\x00\x05hello", ""), "tls: server does not speak TLS"},
		"RC4 chosen":              {greeted(serverHello(0x0005), ""), "tls: handshake failed"},
		"unknown cipher":          {greeted(serverHello(0xfefe), ""), "tls: handshake failed"},
		"a protocol not asked of": {greeted("\x16\x02\x00\x00\x04\x02\x00\x00\x00", ""), "tls: handshake failed"},
	} {
		t.Run(name, func(t *testing.T) {
			noLeak(t)
			s := serveRaw(t, k.handle)
			c := newClient(t, httpproto.Options{InsecureSkipVerify: true})
			get(t, c, strings.Replace(s.url, "http:", "https:", 1), protocol.Failed, 0, k.reason)
			if n := s.accepted.Load(); n > 2 {
				t.Errorf("%d connections for one visit", n)
			}
			within(t, "a connection is open", func() bool { return s.open.Load() == 0 })
		})
	}
}

// serverHello returns a TLS 1.2 record that chooses a cipher suite.
func serverHello(suite uint16) string {
	body := "\x03\x03" + strings.Repeat("r", 32) + "\x00" + string([]byte{byte(suite >> 8), byte(suite)}) + "\x00"
	return "\x16\x03\x03\x00" + string(rune(len(body)+4)) + "\x02\x00\x00" + string(rune(len(body))) + body
}

// The server name is the host of the URL, without port or trailing dot; empty for an address.
func TestServerName(t *testing.T) {
	noLeak(t)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.TLS.ServerName) }))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	to, err := httpproto.ParseConnectTo("::" + s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c := newClient(t, httpproto.Options{InsecureSkipVerify: true, ConnectTo: []httpproto.ConnectTo{to}})
	for url, want := range map[string]string{
		"https://name.example/": "name.example", "https://name.example:8443/": "name.example", "https://name.example./": "name.example",
		"https://192.0.2.1/": "", "https://[2001:db8::1]/": "",
	} {
		if r := get(t, c, url, protocol.Success, 200, ""); string(r.Content.Body) != want {
			t.Errorf("%s: server name %q, want %q", url, r.Content.Body, want)
		}
	}
}
