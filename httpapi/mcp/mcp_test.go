package mcp

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/recrawl/recrawl/httpapi"
)

// pages answers as httpapi.Handler does. The tests of the command use the tools on a real crawl.
type pages map[string]string

func (p pages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, ok := p[r.Method+" "+r.URL.Path]
	if !ok || r.Header.Get("Accept") != "application/json" {
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"status":404,"error":"there is no such page"}`))
		return
	}
	if r.URL.Path == "/x/search.json" {
		text = strings.ReplaceAll(text, "QUERY", r.URL.Query().Get("q"))
	}
	if r.Method == http.MethodPost {
		text = strings.ReplaceAll(text, "URLS", url.QueryEscape(r.PostFormValue("urls")))
	}
	_, _ = w.Write([]byte(text))
}

func connect(t *testing.T, o Options) *sdk.ClientSession {
	t.Helper()
	c, s := sdk.NewInMemoryTransports()
	server, err := NewServer(o).Connect(t.Context(), s, nil)
	if err != nil {
		t.Fatal(err)
	}
	session, err := sdk.NewClient(&sdk.Implementation{Name: "test"}, nil).Connect(t.Context(), c, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close(); _ = server.Wait() })
	return session
}

func call(t *testing.T, s *sdk.ClientSession, tool string, args map[string]any) (text string, failed bool) {
	t.Helper()
	r, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	for _, c := range r.Content {
		text += c.(*sdk.TextContent).Text
	}
	return text, r.IsError
}

func toolNames(t *testing.T, s *sdk.ClientSession) (names []string) {
	t.Helper()
	for tool, err := range s.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	slices.Sort(names)
	return names
}

func TestTools(t *testing.T) {
	p := pages{
		"GET /x/search.json": `{"query":"QUERY","hits":[]}`,
		"GET /x/url.json":    `{"normal":"https://a.example/","title":"A","text":"äöü and more","text_time":"2026-11-01T00:00:00Z","record":{},"outlinks":[{"url":"https://b.example/"}],"verdict":"Due."}`,
		"POST /x/fetch.json": `{"done":"URLS","count":2}`,
	}
	s := connect(t, Options{Pages: p, Prefix: "/x", Allow: []httpapi.Action{httpapi.ActionFetch}})
	if names := toolNames(t, s); !slices.Equal(names, []string{"crawl_status", "explain_url", "fetch_now", "list_urls", "read_page", "search_pages", "what_changed"}) {
		t.Errorf("%q", names)
	}
	if text, failed := call(t, s, "search_pages", map[string]any{"words": "a&b c"}); failed || !strings.Contains(text, `a\u0026b c`) && !strings.Contains(text, `a&b c`) {
		t.Errorf("%v %s", failed, text)
	}
	var page pageText
	text, _ := call(t, s, "read_page", map[string]any{"url": "https://a.example/", "offset": 1, "length": 5})
	if err := json.Unmarshal([]byte(text), &page); err != nil || page.Text != "öü an" || page.Next != 6 || page.Length != 12 || page.Links != nil {
		t.Errorf("%v %+v", err, page)
	}
	if text, failed := call(t, s, "explain_url", map[string]any{"url": "https://a.example/"}); failed || !strings.Contains(text, "Due.") || strings.Contains(text, "b.example") {
		t.Errorf("%v %s", failed, text)
	}
	if text, failed := call(t, s, "fetch_now", map[string]any{"urls": []string{"https://a.example/", "https://b.example/"}}); failed || !strings.Contains(text, "https%3A%2F%2Fa.example%2F%0Ahttps%3A%2F%2Fb.example%2F") {
		t.Errorf("%v %s", failed, text)
	}
	if text, failed := call(t, s, "crawl_status", nil); !failed || !strings.Contains(text, "there is no such page") {
		t.Errorf("%v %s", failed, text)
	}
}

// Without leave there is no tool that changes anything.
func TestReadOnlyByDefault(t *testing.T) {
	s := connect(t, Options{Pages: pages{}})
	for tool, err := range s.Tools(context.Background(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		if !tool.Annotations.ReadOnlyHint {
			t.Errorf("%s changes something", tool.Name)
		}
	}
}

func TestStreamableHTTP(t *testing.T) {
	server := httptest.NewServer(NewHandler(NewServer(Options{Pages: pages{"GET /index.json": `{"rounds":3}`}})))
	defer server.Close()
	s, err := sdk.NewClient(&sdk.Implementation{Name: "test"}, nil).Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: server.URL}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if text, failed := call(t, s, "crawl_status", nil); failed || text != `{"rounds":3}` {
		t.Errorf("%v %s", failed, text)
	}
	r, _ := http.NewRequest("POST", server.URL, strings.NewReader("{}"))
	r.Header.Set("Origin", "http://evil.example")
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusForbidden {
		t.Errorf("a page of another site: %d", answer.StatusCode)
	}
}
