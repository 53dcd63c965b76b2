package chromeproto

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/recrawl/recrawl/protocol"
)

const (
	// openTime is how long a browser may take to open an empty page, if Limits.Time is not less.
	openTime = 10 * time.Second
	// snapshotTime is how long the DOM may take to be written down, if Limits.Time is not less.
	snapshotTime = 5 * time.Second
	// stallTime is how long the requests of a page may make no progress before its time runs on
	// without them, if half of Limits.Time is not less.
	stallTime = 3 * time.Second
	// maxAway is how often a page may try to navigate away, and maxFrames how many frames may
	// be asked for, before its DOM is taken as it is.
	maxAway   = 20
	maxFrames = 200
)

// errUnopened says that the browser ended before the page began, which has no part in it.
var errUnopened = fmt.Errorf("%w: it opened no page", errGone)

// A pageFault says why a page cannot be rendered: it would be so again.
type pageFault string

func (f pageFault) Error() string { return string(f) }

// rendered is what a browser made of a page.
type rendered struct {
	dom             []byte
	cut             bool
	refresh         string
	screenshot, pdf []byte
}

// A tab is a page in a browser.
type tab struct {
	b       *browser
	pool    *pool
	traffic *traffic
	name    string // of the page at the proxy
	url     string
	context string
	target  string
	session string
	events  <-chan message

	committed bool
	expired   bool // its virtual time
	alone     bool // its virtual time does not wait for requests
	away      int
	frames    int
	refresh   string
}

// renderIn renders a page in a browser.
func (p *pool) renderIn(ctx context.Context, b *browser, resp *protocol.Response, header http.Header, limit int64, report *Report) (out rendered, err error) {
	tctx := ctx
	t := newTraffic(tctx, &document{status: resp.Outcome.Status, header: header, body: resp.Content.Body})
	t.maxRequests, t.maxBytes, t.block = p.o.Limits.Requests, p.o.Limits.Bytes, p.block
	if p.o.Robots != nil {
		t.allowed = p.allowed
	}
	tab := &tab{b: b, pool: p, traffic: t, name: rand.Text(), url: resp.Content.URL}
	p.proxy.add(tab.name, t)
	defer func() {
		p.proxy.remove(tab.name, t)
		t.mu.Lock()
		defer t.mu.Unlock()
		report.Requests, report.Bytes, report.Refused, report.Refusals = t.requests, t.bytes, t.refused, t.refusals
	}()
	defer tab.close()
	octx, cancel := context.WithTimeout(tctx, min(openTime, p.o.Limits.Time))
	defer cancel()
	switch err := tab.open(octx); {
	case err == nil:
	case tctx.Err() != nil:
		return out, context.Cause(tctx)
	case octx.Err() != nil: // the browser hangs, and no page has begun
		killGroup(b.cmd)
		return out, errUnopened
	case errors.Is(err, errGone):
		return out, errUnopened
	default:
		return out, err
	}
	ctx, cancel = context.WithTimeout(tctx, p.o.Limits.Time)
	defer cancel()
	if err := tab.run(ctx); err != nil && !errors.Is(err, errTimeUp) {
		return out, tab.fault(tctx, ctx, err)
	}
	sctx, cancel := context.WithTimeout(tctx, min(snapshotTime, p.o.Limits.Time))
	defer cancel()
	if err := tab.snapshot(sctx, &out, limit); err != nil {
		return out, tab.fault(tctx, sctx, err)
	}
	out.refresh = tab.refresh
	return out, nil
}

// allowed asks robots.txt.
func (p *pool) allowed(ctx context.Context, url string) (bool, error) {
	rules, known, err := p.o.Robots.Cached(ctx, url)
	if err == nil && !known {
		rules, err = p.o.Robots.Fetch(ctx, url)
	}
	if err != nil {
		return false, err
	}
	return rules.Allowed(url), nil
}

// fault tells the end of the visit, and that of the browser, from a fault of the page.
func (t *tab) fault(visit, ctx context.Context, err error) error {
	switch {
	case visit.Err() != nil:
		return context.Cause(visit)
	case errors.Is(err, errGone), !t.b.alive():
		return errGone
	case ctx.Err() != nil:
		return pageFault("page does not respond")
	}
	var fault pageFault
	if errors.As(err, &fault) {
		return err
	}
	return pageFault(err.Error())
}

func (t *tab) call(ctx context.Context, method string, params, result any) error {
	return t.b.call(ctx, t.session, method, params, result)
}

type obj = map[string]any

// open makes a page in a context of its own, and prepares it.
func (t *tab) open(ctx context.Context) error {
	var made struct {
		BrowserContextID string `json:"browserContextId"`
		TargetID         string `json:"targetId"`
		SessionID        string `json:"sessionId"`
	}
	if err := t.b.call(ctx, "", "Target.createBrowserContext", obj{"disposeOnDetach": true}, &made); err != nil {
		return err
	}
	t.context = made.BrowserContextID
	if err := t.b.call(ctx, "", "Browser.setDownloadBehavior", obj{"behavior": "deny", "browserContextId": t.context}, nil); err != nil {
		return err
	}
	if err := t.b.call(ctx, "", "Target.createTarget", obj{"url": "about:blank", "browserContextId": t.context}, &made); err != nil {
		return err
	}
	t.target = made.TargetID
	if err := t.b.call(ctx, "", "Target.attachToTarget", obj{"targetId": t.target, "flatten": true}, &made); err != nil {
		return err
	}
	t.session = made.SessionID
	t.events = t.b.listen(t.session)
	patterns := []obj{{"resourceType": "Document"}}
	for typ, name := range map[Type]string{Stylesheet: "Stylesheet", Script: "Script", Ping: "Ping"} { // the others: contentPolicy
		if t.pool.block[typ] {
			patterns = append(patterns, obj{"resourceType": name})
		}
	}
	for _, c := range []struct {
		method string
		params obj
	}{
		{"Page.enable", nil},
		{"Inspector.enable", nil},
		{"Emulation.setDeviceMetricsOverride", obj{"width": 1280, "height": t.pool.windowHeight(), "deviceScaleFactor": 1, "mobile": false}},
		{"Fetch.enable", obj{"patterns": patterns, "handleAuthRequests": true}},
	} {
		if err := t.call(ctx, c.method, c.params, nil); err != nil {
			return err
		}
	}
	return nil
}

// windowHeight returns the height of windows: what pages load when it is scrolled to is content,
// but a picture is one of a usual window.
func (p *pool) windowHeight() int {
	if p.o.Screenshot != nil {
		return 1024
	}
	return 8000
}

// close ends the page, whatever it is doing.
func (t *tab) close() {
	if t.session != "" {
		t.b.unlisten(t.session)
	}
	if t.context != "" {
		ctx, cancel := context.WithTimeout(context.Background(), closeTime)
		defer cancel()
		t.b.call(ctx, "", "Target.disposeBrowserContext", obj{"browserContextId": t.context}, nil)
	}
}

// errTimeUp says that a page was not done in time; its DOM may be there.
var errTimeUp = errors.New("time is up")

// run navigates to the page and serves its events until its virtual time is over.
func (t *tab) run(ctx context.Context) error {
	navigated := make(chan message, 1)
	if _, err := t.b.send(t.session, "Page.navigate", obj{"url": t.url}, navigated); err != nil {
		return err
	}
	runClock := func(policy string) error {
		budget := float64(t.pool.o.Limits.VirtualTime) / float64(time.Millisecond)
		_, err := t.b.send(t.session, "Emulation.setVirtualTimePolicy", obj{"policy": policy, "budget": budget, "maxVirtualTimeTaskStarvationCount": 1000}, nil)
		return err
	}
	tick := time.NewTicker(stallTime / 10)
	defer tick.Stop()
	progress, since := 0, time.Now()
	for {
		select {
		case m := <-navigated:
			var r struct {
				ErrorText string `json:"errorText"`
			}
			if m.Error != nil {
				return pageFault("navigation: " + m.Error.Message)
			}
			if json.Unmarshal(m.Result, &r); r.ErrorText != "" {
				return pageFault("navigation: " + r.ErrorText)
			}
			t.committed = true
			since = time.Now()
			if err := runClock("pauseIfNetworkFetchesPending"); err != nil {
				return err
			}
		case m, ok := <-t.events:
			if !ok {
				return pageFault("page makes too many events")
			}
			if err := t.event(&m); err != nil {
				return err
			}
			if t.expired || t.away > maxAway || t.frames > maxFrames {
				return nil
			}
		case <-tick.C:
			n, over := t.traffic.progress()
			switch {
			case over && t.committed:
				return nil
			case !t.committed || t.alone:
			case n != progress:
				progress, since = n, time.Now()
			case time.Since(since) > min(stallTime, t.pool.o.Limits.Time/2):
				// A request that the server answers when it likes, or a budget that is used up.
				t.alone = true
				if err := runClock("advance"); err != nil {
					return err
				}
			}
		case <-t.b.gone:
			return errGone
		case <-ctx.Done():
			if t.committed {
				return errTimeUp
			}
			return ctx.Err()
		}
	}
}

// event serves an event. It waits for no reply.
func (t *tab) event(m *message) error {
	var e struct {
		RequestID     string `json:"requestId"`
		FrameID       string `json:"frameId"`
		ResourceType  string `json:"resourceType"`
		AuthChallenge struct {
			Source string `json:"source"`
		} `json:"authChallenge"`
		Request struct {
			URL    string `json:"url"`
			Method string `json:"method"`
		} `json:"request"`
		Frame struct {
			ID       string `json:"id"`
			ParentID string `json:"parentId"`
			URL      string `json:"url"`
		} `json:"frame"`
	}
	if err := json.Unmarshal(m.Params, &e); err != nil {
		return nil
	}
	send := func(method string, params obj) error {
		_, err := t.b.send(t.session, method, params, nil)
		return err
	}
	switch m.Method {
	case "Fetch.authRequired":
		answer := obj{"response": "CancelAuth"}
		if e.AuthChallenge.Source == "Proxy" {
			answer = obj{"response": "ProvideCredentials", "username": t.name, "password": t.pool.proxy.secret}
		}
		return send("Fetch.continueWithAuth", obj{"requestId": e.RequestID, "authChallengeResponse": answer})
	case "Fetch.requestPaused":
		refuse := func(reason string) error {
			return send("Fetch.failRequest", obj{"requestId": e.RequestID, "errorReason": reason})
		}
		switch {
		case e.ResourceType != "Document":
			return refuse("BlockedByClient")
		case e.FrameID != t.target:
			t.frames++
			if t.pool.block[Frame] {
				return refuse("BlockedByClient")
			}
		case t.committed || !t.traffic.expect(e.Request.URL):
			t.leaves(e.Request.URL)
			return refuse("Aborted")
		}
		return send("Fetch.continueRequest", obj{"requestId": e.RequestID})
	case "Page.frameNavigated":
		if e.Frame.ParentID == "" && t.committed && !strings.HasPrefix(e.Frame.URL, "http") {
			return pageFault("page replaces itself")
		}
	case "Page.javascriptDialogOpening":
		return send("Page.handleJavaScriptDialog", obj{"accept": false})
	case "Inspector.targetCrashed":
		return pageFault("page crashed, or took too much memory")
	case "Emulation.virtualTimeBudgetExpired":
		t.expired = true
	}
	return nil
}

// leaves records that a script wants to be elsewhere.
func (t *tab) leaves(url string) {
	t.away++
	url, _, _ = strings.Cut(url, "#")
	if own, _, _ := strings.Cut(t.url, "#"); t.refresh == "" && url != own {
		t.refresh = "0; url=" + url
	}
}

// snapshotScript writes down the DOM, at most so many UTF-16 units of it. Open shadow trees are
// written in the place of the elements that have them, since parsers do not read templates.
const snapshotScript = `(() => {
	const doctype = document.doctype ? new XMLSerializer().serializeToString(document.doctype) + "\n" : "";
	const root = document.documentElement;
	if (!root) return {dom: doctype, cut: false};
	let s = "";
	const shadows = n => { for (const e of n.querySelectorAll("*")) if (e.shadowRoot) return true; return false };
	if (shadows(document)) {
		const empty = /^(area|base|br|col|embed|hr|img|input|link|meta|param|source|track|wbr)$/;
		const raw = /^(script|style|xmp|iframe|noembed|noframes|noscript|plaintext)$/;
		const text = t => t.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
		const write = (n, plain) => {
			if (s.length > LIMIT) return;
			if (n.nodeType === 3) { s += plain ? n.data : text(n.data); return }
			if (n.nodeType !== 1) return;
			const name = n.localName;
			s += "<" + name;
			for (const a of n.attributes) s += " " + a.name + '="' + a.value.replace(/&/g, "&amp;").replace(/"/g, "&quot;") + '"';
			s += ">";
			if (empty.test(name)) return;
			let children = n.shadowRoot ? n.shadowRoot.childNodes : n.childNodes;
			if (name === "slot" && n.assignedNodes && n.assignedNodes().length) children = n.assignedNodes();
			for (const c of children) write(c, raw.test(name));
			s += "</" + name + ">";
		};
		try { write(root, false) } catch { s = "" } // nested too deep
	}
	s = s || root.outerHTML;
	return {dom: doctype + s.slice(0, LIMIT), cut: s.length > LIMIT};
})()`

// snapshot takes the DOM, and the pictures that were asked for. The script runs in a world of
// its own, in which the page has changed nothing.
func (t *tab) snapshot(ctx context.Context, out *rendered, limit int64) error {
	var world struct {
		ExecutionContextID int `json:"executionContextId"`
	}
	if err := t.call(ctx, "Page.createIsolatedWorld", obj{"frameId": t.target}, &world); err != nil {
		return err
	}
	if limit < 0 || limit > maxMessage/2 {
		limit = maxMessage / 2
	}
	number, _ := json.Marshal(min(limit, math.MaxInt32))
	var r struct {
		Result struct {
			Value struct {
				DOM string `json:"dom"`
				Cut bool   `json:"cut"`
			} `json:"value"`
		} `json:"result"`
		ExceptionDetails *struct {
			Text string `json:"text"`
		} `json:"exceptionDetails"`
	}
	err := t.call(ctx, "Runtime.evaluate", obj{
		"expression": strings.ReplaceAll(snapshotScript, "LIMIT", string(number)), "contextId": world.ExecutionContextID, "returnByValue": true,
	}, &r)
	if err != nil {
		return err
	}
	if r.ExceptionDetails != nil {
		return pageFault("DOM: " + r.ExceptionDetails.Text)
	}
	out.dom, out.cut = []byte(r.Result.Value.DOM), r.Result.Value.Cut
	if int64(len(out.dom)) > limit {
		out.dom, out.cut = out.dom[:limit], true
	}
	var picture struct {
		Data []byte `json:"data"`
	}
	if t.pool.o.Screenshot != nil {
		if err := t.call(ctx, "Page.captureScreenshot", obj{"format": "png"}, &picture); err != nil {
			return err
		}
		out.screenshot, picture.Data = picture.Data, nil
	}
	if t.pool.o.PDF != nil {
		if err := t.call(ctx, "Page.printToPDF", obj{"printBackground": true}, &picture); err != nil {
			return err
		}
		out.pdf = picture.Data
	}
	return nil
}
