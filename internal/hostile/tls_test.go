package hostile_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"io"
	"math/big"
	"sync"
	"time"
)

// An authority signs the certificates of the hostile servers. Its pool is what
// the crawls trust.
type authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	pool *x509.CertPool
}

var trusted = sync.OnceValue(func() *authority { return newAuthority() })

func newAuthority() *authority {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	cert := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "hostile"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	if cert, err = x509.ParseCertificate(der); err != nil {
		panic(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return &authority{key, cert, pool}
}

// certificate returns one for a host, after edit.
func (a *authority) certificate(host string, edit func(*x509.Certificate)) tls.Certificate {
	c := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: host}, DNSNames: []string{host},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if edit != nil {
		edit(c)
	}
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, &a.key.PublicKey, a.key)
	if err != nil {
		panic(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: a.key}
}

// overTLS returns a handler with a good certificate for host, for HTTP/1.
func overTLS(host string, handle func(*conn)) func(*conn) {
	return secure(&tls.Config{Certificates: []tls.Certificate{trusted().certificate(host, nil)}}, handle)
}

// overHTTP2 returns a handler that agrees on HTTP/2, reads up to a request and
// leaves the rest to say.
func overHTTP2(host string, say func(*conn)) func(*conn) {
	config := &tls.Config{Certificates: []tls.Certificate{trusted().certificate(host, nil)}, NextProtos: []string{"h2"}}
	return secure(config, func(c *conn) {
		preface := make([]byte, len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
		if _, err := io.ReadFull(c.r, preface); err != nil {
			return
		}
		first, ok := c.stream()
		if !ok {
			return
		}
		streams := make(chan uint32, 100)
		streams <- first
		c.streams = streams
		var wg sync.WaitGroup
		defer wg.Wait()
		wg.Go(func() {
			defer close(streams)
			for {
				id, ok := c.stream()
				if !ok {
					return
				}
				select {
				case streams <- id:
				default: // of a row that answers none
				}
			}
		})
		say(c)
	})
}

// stream reads up to a request over HTTP/2, notes it, and returns its stream.
func (c *conn) stream() (id uint32, ok bool) {
	for head := make([]byte, 9); ; {
		if _, err := io.ReadFull(c.r, head); err != nil {
			return 0, false
		}
		if _, err := io.CopyN(io.Discard, c.r, int64(head[0])<<16|int64(head[1])<<8|int64(head[2])); err != nil {
			return 0, false
		}
		if head[3] == 1 { // HEADERS
			c.s.mu.Lock()
			c.s.seen = append(c.s.seen, seen{at: time.Now()})
			c.s.mu.Unlock()
			return binary.BigEndian.Uint32(head[5:]), true
		}
	}
}

// frame returns an HTTP/2 frame.
func frame(kind, flags byte, stream uint32, payload string) string {
	n := len(payload)
	return string([]byte{byte(n >> 16), byte(n >> 8), byte(n), kind, flags, byte(stream >> 24), byte(stream >> 16), byte(stream >> 8), byte(stream)}) + payload
}
