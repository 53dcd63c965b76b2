package httpproto_test

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/httpproto"
)

// A port of another protocol is refused before anything is looked up, unless the
// owner has allowed it; the ports that web servers have are not.
func TestPortsOfOtherProtocols(t *testing.T) {
	looked := 0
	o := httpproto.Options{
		AllowPorts: []uint16{22, 6379},
		Resolver: func(context.Context, string, string) ([]netip.Addr, error) {
			looked++
			return nil, nil
		},
	}
	c := newClient(t, o)
	for port, refused := range map[int]bool{
		21: true, 22: false, 23: true, 25: true, 53: true, 110: true, 143: true, 445: true, 465: true, 587: true, 993: true, 2049: true,
		3306: true, 5432: true, 6000: true, 6379: false, 6667: true, 10080: true, 11211: true, 27017: true,
		80: false, 81: false, 443: false, 591: false, 3000: false, 5000: false, 7000: false, 8000: false, 8080: false, 8443: false, 8888: false, 9000: false, 9200: false,
	} {
		for _, scheme := range []string{"http", "https"} {
			looked = 0
			r := fetch(t, c, protocol.Request{URL: fmt.Sprintf("%s://name.example:%05d/", scheme, port)})
			why := fmt.Sprintf("url: port %d is that of another protocol", port)
			if got := r.Outcome.Code == protocol.Refused && r.Outcome.Reason == why; got != refused {
				t.Errorf("%s at %d: %+v, want refused %v", scheme, port, r.Outcome, refused)
			}
			if (looked == 0) != refused {
				t.Errorf("%s at %d: %d lookups", scheme, port, looked)
			}
		}
	}
}

// The port of the URL counts, not that of an entry in ConnectTo.
func TestPortOfConnectTo(t *testing.T) {
	s := serveRaw(t, answering("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"))
	c := newClient(t, httpproto.Options{ConnectTo: []httpproto.ConnectTo{loopback(t, s)}})
	get(t, c, "http://name.example/", protocol.Success, 200, "")
	if r := fetch(t, c, protocol.Request{URL: "http://name.example:25/"}); !strings.HasPrefix(r.Outcome.Reason, "url: port") {
		t.Errorf("%+v", r.Outcome)
	}
}
