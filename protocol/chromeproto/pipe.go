package chromeproto

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
)

// errGone says that the browser has ended or closed its pipe.
var errGone = errors.New("browser is gone")

const (
	// maxMessage limits a message of the browser; a longer one is dropped. A page can make the
	// browser report what the page has sent, of any size.
	maxMessage = 64 << 20
	// maxEvents is how many events of a page may wait. A page that makes more is ended.
	maxEvents = 512
)

// A pipe speaks the DevTools protocol with a browser over two pipes: messages of JSON, each
// followed by a zero byte. It may be used from many goroutines at once.
type pipe struct {
	w  io.WriteCloser
	wm sync.Mutex // held while writing

	mu       sync.Mutex
	next     int
	waiting  map[int]chan message
	sessions map[string]chan message

	gone chan struct{} // closed when the browser is gone
}

// A message is a reply, if it has an ID, or an event.
type message struct {
	ID      int             `json:"id"`
	Session string          `json:"sessionId"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
	Result  json.RawMessage `json:"result"`
	Error   *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// newPipe returns a pipe, whose goroutine ends when r does.
func newPipe(w io.WriteCloser, r io.Reader) *pipe {
	p := &pipe{w: w, waiting: map[int]chan message{}, sessions: map[string]chan message{}, gone: make(chan struct{})}
	go p.read(r)
	return p
}

func (p *pipe) read(r io.Reader) {
	defer close(p.gone)
	in := bufio.NewReaderSize(r, 64<<10)
	var buf []byte
	dropped := false
	for {
		part, err := in.ReadSlice(0)
		if dropped = dropped || len(buf)+len(part) > maxMessage; !dropped {
			buf = append(buf, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil:
			return
		}
		if !dropped {
			p.dispatch(bytes.TrimSuffix(buf, []byte{0}))
		}
		if buf, dropped = buf[:0], false; cap(buf) > 1<<20 {
			buf = nil
		}
	}
}

// dispatch passes a message to the call, or to the session, that it is for.
func (p *pipe) dispatch(raw []byte) {
	var m message
	if json.Unmarshal(raw, &m) != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if m.ID != 0 {
		if c, ok := p.waiting[m.ID]; ok {
			delete(p.waiting, m.ID)
			c <- m
		}
		return
	}
	c, ok := p.sessions[m.Session]
	if !ok {
		return
	}
	select {
	case c <- m:
	default: // the page makes events faster than they can be looked at
		delete(p.sessions, m.Session)
		close(c)
	}
}

// listen returns the events of a session. The channel is closed when there are too many.
func (p *pipe) listen(session string) <-chan message {
	c := make(chan message, maxEvents)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sessions[session] = c
	return c
}

func (p *pipe) unlisten(session string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.sessions, session)
}

// send sends a command and does not wait for its reply, which goes to reply unless nil.
func (p *pipe) send(session, method string, params any, reply chan message) (id int, err error) {
	if params == nil {
		params = struct{}{}
	}
	p.mu.Lock()
	p.next++
	id = p.next
	if reply != nil {
		p.waiting[id] = reply
	}
	p.mu.Unlock()
	raw, err := json.Marshal(struct {
		ID      int    `json:"id"`
		Session string `json:"sessionId,omitempty"`
		Method  string `json:"method"`
		Params  any    `json:"params"`
	}{id, session, method, params})
	if err != nil {
		return id, err
	}
	p.wm.Lock()
	defer p.wm.Unlock()
	if _, err := p.w.Write(append(raw, 0)); err != nil {
		return id, fmt.Errorf("%w: %s: %w", errGone, method, err)
	}
	return id, nil
}

// call sends a command and decodes its result, unless nil.
func (p *pipe) call(ctx context.Context, session, method string, params, result any) error {
	reply := make(chan message, 1)
	id, err := p.send(session, method, params, reply)
	if err != nil {
		return err
	}
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.waiting, id)
	}()
	select {
	case m := <-reply:
		if m.Error != nil {
			return fmt.Errorf("%s: %s", method, m.Error.Message)
		}
		if result == nil {
			return nil
		}
		return json.Unmarshal(m.Result, result)
	case <-p.gone:
		return fmt.Errorf("%w: %s", errGone, method)
	case <-ctx.Done():
		return ctx.Err()
	}
}
