package httpproto_test

import (
	"net/http/httptest"
	"testing"

	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/httpproto"
	"github.com/recrawl/recrawl/protocol/protocoltest"
)

func TestProtocol(t *testing.T) {
	for name, secure := range map[string]bool{"http": false, "https": true} {
		t.Run(name, func(t *testing.T) {
			noLeak(t)
			protocoltest.Run(t, protocoltest.Harness{
				New: func() (protocol.Protocol, error) {
					return httpproto.New(httpproto.Options{Agent: "bot", Guard: httpproto.Guard{AllowPrivate: true}, InsecureSkipVerify: secure})
				},
				Serve: func(pages map[string]protocoltest.Page) (string, func(), error) {
					s := httptest.NewUnstartedServer(protocoltest.Handler(pages))
					if s.EnableHTTP2 = secure; secure {
						s.StartTLS()
					} else {
						s.Start()
					}
					return s.URL, s.Close, nil
				},
			})
		})
	}
}
