// Package opensearch writes documents to OpenSearch and Elasticsearch by their _bulk interface: an
// [index.Writer] over net/http. It makes the index and its alias, and does not search. Start with
// [Open], and feed it with recrawl's Consumer.Index.
package opensearch

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/recrawl/recrawl/index"
)

var (
	// ErrSuperseded says that another writer was opened for the index later. Only the writer that was
	// opened last changes it, so that a request that is late undoes nothing.
	ErrSuperseded = errors.New("another writer was opened for the index later")
	// ErrRejected says that the server does not take a document, whenever it is sent.
	ErrRejected = errors.New("the server does not take the document")
)

// Options say how an index is written.
type Options struct {
	// Client makes the requests. Nil means one whose requests end after two minutes.
	Client *http.Client
	// Header is sent with each request, such as Authorization: ApiKey. A user and a password are
	// taken from the URL.
	Header http.Header
	// Settings and Mappings are those of a new index. Nil means one shard without replicas, which
	// suits one machine, and fields of index.Document by their JSON names.
	Settings, Mappings json.RawMessage
	// BulkBytes is the size of a request before it is compressed. Zero means 5 MiB.
	BulkBytes int
	// Patience is how long a request, or what the server was too busy for, is tried again while the server is
	// down, full or slow, with pauses from 100 ms to 15 s, or as Retry-After says. Zero means ten minutes, less than
	// zero forever.
	Patience time.Duration
	// OnReject, if not nil, is called for a document that the server does not take, which is then left out.
	// If it is nil, or returns an error, Write or Commit fails.
	OnReject func(url string, err error) error
	// OnRetry, if not nil, is called before each pause.
	OnRetry func(err error, pause time.Duration)
}

// Writer is an index.Lister. Each document has the ID that its URL is, or a hash of a URL of more than
// 512 bytes, and an external version: the number of times that a writer was opened for the index,
// which is kept in the index NAME-writer, and the number of the change. So what is sent again, or
// comes late, changes nothing.
type Writer struct {
	o     Options
	base  string // the URL of the server
	name  string // of the alias
	user  *url.Userinfo
	epoch int64
	seq   int64

	body    bytes.Buffer // lines of a request
	changes []change     // in it
	err     error        // after which the writer cannot be used
}

// change is an action of a request.
type change struct {
	url      string
	from, to int // its lines in the body
}

const (
	epochShift = 40 // bits of a version for the changes of one writer
	maxID      = 512
)

// split divides the address of an index: http://user:password@host:9200/path/name.
func split(address string) (base, name string, user *url.Userinfo, err error) {
	u, err := url.Parse(address)
	if err != nil {
		var parse *url.Error
		if errors.As(err, &parse) { // it has the password
			err = parse.Err
		}
		return "", "", nil, fmt.Errorf("opensearch: the address of the index: %w", err)
	}
	path := strings.TrimRight(u.Path, "/")
	i := strings.LastIndex(path, "/")
	if i < 0 || path[i+1:] == "" || u.Host == "" {
		return "", "", nil, fmt.Errorf("opensearch: %s does not name an index: http://host:9200/name is needed", u.Redacted())
	}
	user, name = u.User, path[i+1:]
	u.User, u.Path, u.RawPath, u.RawQuery = nil, path[:i], "", ""
	return u.String(), name, user, nil
}

// Exists reports whether there is an index at an address, such as http://localhost:9200/pages.
func Exists(ctx context.Context, address string, o Options) (bool, error) {
	w, err := writer(address, o)
	if err != nil {
		return false, err
	}
	status, _, err := w.send(ctx, http.MethodHead, "/"+w.name, nil)
	return status == http.StatusOK, err
}

func writer(address string, o Options) (*Writer, error) {
	base, name, user, err := split(address)
	if o.Client == nil {
		o.Client = &http.Client{Timeout: 2 * time.Minute}
	}
	if o.BulkBytes <= 0 {
		o.BulkBytes = 5 << 20
	}
	if o.Patience == 0 {
		o.Patience = 10 * time.Minute
	}
	return &Writer{o: o, base: base, name: name, user: user}, err
}

// Open returns a writer to the index at an address, such as http://localhost:9200/pages. If there is
// none, it makes the index pages-1 with the alias pages, so that a later one can take its place.
func Open(ctx context.Context, address string, o Options) (*Writer, error) {
	w, err := writer(address, o)
	if err == nil {
		err = w.create(ctx)
	}
	if err == nil {
		err = w.begin(ctx)
	}
	if err != nil {
		return nil, err
	}
	return w, nil
}

const (
	defaultSettings = `{"number_of_shards":1,"number_of_replicas":0,"refresh_interval":"30s"}`
	// A field of a page may look like a date or a number on one page and not on the next, which the server would not take.
	defaultMappings = `{"dynamic_templates":[{"fields":{"path_match":"fields.*","mapping":{"type":"text","fields":{"keyword":{"type":"keyword","ignore_above":8000}}}}}],` +
		`"properties":{"url":{"type":"keyword","ignore_above":8000},"title":{"type":"text"},"text":{"type":"text"},"anchors":{"type":"text"},` +
		`"host":{"type":"keyword"},"content_type":{"type":"keyword"},"fetched":{"type":"date"},"modified":{"type":"date"},"signature":{"type":"keyword"},` +
		`"score":{"type":"float"},"boost":{"type":"float"},"noarchive":{"type":"boolean"},"unavailable_after":{"type":"date"},"usage":{"type":"keyword"},"segment":{"type":"keyword"},` +
		`"binary_content":{"type":"binary"},"charset":{"type":"keyword"},"fields":{"type":"object"}}}`
)

func (w *Writer) create(ctx context.Context) error {
	status, _, err := w.send(ctx, http.MethodHead, "/"+w.name, nil)
	if err != nil || status == http.StatusOK {
		return err
	}
	body := map[string]any{
		"settings": json.RawMessage(defaultSettings), "mappings": json.RawMessage(defaultMappings), "aliases": map[string]any{w.name: struct{}{}},
	}
	if w.o.Settings != nil {
		body["settings"] = w.o.Settings
	}
	if w.o.Mappings != nil {
		body["mappings"] = w.o.Mappings
	}
	text, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("opensearch: settings of %s: %w", w.name, err)
	}
	status, answer, err := w.send(ctx, http.MethodPut, "/"+w.name+"-1", text)
	if err != nil || status == http.StatusOK || bytes.Contains(answer, []byte("resource_already_exists_exception")) {
		return err
	}
	return w.refused("create "+w.name+"-1", status, answer)
}

// begin takes the next epoch: the server counts the versions of a document.
func (w *Writer) begin(ctx context.Context) error {
	status, answer, err := w.send(ctx, http.MethodPut, "/"+w.name+"-writer/_doc/epoch", []byte(`{"writer":"recrawl"}`))
	if err != nil {
		return err
	}
	var doc struct {
		Version int64 `json:"_version"`
	}
	if err := json.Unmarshal(answer, &doc); status/100 != 2 || err != nil || doc.Version < 1 {
		return w.refused("open "+w.name, status, answer)
	}
	w.epoch = doc.Version
	return nil
}

func (w *Writer) refused(what string, status int, answer []byte) error {
	return fmt.Errorf("opensearch: %s: status %d: %.300s", what, status, answer)
}

// id returns the ID of the document of a URL.
func id(url string) string {
	if len(url) <= maxID {
		return url
	}
	sum := sha256.Sum256([]byte(url))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// action is the first line of a change.
type action struct {
	ID      string `json:"_id"`
	Version int64  `json:"version"`
	Type    string `json:"version_type"`
}

// Write adds or replaces the document of a URL. The document may be sent before Commit.
func (w *Writer) Write(ctx context.Context, d *index.Document) error {
	return w.add(ctx, d.URL, "index", func() error {
		// JSONL makes what JSON cannot represent representable.
		out := index.NewJSONL(&w.body)
		if err := out.Write(ctx, d); err != nil {
			return err
		}
		return out.Commit(ctx)
	})
}

// Delete removes the document of a URL, if there is one.
func (w *Writer) Delete(ctx context.Context, url string) error {
	return w.add(ctx, url, "delete", func() error { return nil })
}

func (w *Writer) add(ctx context.Context, url, op string, source func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if w.err != nil {
		return w.err
	}
	from := w.body.Len()
	line, err := json.Marshal(map[string]action{op: {id(url), w.epoch<<epochShift | (w.seq + 1), "external_gte"}})
	if err == nil {
		w.body.Write(line)
		w.body.WriteByte('\n')
		err = source()
	}
	if err != nil {
		w.body.Truncate(from)
		return fmt.Errorf("opensearch: %s %s: %w", op, url, err)
	}
	w.seq++
	w.changes = append(w.changes, change{url, from, w.body.Len()})
	if w.body.Len() >= w.o.BulkBytes {
		return w.flush(ctx)
	}
	return nil
}

// Commit sends what is left, and makes all of it visible. The server has synced it by then, unless
// the settings of the index say otherwise.
func (w *Writer) Commit(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if w.err != nil {
		return w.err
	}
	if err := w.flush(ctx); err != nil {
		return err
	}
	status, answer, err := w.send(ctx, http.MethodPost, "/"+w.name+"/_refresh", nil)
	if err == nil && status/100 != 2 {
		err = w.refused("refresh "+w.name, status, answer)
	}
	return err
}

// Close ends the writer. What was not committed may not be in the index.
func (w *Writer) Close() error {
	w.err = errors.New("opensearch: the writer is closed")
	w.o.Client.CloseIdleConnections()
	return nil
}

// result is what a _bulk answer says of one change.
type result struct {
	Status int `json:"status"`
	Error  *struct {
		Type   string `json:"type"`
		Reason string `json:"reason"`
	} `json:"error"`
}

// busy reports whether the change may succeed later: the queue of the server is full, or its disk, or a
// shard is not there yet.
func (r *result) busy() bool {
	switch r.Status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return r.Error != nil && (r.Error.Type == "cluster_block_exception" || strings.Contains(r.Error.Type, "rejected_execution"))
}

// flush sends the changes, and those again that the server was too busy for. An error other than
// ctx's leaves nothing to send.
func (w *Writer) flush(ctx context.Context) error {
	defer func() {
		if cap(w.body.Bytes()) > 4*w.o.BulkBytes {
			w.body = bytes.Buffer{}
		}
	}()
	w.changes = lastOfEachURL(w.changes)
	wait := w.backoff()
	for len(w.changes) > 0 {
		left, busy, err := w.bulk(ctx, w.changes)
		if err != nil {
			if ctx.Err() == nil {
				w.err = err
			}
			return err
		}
		w.changes = left
		if busy == nil {
			break
		}
		if err := wait(ctx, busy, 0); err != nil {
			return err
		}
	}
	w.body.Reset()
	w.changes = w.changes[:0]
	return nil
}

// lastOfEachURL removes the changes that another one of the same URL follows: if only the first was sent again, it
// would seem to be from another writer.
func lastOfEachURL(changes []change) []change {
	last := make(map[string]int, len(changes))
	for _, c := range changes {
		last[c.url] = c.from
	}
	return slices.DeleteFunc(changes, func(c change) bool { return c.from != last[c.url] })
}

// bulk sends changes in one request, in halves if it is too large for the server. It returns the changes that
// the server was too busy for, and why.
func (w *Writer) bulk(ctx context.Context, changes []change) (left []change, busy, err error) {
	var body bytes.Buffer
	for _, c := range changes {
		body.Write(w.body.Bytes()[c.from:c.to])
	}
	status, answer, err := w.send(ctx, http.MethodPost, "/"+w.name+"/_bulk?require_alias=true", body.Bytes())
	switch {
	case err != nil:
		return nil, nil, err
	case status == http.StatusRequestEntityTooLarge && len(changes) > 1:
		half := len(changes) / 2
		for _, part := range [][]change{changes[:half], changes[half:]} {
			l, b, err := w.bulk(ctx, part)
			if err != nil {
				return nil, nil, err
			}
			if left = append(left, l...); b != nil {
				busy = b
			}
		}
		return left, busy, nil
	case status == http.StatusRequestEntityTooLarge:
		return nil, nil, w.reject(changes[0].url, w.refused("write "+changes[0].url, status, answer))
	case status/100 != 2:
		return nil, nil, w.refused("write to "+w.name, status, answer)
	}
	var all struct {
		Items []map[string]result `json:"items"`
	}
	if err := json.Unmarshal(answer, &all); err != nil || len(all.Items) != len(changes) {
		return nil, nil, fmt.Errorf("opensearch: answer of _bulk: %d items for %d changes, %w", len(all.Items), len(changes), err)
	}
	for i, item := range all.Items {
		for op, r := range item {
			switch {
			case r.Status/100 == 2, op == "delete" && r.Status == http.StatusNotFound && r.Error == nil:
			case r.Status == http.StatusConflict:
				return nil, nil, fmt.Errorf("opensearch: %s %s: %w", op, changes[i].url, ErrSuperseded)
			case r.busy():
				left = append(left, changes[i])
				busy = fmt.Errorf("opensearch: %s %s: status %d: %s", op, changes[i].url, r.Status, reason(&r))
			case r.Error != nil && strings.Contains(r.Error.Type, "index_not_found"):
				return nil, nil, fmt.Errorf("opensearch: the index %s was removed: %s", w.name, reason(&r))
			default:
				if err := w.reject(changes[i].url, fmt.Errorf("opensearch: %s %s: %w: status %d: %s", op, changes[i].url, ErrRejected, r.Status, reason(&r))); err != nil {
					return nil, nil, err
				}
			}
		}
	}
	return left, busy, nil
}

func reason(r *result) string {
	if r.Error == nil {
		return ""
	}
	return fmt.Sprintf("%s: %.300s", r.Error.Type, r.Error.Reason)
}

func (w *Writer) reject(url string, err error) error {
	if w.o.OnReject == nil {
		return err
	}
	return w.o.OnReject(url, err)
}

// URLs yields the URLs of all documents, in their order.
func (w *Writer) URLs(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		const size = 5000
		after := ""
		for {
			query := fmt.Sprintf(`{"size":%d,"_source":["url"],"sort":[{"url":"asc"}],"query":{"exists":{"field":"url"}}%s}`, size, after)
			status, answer, err := w.send(ctx, http.MethodPost, "/"+w.name+"/_search", []byte(query))
			if err == nil && status/100 != 2 {
				err = w.refused("list "+w.name, status, answer)
			}
			var found struct {
				Hits struct {
					Hits []struct {
						Source struct{ URL string } `json:"_source"`
						Sort   json.RawMessage      `json:"sort"`
					} `json:"hits"`
				} `json:"hits"`
			}
			if err == nil {
				err = json.Unmarshal(answer, &found)
			}
			if err != nil {
				yield("", fmt.Errorf("opensearch: list %s: %w", w.name, err))
				return
			}
			for i := range found.Hits.Hits {
				if !yield(found.Hits.Hits[i].Source.URL, nil) {
					return
				}
			}
			if len(found.Hits.Hits) < size {
				return
			}
			after = `,"search_after":` + string(found.Hits.Hits[size-1].Sort)
		}
	}
}

// send makes a request, and makes it again while the server is down or busy. The status is of an answer that
// a repetition would not change.
func (w *Writer) send(ctx context.Context, method, path string, body []byte) (status int, answer []byte, err error) {
	wait := w.backoff()
	packed, err := pack(body)
	if err != nil {
		return 0, nil, err
	}
	for {
		status, answer, after, err := w.once(ctx, method, path, packed)
		if err == nil && !(&result{Status: status}).busy() {
			return status, answer, nil
		}
		if err == nil {
			err = w.refused(method+" "+path, status, answer)
		}
		if err := wait(ctx, err, after); err != nil {
			return 0, nil, err
		}
	}
}

func pack(body []byte) ([]byte, error) {
	if body == nil {
		return nil, nil
	}
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	if _, err = z.Write(body); err == nil {
		err = z.Close()
	}
	return b.Bytes(), err
}

// once makes a request once. after is what Retry-After says.
func (w *Writer) once(ctx context.Context, method, path string, packed []byte) (status int, answer []byte, after time.Duration, err error) {
	var body io.Reader
	if packed != nil {
		body = bytes.NewReader(packed)
	}
	r, err := http.NewRequestWithContext(ctx, method, w.base+path, body)
	if err != nil {
		return 0, nil, 0, fmt.Errorf("opensearch: %w", err)
	}
	for name, values := range w.o.Header {
		r.Header[name] = values
	}
	if w.user != nil {
		password, _ := w.user.Password()
		r.SetBasicAuth(w.user.Username(), password)
	}
	if packed != nil {
		r.Header.Set("Content-Encoding", "gzip")
		r.Header.Set("Content-Type", "application/json")
		if strings.Contains(path, "/_bulk") {
			r.Header.Set("Content-Type", "application/x-ndjson")
		}
	}
	a, err := w.o.Client.Do(r)
	if err != nil {
		return 0, nil, 0, fmt.Errorf("opensearch: %w", err)
	}
	defer a.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(a.Body, maxAnswer))
	if err != nil {
		return 0, nil, 0, fmt.Errorf("opensearch: %s %s: %w", method, path, err)
	}
	if seconds, err := time.ParseDuration(a.Header.Get("Retry-After") + "s"); err == nil {
		after = seconds
	}
	return a.StatusCode, answer, after, nil
}

const maxAnswer = 256 << 20

const (
	firstPause = 100 * time.Millisecond
	lastPause  = 15 * time.Second
)

// backoff returns a function that pauses ever longer, and returns an error once patience has ended.
func (w *Writer) backoff() func(ctx context.Context, why error, after time.Duration) error {
	began, pause := time.Now(), firstPause
	return func(ctx context.Context, why error, after time.Duration) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		p := max(pause, min(after, time.Minute))
		if w.o.Patience >= 0 && time.Since(began)+p > w.o.Patience {
			return why
		}
		if w.o.OnRetry != nil {
			w.o.OnRetry(why, p)
		}
		t := time.NewTimer(p)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		pause = min(2*pause, lastPause)
		return nil
	}
}

var _ index.Lister = (*Writer)(nil)
