package chromeproto_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/chromeproto"
	"github.com/recrawl/recrawl/protocol/httpproto"
	"github.com/recrawl/recrawl/protocol/protocoltest"
)

// TestProtocol needs no browser: no page of the kit is one that scripts would fill. With a
// browser for each page it is TestProtocolWithBrowser.
func TestProtocol(t *testing.T) {
	runKit(t, chromeproto.Options{Mode: chromeproto.Auto, Chrome: "go"})
}

func runKit(t *testing.T, o chromeproto.Options) {
	protocoltest.Run(t, protocoltest.Harness{
		New: func() (protocol.Protocol, error) {
			c, err := httpproto.New(httpproto.Options{Agent: "testbot", Guard: httpproto.Guard{AllowPrivate: true}})
			if err != nil {
				return nil, err
			}
			o.Client = c
			p, err := chromeproto.New(o)
			return closing{p, c}, err
		},
		Serve: func(pages map[string]protocoltest.Page) (string, func(), error) {
			s := httptest.NewServer(protocoltest.Handler(pages))
			return s.URL, s.Close, nil
		},
	})
}

// closing closes the client after the protocol.
type closing struct {
	*chromeproto.Protocol
	client *httpproto.Client
}

func (c closing) Close() error {
	c.Protocol.Close()
	return c.client.Close()
}

// A browser that cannot be started is an error, and no fault of the page. Its last words are
// in the error, and nothing of it is left.
func TestBrowserThatDoesNotStartIsAnError(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<p>text")
	}))
	defer s.Close()
	c, err := httpproto.New(httpproto.Options{Agent: "testbot", Guard: httpproto.Guard{AllowPrivate: true}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	p, err := chromeproto.New(chromeproto.Options{Client: c, Mode: chromeproto.Always, Chrome: "go"})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := p.Fetch(t.Context(), protocol.Request{URL: s.URL}); err == nil || !strings.Contains(err.Error(), "go help") {
			t.Errorf("error %v", err)
		}
	}
	p.Close()
	if _, err := p.Fetch(t.Context(), protocol.Request{URL: s.URL}); !errors.Is(err, chromeproto.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
	if left, _ := filepath.Glob(temp + "/recrawl-chrome-*"); len(left) > 0 {
		t.Errorf("these folders are left: %v", left)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	c, err := httpproto.New(httpproto.Options{Agent: "testbot"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for want, o := range map[string]chromeproto.Options{
		"Client":   {},
		"Limits":   {Client: c, Limits: chromeproto.Limits{Bytes: -1}},
		"Rules[1]": {Client: c, Rules: []chromeproto.Rule{{Pattern: regexp.MustCompile("a")}, {}}},
		"Chrome":   {Client: c, Chrome: "/nowhere/chrome"},
		"Mode":     {Client: c, Mode: 7},
		"Block":    {Client: c, Chrome: "go", Block: []chromeproto.Type{"pictures"}},
	} {
		if p, err := chromeproto.New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
			if p != nil {
				p.Close()
			}
		}
	}
	if _, err := chromeproto.ParseMode("sometimes"); err == nil {
		t.Error("a mode of another name is none")
	}
	p, err := chromeproto.New(chromeproto.Options{Client: c, Mode: chromeproto.Never, Chrome: "/nowhere/chrome"})
	if err != nil {
		t.Fatalf("never needs no browser: %v", err)
	}
	p.Close()
}
