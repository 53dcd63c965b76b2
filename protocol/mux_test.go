package protocol_test

import (
	"context"
	"errors"
	"testing"

	"github.com/recrawl/recrawl/protocol"
)

// named answers every visit with its name as the reason.
type named string

func (n named) Fetch(ctx context.Context, req protocol.Request) (protocol.Response, error) {
	return protocol.Response{Outcome: protocol.Outcome{Code: protocol.Success, Reason: string(n)}}, nil
}

func TestMux(t *testing.T) {
	m := protocol.Mux{"http": named("h"), "file": named("f"), "": named("none"), "nil": nil}
	for url, want := range map[string]string{
		"http://a/": "h", "HTTP://a/": "h", "file:///x": "f", "http:": "h",
		"https://a/": "", "ftp://a/": "", "nil://a/": "", "": "", "a": "", "//a/": "", "javascript:alert(1)": "",
	} {
		r, err := m.Fetch(context.Background(), protocol.Request{URL: url})
		if err != nil {
			t.Errorf("%q: %v", url, err)
		}
		if want == "" {
			if r.Outcome.Code != protocol.Refused || r.Outcome.Reason == "" || r.Content.URL != url {
				t.Errorf("%q: %+v, want refused", url, r)
			}
		} else if r.Outcome.Reason != want {
			t.Errorf("%q: went to %q, want %q", url, r.Outcome.Reason, want)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := m.Fetch(ctx, protocol.Request{URL: "x://a/"}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
