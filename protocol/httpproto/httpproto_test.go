package httpproto_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/httpproto"
)

func TestSmoke(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"x"`)
		w.Write([]byte("hello " + r.UserAgent()))
	}))
	defer s.Close()
	c, err := httpproto.New(httpproto.Options{Agent: "bot", Version: "1", AllowPrivate: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r, err := c.Fetch(context.Background(), protocol.Request{URL: s.URL})
	t.Logf("%+v %s %v", r, r.Content.Body, err)
	if string(r.Content.Body) != "hello bot/1" {
		t.Error("body")
	}
}
