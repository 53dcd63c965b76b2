package opensearch_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// fake is a server in memory, as far as the writer can tell: an http.RoundTripper.
type fake struct {
	mu       sync.Mutex
	made     bool
	settings []byte // with which it was made
	epoch    int64
	docs     map[string]fakeDoc
	most     int                                         // bytes of a request that it takes; zero for any
	answer   func(r *http.Request) (status int, ok bool) // instead of its own
	item     func(id string) (status int, kind string)   // of a change that fails; zero for none
	lost     func() bool                                 // the answer is lost after the request was carried out
	requests int
}

type fakeDoc struct {
	version int64
	source  json.RawMessage
	deleted bool
}

func (f *fake) RoundTrip(r *http.Request) (*http.Response, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	f.requests++
	reply := func(status int, body any) (*http.Response, error) {
		text, _ := json.Marshal(body)
		return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(text)), Request: r}, nil
	}
	if f.answer != nil {
		if status, ok := f.answer(r); ok {
			if status == 0 {
				return nil, io.ErrUnexpectedEOF
			}
			return reply(status, "busy")
		}
	}
	var body []byte
	if r.Body != nil {
		z, err := gzip.NewReader(r.Body)
		if err != nil {
			return nil, err
		}
		body, _ = io.ReadAll(z)
	}
	if f.most > 0 && len(body) > f.most {
		return reply(http.StatusRequestEntityTooLarge, "too large")
	}
	switch path := r.URL.Path; {
	case r.Method == http.MethodHead:
		if !f.made {
			return reply(http.StatusNotFound, nil)
		}
		return reply(http.StatusOK, nil)
	case path == "/pages-1":
		f.made, f.settings, f.docs = true, body, map[string]fakeDoc{}
		return reply(http.StatusOK, nil)
	case path == "/pages-writer/_doc/epoch":
		f.epoch++
		return reply(http.StatusOK, map[string]int64{"_version": f.epoch})
	case path == "/pages/_refresh":
		return reply(http.StatusOK, nil)
	case path == "/pages/_bulk":
		items := f.bulk(body)
		if f.lost != nil && f.lost() {
			return nil, io.ErrUnexpectedEOF
		}
		return reply(http.StatusOK, map[string]any{"items": items})
	case path == "/pages/_search":
		hits := []any{}
		for _, id := range slices.Sorted(maps.Keys(f.docs)) {
			if d := f.docs[id]; !d.deleted {
				hits = append(hits, map[string]any{"_source": d.source})
			}
		}
		return reply(http.StatusOK, map[string]any{"hits": map[string]any{"hits": hits}})
	default:
		return nil, fmt.Errorf("%s %s", r.Method, path)
	}
}

func (f *fake) bulk(body []byte) (items []any) {
	lines := bufio.NewReader(bytes.NewReader(body))
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return items
		}
		var actions map[string]struct {
			ID      string `json:"_id"`
			Version int64  `json:"version"`
		}
		if err := json.Unmarshal(line, &actions); err != nil {
			panic(err)
		}
		for op, a := range actions {
			var source []byte
			if op == "index" {
				source, _ = lines.ReadBytes('\n')
			}
			status, kind := http.StatusOK, ""
			if f.item != nil {
				if s, k := f.item(a.ID); s != 0 {
					status, kind = s, k
				}
			}
			if status == http.StatusOK && f.docs[a.ID].version > a.Version {
				status, kind = http.StatusConflict, "version_conflict_engine_exception"
			}
			item := map[string]any{"status": status}
			if kind != "" {
				item["error"] = map[string]string{"type": kind, "reason": "because"}
			} else {
				f.docs[a.ID] = fakeDoc{a.Version, json.RawMessage(strings.TrimSpace(string(source))), op == "delete"}
			}
			items = append(items, map[string]any{op: item})
		}
	}
}
