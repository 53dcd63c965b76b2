package httpproto_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/httpproto"
)

func TestTransportIsGuarded(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Host) }))
	defer s.Close()
	loopback := func(context.Context, string, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	}
	client, err := httpproto.New(httpproto.Options{Agent: "bot", Resolver: loopback})
	if err != nil {
		t.Fatal(err)
	}
	port := s.URL[len("http://127.0.0.1:"):]
	for _, url := range []string{s.URL, "http://name.example:" + port, "http://[::ffff:127.0.0.1]:" + port, "http://93.184.216.34:6379"} {
		if _, err := (&http.Client{Transport: client.Transport()}).Get(url); !errors.Is(err, httpproto.ErrBlocked) {
			t.Errorf("%s: error %v, want ErrBlocked", url, err)
		}
	}
	tr := newClient(t, httpproto.Options{Resolver: loopback}).Transport()
	defer tr.CloseIdleConnections()
	resp, err := (&http.Client{Transport: tr}).Get("http://name.example:" + port)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if b, _ := io.ReadAll(resp.Body); string(b) != "name.example:"+port {
		t.Errorf("host %q", b)
	}
}

func TestFetchHeaderReturnsHeaders(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", "default-src 'self'")
		w.WriteHeader(http.StatusNotFound)
	}))
	defer s.Close()
	c := newClient(t, httpproto.Options{})
	r, h, err := c.FetchHeader(context.Background(), protocol.Request{URL: s.URL})
	if err != nil || r.Outcome.Code != protocol.NotFound || h.Get("Content-Security-Policy") != "default-src 'self'" {
		t.Errorf("%v, %v, %v", r.Outcome, h, err)
	}
	if _, h, err := c.FetchHeader(context.Background(), protocol.Request{URL: "ftp://a/"}); h != nil || err != nil {
		t.Errorf("refused: %v, %v", h, err)
	}
}
