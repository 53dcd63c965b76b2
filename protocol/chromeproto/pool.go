package chromeproto

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/protocol"
)

// A pool has one browser at a time, and a place for each page in it.
type pool struct {
	o      *Options
	block  map[Type]bool
	proxy  *proxy
	places chan struct{}

	ctx  context.Context // ends with the pool
	stop context.CancelFunc

	starting chan struct{} // has an entry while a visit asks for a browser

	mu      sync.Mutex
	browser *browser
	active  sync.WaitGroup // visits, and browsers that are being closed
	closed  bool
}

// A browser is a process, and the pages it has.
type browser struct {
	*process
	begun, running int // pages
	retired        bool
	watch          context.CancelFunc
}

func newPool(o *Options) (*pool, error) {
	x, err := newProxy(o.Client, o.Limits.Cache)
	if err != nil {
		return nil, fmt.Errorf("chromeproto: %w", err)
	}
	p := &pool{o: o, block: map[Type]bool{}, proxy: x, places: make(chan struct{}, o.Limits.Pages), starting: make(chan struct{}, 1)}
	p.ctx, p.stop = context.WithCancel(context.Background())
	for _, t := range o.Block {
		p.block[t] = true
	}
	return p, nil
}

func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	b := p.browser
	p.browser = nil
	p.mu.Unlock()
	p.stop()
	if b != nil {
		b.watch()
		b.process.close()
	}
	p.active.Wait()
	p.proxy.close()
}

// acquire returns a browser with room for a page, and starts one if needed.
func (p *pool) acquire(ctx context.Context) (*browser, error) {
	select {
	case p.starting <- struct{}{}:
		defer func() { <-p.starting }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if b, err := p.current(); b != nil || err != nil {
		return b, err
	}
	proc, err := start(ctx, p.o.Chrome, p.proxy.address(), p.proxy.keys.spki, p.proxy.userAgent, !p.o.NoSandbox)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		proc.close()
		return nil, ErrClosed
	}
	wctx, cancel := context.WithCancel(p.ctx)
	b := &browser{process: proc, watch: cancel, begun: 1, running: 1}
	p.browser = b
	p.mu.Unlock()
	p.active.Go(func() {
		watchMemory(wctx, proc.cmd.Process.Pid, p.o.Limits.Memory, func() bool {
			p.mu.Lock()
			defer p.mu.Unlock()
			return b.running > 0
		})
	})
	return b, nil
}

// current returns the browser, with one page more; nil if there is none that can have it.
func (p *pool) current() (*browser, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, ErrClosed
	}
	b := p.browser
	if b == nil {
		return nil, nil
	}
	if !b.alive() || b.begun >= p.o.Limits.PagesPerBrowser {
		p.browser = nil
		b.retired = true
		if b.running == 0 {
			p.end(b)
		}
		return nil, nil
	}
	b.begun++
	b.running++
	return b, nil
}

// release gives the place of a page back.
func (p *pool) release(b *browser) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b.running--
	if b.retired && b.running == 0 {
		p.end(b)
	}
}

// end closes a browser that has no page.
func (p *pool) end(b *browser) {
	b.watch()
	p.active.Go(b.process.close)
}

// render replaces the content of resp with the DOM of the page.
func (p *pool) render(ctx context.Context, resp *protocol.Response, header http.Header, limit int64) error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return ErrClosed
	}
	p.active.Add(1)
	p.mu.Unlock()
	defer p.active.Done()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(p.ctx, func() { cancel(ErrClosed) })()
	select {
	case p.places <- struct{}{}:
		defer func() { <-p.places }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if limit == 0 {
		limit = p.o.Client.Options().Limits.MaxBytes
	}
	begun := time.Now()
	report := Report{URL: resp.Content.URL}
	var out rendered
	err := error(errGone)
	for opened, unopened := 0, 0; errors.Is(err, errGone) && opened < 2 && unopened < 4; {
		var b *browser
		if b, err = p.acquire(ctx); err != nil {
			break
		}
		out, err = p.renderIn(ctx, b, resp, header, limit, &report)
		p.release(b)
		if errors.Is(err, errUnopened) {
			unopened++
		} else {
			opened++
		}
	}
	var fault pageFault
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &fault):
		report.Failure = string(fault)
	case errors.Is(err, errGone) && !errors.Is(err, errUnopened): // twice, so it is the page that ends it
		report.Failure = errGone.Error()
	case err != nil:
		return err
	}
	report.Elapsed = time.Since(begun)
	if report.Failure != "" {
		resp.Content.Truncated = true
	} else {
		c := &resp.Content
		c.Body, c.Type = out.dom, "text/html; charset=utf-8"
		c.Truncated = out.cut
		if out.refresh != "" {
			c.Refresh = out.refresh
		}
	}
	if p.o.OnPage != nil {
		p.o.OnPage(report)
	}
	return p.hand(resp.Content, &out)
}

// hand passes the pictures of a page to the callbacks.
func (p *pool) hand(c page.Content, out *rendered) error {
	if out.screenshot != nil {
		if err := p.o.Screenshot(c.URL, out.screenshot); err != nil {
			return err
		}
	}
	if out.pdf != nil {
		return p.o.PDF(c.URL, out.pdf)
	}
	return nil
}
