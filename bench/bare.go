package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/net/html"
	"golang.org/x/sync/errgroup"
)

// bareLoop is the least that a crawler in Go does with net/http, the tokenizer of
// x/net and net/url: it asks for each page once, reads links and text from its
// tokens, resolves the links, and writes the body into a file, packed by zstd. It
// obeys no robots.txt, leaves no pause, remembers nothing but which URLs it has
// seen, and asks a host as many times at once as it likes. What a page that
// fails or is lost costs it does not know.
func bareLoop(ctx context.Context, j job, r *result, m *meter) error {
	roots, err := j.roots()
	if err != nil {
		return err
	}
	transport := &http.Transport{
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			to, err := j.connectTo(addr)
			if err != nil {
				return nil, err
			}
			return new(net.Dialer).DialContext(ctx, network, to)
		},
		TLSClientConfig:     tlsConfig(roots),
		MaxIdleConns:        j.Idle,
		MaxIdleConnsPerHost: j.Idle,
		IdleConnTimeout:     90 * time.Second,
		DisableCompression:  true,
	}
	defer transport.CloseIdleConnections()
	f, err := os.Create(filepath.Join(j.Dir, "pages"))
	if err != nil {
		return err
	}
	defer f.Close()

	b := &bare{hosts: map[string]bool{}, seen: map[string]bool{}, max: j.Max, out: bufio.NewWriterSize(f, 1<<20)}
	b.more.L = &b.mu
	for _, h := range j.Hosts {
		b.hosts[h] = true
	}
	b.add(j.Seeds)
	stop := context.AfterFunc(ctx, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.over = true
		b.more.Broadcast()
	})
	defer stop()
	if err := m.start(); err != nil {
		return err
	}
	var g errgroup.Group
	for range j.Workers {
		g.Go(func() error { return b.work(ctx, transport) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	if err := b.out.Flush(); err != nil {
		return err
	}
	transport.CloseIdleConnections()
	if err := m.stop(); err != nil {
		return err
	}
	r.Pages, r.Bytes = b.pages, b.size
	if b.text == 0 {
		return errNoText
	}
	return ctx.Err()
}

type bare struct {
	hosts map[string]bool

	mu     sync.Mutex
	more   sync.Cond
	seen   map[string]bool
	queue  []string
	max    int // pages; 0 for all
	taken  int
	flying int
	over   bool
	pages  int
	size   int64
	text   int
	out    *bufio.Writer
}

// add queues those that were not seen. The lock is held, or there is no other goroutine.
func (b *bare) add(urls []string) {
	for _, u := range urls {
		if !b.seen[u] {
			b.seen[u] = true
			b.queue = append(b.queue, u)
		}
	}
}

// next returns a URL, and false when there is none any more.
func (b *bare) next() (string, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for {
		switch {
		case b.over || b.max > 0 && b.taken == b.max:
			return "", false
		case len(b.queue) > 0:
			u := b.queue[0]
			b.queue = b.queue[1:]
			b.taken++
			b.flying++
			return u, true
		case b.flying == 0:
			b.over = true
			b.more.Broadcast()
			return "", false
		}
		b.more.Wait()
	}
}

func (b *bare) work(ctx context.Context, transport *http.Transport) error {
	zw, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return err
	}
	var body bytes.Buffer
	var text, packed []byte
	for {
		target, ok := b.next()
		if !ok {
			return nil
		}
		links, status, err := b.visit(ctx, transport, target, &body, &text)
		if err != nil {
			return fmt.Errorf("%s: %w", target, err)
		}
		packed = zw.EncodeAll(body.Bytes(), packed[:0])
		b.mu.Lock()
		if b.flying--; status == http.StatusOK {
			b.pages++
			b.size += int64(body.Len())
			b.text += len(text)
			_, err = b.out.Write(packed)
		}
		b.add(links)
		b.more.Broadcast()
		b.mu.Unlock()
		if err != nil {
			return err
		}
	}
}

func (b *bare) visit(ctx context.Context, transport *http.Transport, target string, body *bytes.Buffer, text *[]byte) (links []string, status int, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return nil, 0, err
	}
	req.Header.Set("User-Agent", agent)
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return nil, 0, err
	}
	defer resp.Body.Close()
	body.Reset()
	if _, err := io.Copy(body, resp.Body); err != nil {
		return nil, 0, err
	}
	*text = (*text)[:0]
	if location := resp.Header.Get("Location"); location != "" {
		links = b.link(links, req.URL, location)
	}
	z := html.NewTokenizer(bytes.NewReader(body.Bytes()))
	hidden := false
	for {
		switch t := z.Next(); t {
		case html.ErrorToken:
			return links, resp.StatusCode, nil
		case html.TextToken:
			if !hidden {
				*text = append(*text, z.Text()...)
			}
		case html.StartTagToken, html.SelfClosingTagToken, html.EndTagToken:
			name, more := z.TagName()
			switch string(name) {
			case "script", "style":
				hidden = t == html.StartTagToken
			case "a":
				for more {
					var key, value []byte
					if key, value, more = z.TagAttr(); string(key) == "href" {
						links = b.link(links, req.URL, string(value))
					}
				}
			}
		}
	}
}

// link appends the target of a link if it is on one of the hosts.
func (b *bare) link(links []string, base *url.URL, href string) []string {
	u, err := base.Parse(href)
	if err != nil || !b.hosts[u.Hostname()] {
		return links
	}
	u.Fragment, u.RawFragment = "", ""
	return append(links, u.String())
}
