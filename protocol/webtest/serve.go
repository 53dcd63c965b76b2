package webtest

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Server serves a handler on loopback.
type Server struct {
	// Addr is the address it listens on: "127.0.0.1:41234". A crawler reaches all
	// hosts of a [Web] by connecting there whatever the URL says.
	Addr string

	server *http.Server
	done   chan error
}

// Serve starts serving a handler on a free port of 127.0.0.1. The caller must
// close the server.
func Serve(h http.Handler) (*Server, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("webtest: serve: %w", err)
	}
	s := &Server{
		Addr:   l.Addr().String(),
		server: &http.Server{Handler: h, ReadHeaderTimeout: 30 * time.Second},
		done:   make(chan error, 1),
	}
	go func() { s.done <- s.server.Serve(l) }()
	return s, nil
}

// ConnectTo returns "::" and the address: the rule that sends every connection
// here, as httpproto.ParseConnectTo and curl's --connect-to read it.
func (s *Server) ConnectTo() string { return "::" + s.Addr }

// Close ends all connections and waits until the server has stopped. It must be
// called once.
func (s *Server) Close() error {
	err := s.server.Close()
	if served := <-s.done; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	if err != nil {
		return fmt.Errorf("webtest: close: %w", err)
	}
	return nil
}
