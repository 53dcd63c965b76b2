package httpproto_test

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/httpproto"
)

// A signer signs requests (RFC 9421) as Web Bot Auth requires: a receiver that has the
// public key, which agent publishes, can tell the crawler from those that
// merely use its name.
type signer struct {
	key   ed25519.PrivateKey
	agent string // the origin that publishes the key
	now   func() time.Time
	next  http.RoundTripper
}

// keyID is the thumbprint of the key as a JSON Web Key (RFC 7638).
func keyID(key ed25519.PublicKey) string {
	sum := sha256.Sum256([]byte(`{"crv":"Ed25519","kty":"OKP","x":"` + base64.RawURLEncoding.EncodeToString(key) + `"}`))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// base is the signature base: the lines of the covered components and the
// parameters.
func base(r *http.Request, params string) string {
	return fmt.Sprintf("\"@authority\": %s\n\"signature-agent\": %s\n\"@signature-params\": %s",
		strings.ToLower(r.Host), r.Header.Get("Signature-Agent"), params)
}

func (s signer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context()) // the context says whose visit the request is
	now := s.now().Unix()
	params := fmt.Sprintf(`("@authority" "signature-agent");created=%d;expires=%d;keyid="%s";alg="ed25519";tag="web-bot-auth"`,
		now, now+60, keyID(s.key.Public().(ed25519.PublicKey)))
	r.Header.Set("Signature-Agent", `"`+s.agent+`"`)
	r.Header.Set("Signature-Input", "sig1="+params)
	signature := ed25519.Sign(s.key, []byte(base(r, params)))
	r.Header.Set("Signature", "sig1=:"+base64.StdEncoding.EncodeToString(signature)+":")
	return s.next.RoundTrip(r)
}

// The hook sees each request as it will be sent, and may sign it.
func ExampleOptions_signatures() {
	key := ed25519.NewKeyFromSeed([]byte("a seed of thirty-two bytes, of.."))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		params, _ := strings.CutPrefix(r.Header.Get("Signature-Input"), "sig1=")
		text, _ := strings.CutPrefix(r.Header.Get("Signature"), "sig1=:")
		signature, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(text, ":"))
		public := key.Public().(ed25519.PublicKey)
		genuine := err == nil && strings.Contains(params, `keyid="`+keyID(public)+`"`) && ed25519.Verify(public, []byte(base(r, params)), signature)
		fmt.Fprintf(w, "%s, by %s: %v", r.UserAgent(), r.Header.Get("Signature-Agent"), genuine)
	}))
	defer server.Close()

	to, err := httpproto.ParseConnectTo("::" + strings.TrimPrefix(server.URL, "http://"))
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err := httpproto.New(httpproto.Options{
		Agent: "examplebot", AgentURL: "https://bot.example",
		ConnectTo: []httpproto.ConnectTo{to}, // to the server of this example
		RoundTripper: func(next http.RoundTripper) http.RoundTripper {
			return signer{key: key, agent: "https://bot.example", now: time.Now, next: next}
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	r, err := c.Fetch(context.Background(), protocol.Request{URL: "http://Site.example:80/"})
	fmt.Println(string(r.Content.Body), err)
	// Output: examplebot (+https://bot.example), by "https://bot.example": true <nil>
}

// Cookies are kept on request, each for the exact origin that set it.
func ExampleJar() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "session", Value: "1", Path: "/", Domain: "example.com"})
		fmt.Fprintf(w, "%s was sent %q\n", r.Host, r.Header.Get("Cookie"))
	}))
	defer server.Close()
	to, err := httpproto.ParseConnectTo("::" + strings.TrimPrefix(server.URL, "http://"))
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err := httpproto.New(httpproto.Options{Agent: "examplebot", ConnectTo: []httpproto.ConnectTo{to}, Jar: &httpproto.Jar{}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	for _, host := range []string{"www.example.com", "www.example.com", "shop.example.com", "www.example.com:8080"} {
		r, err := c.Fetch(context.Background(), protocol.Request{URL: "http://" + host + "/"})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Print(string(r.Content.Body))
	}
	// Output:
	// www.example.com was sent ""
	// www.example.com was sent "session=1"
	// shop.example.com was sent ""
	// www.example.com:8080 was sent ""
}
