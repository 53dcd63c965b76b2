package webtest

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/protocol"
)

// Protocol returns a protocol that asks the web directly, without a network:
// it waits only for timers and the context, so a crawl of it runs in a
// testing/synctest bubble. URLs outside the web fail as unknown hosts do.
func (w *Web) Protocol() protocol.Protocol { return direct{w} }

type direct struct{ web *Web }

func (d direct) Fetch(ctx context.Context, req protocol.Request) (protocol.Response, error) {
	if err := ctx.Err(); err != nil {
		return protocol.Response{}, err
	}
	begin, now := time.Now(), d.web.now()
	resp := protocol.Response{Content: page.Content{URL: req.URL, Time: now}}
	u, err := url.Parse(req.URL)
	if err != nil {
		resp.Outcome = protocol.Outcome{Code: protocol.Refused, Reason: "not a URL"}
		return resp, nil
	}
	if _, ok := d.web.host(u.Host); !ok || u.Scheme != "http" {
		resp.Outcome = protocol.Outcome{Code: protocol.Failed, Reason: "no such host: " + u.Host}
		return resp, nil
	}
	header := make(http.Header)
	for name, value := range map[string]string{
		"If-None-Match": req.ETag, "If-Modified-Since": req.LastModified, "Accept": req.Accept,
	} {
		if value != "" {
			header.Set(name, value)
		}
	}
	r := (&http.Request{
		Method: http.MethodGet, URL: u, Host: u.Host, Header: header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Body: http.NoBody,
	}).WithContext(ctx)
	rec := recorder{header: make(http.Header)}
	d.web.ServeHTTP(&rec, r)
	if err := ctx.Err(); err != nil {
		return protocol.Response{}, err
	}
	rec.fill(&resp, u)
	limit := req.MaxBytes
	if limit == 0 {
		limit = 1 << 20
	}
	if body := resp.Content.Body; limit >= 0 && int64(len(body)) > limit {
		resp.Content.Body, resp.Content.Truncated = body[:limit:limit], true
	}
	resp.Bytes = int64(rec.body.Len())
	resp.Elapsed = time.Since(begin)
	if resp.Modified.After(now) {
		resp.Modified = now
	}
	return resp, nil
}

// recorder is a ResponseWriter that keeps the answer.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header { return r.header }

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
}

func (r *recorder) Write(p []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	return r.body.Write(p)
}

// fill turns what the web answered into a response. The web gives no answers but
// these.
func (r *recorder) fill(resp *protocol.Response, base *url.URL) {
	r.WriteHeader(http.StatusOK)
	o := protocol.Outcome{Status: r.status}
	switch r.status {
	case http.StatusOK:
		o.Code = protocol.Success
		resp.Content.Body = r.body.Bytes()
		resp.Content.Type = r.header.Get("Content-Type")
	case http.StatusNotModified:
		o.Code = protocol.NotModified
	case http.StatusMovedPermanently, http.StatusFound:
		o.Code = protocol.MovedTemp
		if r.status == http.StatusMovedPermanently {
			o.Code = protocol.MovedPerm
		}
		if u, err := base.Parse(r.header.Get("Location")); err == nil {
			o.Location = u.String()
		}
	case http.StatusNotFound:
		o.Code = protocol.NotFound
	case http.StatusGone:
		o.Code = protocol.Gone
	case http.StatusServiceUnavailable:
		o.Code = protocol.Busy
		if n, err := strconv.Atoi(r.header.Get("Retry-After")); err == nil {
			o.RetryAfter = time.Duration(n) * time.Second
		}
	default:
		o.Code = protocol.Failed
	}
	if o.Code != protocol.Success && o.Code != protocol.NotModified {
		o.Reason = fmt.Sprintf("%d %s", r.status, http.StatusText(r.status))
	}
	resp.Outcome = o
	if o.Code == protocol.Success || o.Code == protocol.NotModified {
		resp.ETag, resp.LastModified = r.header.Get("ETag"), r.header.Get("Last-Modified")
		if t, err := http.ParseTime(resp.LastModified); err == nil {
			resp.Modified = t
		}
	}
}
