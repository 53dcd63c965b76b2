// Package chromeproto visits pages with HTTP, and renders those that need it in a headless
// Chromium: the content is then the DOM that scripts have made. It does not click, log in or
// keep cookies from page to page, and renders no other type than HTML. Start with [New]: a
// [Protocol] is a [protocol.Protocol] over an httpproto.Client, which makes the visit; the
// browser gets that answer instead of a second one.
//
// So status, redirects, validators, directives and all limits of a visit are those of httpproto,
// and a page that a server does not send is not rendered. What a page requests beyond it (scripts,
// data, WebSockets, of frames and workers too) goes through a proxy in this process, which
// connects as the client does (its guard, its ports, its ConnectTo), opens TLS, and asks the
// rules: robots.txt, types, budgets of requests and bytes. The browser looks up no names and has
// no other way out.
//
// Each page has a browser context of its own, without the cookies and the storage of others. Time in a page is virtual: timers run ahead while nothing is loading, so that a page
// that shows its text after three seconds costs none of them.
//
// A page that navigates away by a script is not followed: its content is what it was, with the
// target as Content.Refresh, which a parser reads like a meta refresh.
//
// The browser runs on Linux and other Unix systems; its processes are watched for memory on
// Linux only.
package chromeproto

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/httpproto"
	"github.com/recrawl/recrawl/protocol/robots"
	"github.com/recrawl/recrawl/stores/memstore"
)

// ErrClosed says that the protocol was closed before the visit.
var ErrClosed = errors.New("chromeproto: protocol is closed")

// Mode says which pages are rendered, if no rule says it.
type Mode uint8

const (
	// Auto renders the pages that [NeedsBrowser] finds to be empty without scripts.
	Auto Mode = iota
	// Always renders every HTML page.
	Always
	// Never renders none.
	Never
)

// ParseMode reads "auto", "always" or "never".
func ParseMode(s string) (Mode, error) {
	switch s {
	case "auto":
		return Auto, nil
	case "always":
		return Always, nil
	case "never":
		return Never, nil
	}
	return 0, fmt.Errorf("chromeproto: mode %q is not one of auto, always and never", s)
}

// A Rule says for the URLs that match Pattern whether they are rendered.
type Rule struct {
	Pattern *regexp.Regexp
	Mode    Mode
}

// Type is a type of request of a page.
type Type string

// The types of requests that can be blocked.
const (
	Image         Type = "image"
	Media         Type = "media" // audio, video and their captions
	Font          Type = "font"
	Stylesheet    Type = "stylesheet"
	Script        Type = "script"
	Frame         Type = "frame" // documents in frames; the crawl has them as links
	WebSocket     Type = "websocket"
	Ping          Type = "ping" // beacons and reports
	Manifest      Type = "manifest"
	ServiceWorker Type = "serviceworker"
)

// DefaultBlock returns the types that are blocked by default: those that add nothing to the DOM.
func DefaultBlock() []Type {
	return []Type{Image, Media, Font, Frame, Ping, Manifest, ServiceWorker}
}

// Options configure a [Protocol]. Only Client is required.
type Options struct {
	// Client makes all visits. Its options hold for the requests of pages too: agent, guard,
	// ports, lookups, certificates, proxy. The caller closes it, after the protocol.
	Client *httpproto.Client
	// Mode says which pages are rendered. Rules come first; the first that matches decides.
	Mode  Mode
	Rules []Rule
	// Chrome is the path of the browser; empty means the first of chromium-headless-shell,
	// chromium, chromium-browser, google-chrome in PATH. It is started when a page needs it.
	Chrome string
	// NoSandbox starts the browser without its sandbox, which it needs as root and in
	// containers without user namespaces. A page that breaks out of its process is then this
	// user; run it in a container that has nothing else.
	NoSandbox bool
	// Limits bound the cost of a page.
	Limits Limits
	// Block are the types of requests that pages may not make; nil means DefaultBlock. An
	// answer of a blocked type is cut off too, whatever the request looked like.
	Block []Type
	// Robots decides about the requests of pages; nil means a cache in memory of its own,
	// for the agent of the client. IgnoreRobots asks none.
	Robots       *robots.Cache
	IgnoreRobots bool
	// Screenshot and PDF receive a picture (PNG, of the window of 1280 × 1024) and a print of each
	// rendered page, before Fetch returns; nil makes none. They are called from many goroutines
	// at once. Their error is that of the visit. Pictures need images, fonts and frames:
	// see Block.
	Screenshot, PDF func(url string, data []byte) error
	// OnPage is called for each page that was given to the browser; nil ignores it. It is called
	// from many goroutines at once.
	OnPage func(Report)
}

// Limits bound the cost of pages. In each, zero means the default; only Cache may be negative.
type Limits struct {
	// Pages is how many are rendered at once; zero means 4. Further ones wait; their visits
	// are made already.
	Pages int
	// Time limits the rendering of a page; zero means 15 s. At the end of it the DOM is taken as
	// it is.
	Time time.Duration
	// VirtualTime is how long a page runs by its own clock; zero means 5 s.
	VirtualTime time.Duration
	// Requests and Bytes limit what a page requests, and what its answers and WebSockets
	// bring, as encoded; zero means 150 and 32 MiB.
	Requests int
	Bytes    int64
	// Memory limits each process of pages, on Linux only; zero means 768 MiB. The heap of
	// scripts is limited to 256 MiB in any case.
	Memory int64
	// Cache limits the answers that are kept in memory for other pages, if servers allow it
	// (Cache-Control): the scripts of a site are not requested for each of its pages. Zero means
	// 64 MiB, negative keeps none.
	Cache int64
	// PagesPerBrowser is after how many pages a browser is replaced; zero means 500.
	PagesPerBrowser int
}

// A Report says what the rendering of a page took.
type Report struct {
	URL string
	// Failure says why the content is that of the server and not the DOM; empty if it is.
	Failure string
	// Requests and Bytes are those of the page beyond itself, Refused how many requests were
	// not made; Refusals are the first hundred of them.
	Requests int
	Bytes    int64
	Refused  int
	Refusals []Refusal
	// Elapsed is the time in the browser, waiting for a place not counted.
	Elapsed time.Duration
}

// A Refusal is a request of a page that a rule of ours forbade.
type Refusal struct{ URL, Reason string }

// A Protocol is a protocol.Protocol for http and https. It may be used from many goroutines at
// once.
//
// A page that cannot be rendered because of itself (it does not answer within Limits.Time, or takes
// more memory than Limits.Memory) is a Success with the content that the server sent, and
// Truncated. Rendered content is UTF-8, and its Type says so. A browser that ends is replaced, and
// the page that it was busy with rendered once more. A browser that cannot be started is an error.
type Protocol struct {
	o    Options
	pool *pool
}

// New returns a protocol, or an error that names the invalid option. It starts the proxy; the
// browser is started by the first page that needs it.
func New(o Options) (*Protocol, error) {
	if o.Client == nil {
		return nil, errors.New("chromeproto: option Client is required")
	}
	if o.Mode > Never {
		return nil, fmt.Errorf("chromeproto: option Mode has no value %d", o.Mode)
	}
	known := append(DefaultBlock(), Stylesheet, Script, WebSocket)
	for _, t := range o.Block {
		if !slices.Contains(known, t) {
			return nil, fmt.Errorf("chromeproto: option Block has no type %q", t)
		}
	}
	l := &o.Limits
	for _, n := range []int64{int64(l.Pages), int64(l.Time), int64(l.VirtualTime), int64(l.Requests), l.Bytes, l.Memory, int64(l.PagesPerBrowser)} {
		if n < 0 {
			return nil, errors.New("chromeproto: option Limits has a negative value")
		}
	}
	orDefault(&l.Pages, 4)
	orDefault(&l.Time, 15*time.Second)
	orDefault(&l.VirtualTime, 5*time.Second)
	orDefault(&l.Requests, 150)
	orDefault(&l.Bytes, 32<<20)
	orDefault(&l.Memory, 768<<20)
	orDefault(&l.Cache, 64<<20)
	orDefault(&l.PagesPerBrowser, 500)
	for i, r := range o.Rules {
		if r.Pattern == nil || r.Mode > Never {
			return nil, fmt.Errorf("chromeproto: option Rules[%d] is not valid", i)
		}
	}
	if o.Block == nil {
		o.Block = DefaultBlock()
	}
	if o.Robots == nil && !o.IgnoreRobots {
		o.Robots = &robots.Cache{Protocol: o.Client, Hosts: new(memstore.Hosts), Product: o.Client.Options().Agent}
	}
	if o.IgnoreRobots {
		o.Robots = nil
	}
	p := &Protocol{o: o}
	if o.Mode == Never && !slices.ContainsFunc(o.Rules, func(r Rule) bool { return r.Mode != Never }) {
		return p, nil
	}
	var err error
	if p.o.Chrome, err = find(o.Chrome); err != nil {
		return nil, err
	}
	p.pool, err = newPool(&p.o)
	return p, err
}

// find returns the path of a browser.
func find(name string) (string, error) {
	if name != "" {
		path, err := exec.LookPath(name)
		if err != nil {
			return "", fmt.Errorf("chromeproto: option Chrome: %w", err)
		}
		return path, nil
	}
	names := []string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("chromeproto: none of %s is in PATH; option Chrome names another", strings.Join(names, ", "))
}

// Close refuses further visits, ends the browser and waits until none of its processes is left.
// Visits under way return ErrClosed. It returns nil.
func (p *Protocol) Close() error {
	if p.pool != nil {
		p.pool.close()
	}
	return nil
}

// Fetch makes the visit, and renders the page if it needs it.
func (p *Protocol) Fetch(ctx context.Context, req protocol.Request) (protocol.Response, error) {
	resp, header, err := p.o.Client.FetchHeader(ctx, req)
	if err != nil || p.pool == nil || resp.Outcome.Code != protocol.Success || !renderable(&resp, header) || !p.wanted(&resp) {
		return resp, err
	}
	begun := time.Now()
	if err := p.pool.render(ctx, &resp, header, req.MaxBytes); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return protocol.Response{}, fmt.Errorf("chromeproto: render %q: %w", req.URL, err)
	}
	resp.Elapsed += time.Since(begun)
	return resp, nil
}

// renderable reports whether an answer is a page that a browser would show.
func renderable(resp *protocol.Response, header http.Header) bool {
	if len(resp.Content.Body) == 0 || resp.Content.Truncated {
		return false
	}
	if d, _, _ := strings.Cut(header.Get("Content-Disposition"), ";"); strings.EqualFold(strings.TrimSpace(d), "attachment") {
		return false
	}
	kind, _, _ := mime.ParseMediaType(resp.Content.Type)
	return kind == "text/html" || kind == "application/xhtml+xml"
}

// wanted reports whether the rules, or the detector, want a page rendered.
func (p *Protocol) wanted(resp *protocol.Response) bool {
	mode := p.o.Mode
	for _, r := range p.o.Rules {
		if r.Pattern.MatchString(resp.Content.URL) {
			mode = r.Mode
			break
		}
	}
	return mode == Always || mode == Auto && NeedsBrowser(resp.Content.Body)
}

func orDefault[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}
