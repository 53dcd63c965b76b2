package chromeproto

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"math/big"
	"net"
	"net/netip"
	"sync"
	"time"
)

// maxLeaves is how many certificates are kept.
const maxLeaves = 1000

// leafKeys makes the certificates that the proxy shows to the browser. They have one key, made
// for this pool and never written down; the browser is started to accept that key, and there is
// no authority that anything else could trust. Certificates of servers are verified by the
// transport of the proxy.
type leafKeys struct {
	key  *ecdsa.PrivateKey
	spki string // its hash, as the browser takes it

	mu     sync.Mutex
	leaves map[string]*tls.Certificate
}

func newLeafKeys() (*leafKeys, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return nil, err
	}
	hash := sha256.Sum256(der)
	return &leafKeys{key: key, spki: base64.StdEncoding.EncodeToString(hash[:]), leaves: map[string]*tls.Certificate{}}, nil
}

// server returns the side of the server of a TLS connection for a host.
func (k *leafKeys) server(c net.Conn, host string) *tls.Conn {
	return tls.Server(c, &tls.Config{
		NextProtos:     []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return k.leaf(host) },
	})
}

func (k *leafKeys) leaf(host string) (*tls.Certificate, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if leaf := k.leaves[host]; leaf != nil {
		return leaf, nil
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "recrawl"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(90 * 24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if a, err := netip.ParseAddr(host); err == nil {
		template.IPAddresses = []net.IP{a.AsSlice()}
	} else {
		template.DNSNames = []string{host}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &k.key.PublicKey, k.key)
	if err != nil {
		return nil, err
	}
	if len(k.leaves) >= maxLeaves {
		clear(k.leaves)
	}
	leaf := &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: k.key}
	k.leaves[host] = leaf
	return leaf, nil
}
