package httpproto

import (
	"net"
	"testing"
)

// A writeHook is a connection that calls a function within Write.
type writeHook struct {
	net.Conn
	write func(p []byte)
}

func (w writeHook) Write(p []byte) (int, error) {
	w.write(p)
	return len(p), nil
}

func TestRequestIsLoggedBeforeItIsAnswered(t *testing.T) {
	log := new(wireLog)
	r := &recorder{Conn: writeHook{write: func(p []byte) {
		if string(log.request) != string(p) {
			t.Errorf("log has %q when %q is sent", log.request, p)
		}
	}}}
	r.log.Store(log)
	if _, err := r.Write([]byte("GET / HTTP/1.1\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
}
