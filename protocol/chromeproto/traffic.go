package chromeproto

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// errBudget ends a transfer of a page that has used up its bytes.
var errBudget = errors.New("page has used up its bytes")

// maxRefusals is how many refused requests of a page are kept with their URL.
const maxRefusals = 100

// traffic is what one page may request, and has.
type traffic struct {
	ctx         context.Context // ends with the page
	end         context.CancelFunc
	maxRequests int
	maxBytes    int64
	block       map[Type]bool
	// allowed asks robots.txt about a URL; nil allows all.
	allowed func(ctx context.Context, url string) (bool, error)

	mu       sync.Mutex
	document *document
	requests int
	bytes    int64
	advances int // requests and reads within the budget
	refused  int
	refusals []Refusal
	conns    map[*tunnel]bool
}

// A document is the answer that the crawl has already: the page itself is not requested again.
type document struct {
	url    string // as the browser asks for it; empty until it does
	status int
	header http.Header
	body   []byte
	served bool
}

// newTraffic returns the traffic of a page, which ends with ctx, or by end.
func newTraffic(ctx context.Context, d *document) *traffic {
	t := &traffic{document: d, conns: map[*tunnel]bool{}}
	t.ctx, t.end = context.WithCancel(ctx)
	context.AfterFunc(t.ctx, func() {
		t.mu.Lock()
		conns := t.conns
		t.conns = nil
		t.mu.Unlock()
		for c := range conns {
			c.Conn.Close()
		}
	})
	return t
}

// track closes the tunnel when the page ends; false if it has.
func (t *traffic) track(c *tunnel) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.conns == nil {
		return false
	}
	t.conns[c] = true
	return true
}

func (t *traffic) untrack(c *tunnel) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.conns, c)
}

// expect says under which URL the browser is about to ask for the document; false if the browser
// has it already.
func (t *traffic) expect(url string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.document == nil || t.document.served {
		return false
	}
	t.document.url, _, _ = strings.Cut(url, "#")
	return true
}

// notPassed are headers of the document that the browser does not get: those of the transfer,
// and Refresh, which is reported.
var notPassed = []string{
	"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
	"Content-Length", "Content-Encoding", "Content-Range", "Alt-Svc", "Refresh",
}

// serveDocument answers the first request for the document, and reports whether it did.
func (t *traffic) serveDocument(w http.ResponseWriter, r *http.Request, u *url.URL) bool {
	t.mu.Lock()
	d := t.document
	if d == nil || d.served || d.url == "" || r.Method != http.MethodGet || d.url != u.String() {
		t.mu.Unlock()
		return false
	}
	d.served = true
	t.mu.Unlock()
	h := w.Header()
	for name, values := range d.header {
		if !slices.Contains(notPassed, name) {
			h[name] = values
		}
	}
	if policy := contentPolicy(t.block); policy != "" {
		h["Content-Security-Policy"] = append(slices.Clone(h["Content-Security-Policy"]), policy)
	}
	w.WriteHeader(d.status)
	w.Write(d.body)
	return true
}

// contentPolicy returns a Content-Security-Policy by which the document does not ask for blocked
// types. It holds beside those of the server: the strictest does.
func contentPolicy(block map[Type]bool) string {
	var out []string
	for _, d := range []struct {
		typ    Type
		policy string
	}{
		{Image, "img-src data: blob:"}, {Media, "media-src data: blob:"}, {Font, "font-src data:"},
		{Frame, "frame-src 'none'; object-src 'none'"}, {Manifest, "manifest-src 'none'"},
	} {
		if block[d.typ] {
			out = append(out, d.policy)
		}
	}
	return strings.Join(out, "; ")
}

// admit returns why a request may not be made; empty if it may.
func (t *traffic) admit(ctx context.Context, r *http.Request, u *url.URL) string {
	if u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil {
		return "url"
	}
	if typ := typeOf(r); t.block[typ] {
		return "type: " + string(typ)
	}
	t.mu.Lock()
	t.requests++
	spent := t.requests > t.maxRequests || t.bytes >= t.maxBytes
	if !spent {
		t.advances++
	}
	t.mu.Unlock()
	if spent {
		return "budget"
	}
	if t.allowed != nil {
		if ok, err := t.allowed(ctx, u.String()); err != nil || !ok {
			return "robots.txt"
		}
	}
	return ""
}

// typeOf returns the type of a request as far as its headers say: for https, and in all
// schemes for WebSockets and service workers.
func typeOf(r *http.Request) Type {
	if strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		return WebSocket
	}
	if r.Header.Get("Service-Worker") != "" {
		return ServiceWorker
	}
	switch r.Header.Get("Sec-Fetch-Dest") {
	case "image":
		return Image
	case "audio", "video", "track":
		return Media
	case "font":
		return Font
	case "style":
		return Stylesheet
	case "iframe", "frame", "object", "embed", "fencedframe":
		return Frame
	case "script", "worker", "sharedworker":
		return Script
	case "report":
		return Ping
	case "manifest":
		return Manifest
	case "serviceworker":
		return ServiceWorker
	}
	return ""
}

// admitAnswer returns why the page may not have an answer, by its type; empty if it may.
func (t *traffic) admitAnswer(r *http.Response) string {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	var typ Type
	switch top, _, _ := strings.Cut(kind, "/"); {
	case kind == "image/svg+xml": // scripts fetch it as a part of the page
	case top == "image":
		typ = Image
	case top == "audio", top == "video":
		typ = Media
	case top == "font":
		typ = Font
	}
	if t.block[typ] {
		return "type: " + string(typ)
	}
	return ""
}

// refuse records a request that was not made, or whose answer was not passed on.
func (t *traffic) refuse(u *url.URL, why string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.refused++
	if len(t.refusals) < maxRefusals {
		t.refusals = append(t.refusals, Refusal{URL: u.String(), Reason: why})
	}
}

// spend counts bytes, and reports whether there were enough left.
func (t *traffic) spend(n int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.bytes += int64(n)
	if n > 0 {
		t.advances++
	}
	return t.bytes <= t.maxBytes
}

// progress returns a number that grows with each request and each read of an answer, and whether
// the page goes on requesting although it may not.
func (t *traffic) progress() (n int, over bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.advances, t.requests > 2*t.maxRequests
}

// counted returns a body whose bytes count against the budget of the page.
func (t *traffic) counted(body io.ReadCloser) io.ReadCloser {
	if body == nil || body == http.NoBody {
		return body
	}
	return &countedBody{body, t}
}

type countedBody struct {
	io.ReadCloser
	traffic *traffic
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if !b.traffic.spend(n) {
		return 0, errBudget
	}
	return n, err
}

// A countedConn is the connection of a WebSocket.
type countedConn struct {
	io.ReadWriteCloser
	traffic *traffic
}

func (c *countedConn) Read(p []byte) (int, error) {
	n, err := c.ReadWriteCloser.Read(p)
	if !c.traffic.spend(n) {
		return 0, errBudget
	}
	return n, err
}

func (c *countedConn) Write(p []byte) (int, error) {
	if !c.traffic.spend(len(p)) {
		return 0, errBudget
	}
	return c.ReadWriteCloser.Write(p)
}
