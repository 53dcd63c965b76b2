package parsetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/recrawl/recrawl/internal/kit"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/parse"
)

// lines is a parser of a format of its own: each line is a link or a text. It
// keeps every rule.
type lines struct {
	max int
	// bug breaks it: it is called with what was found.
	bug func(ctx context.Context, c *page.Content, out *page.Parsed) error
}

func (l *lines) Parse(ctx context.Context, c *page.Content) (page.Parsed, error) {
	var out page.Parsed
	if err := ctx.Err(); err != nil && l.bug == nil {
		return out, fmt.Errorf("lines: %w", err)
	}
	seen := make(map[string]bool)
	var text []string
	for i, line := range strings.Split(strings.ToValidUTF8(string(c.Body), "?"), "\n") {
		if i%1000 == 999 && l.bug == nil && ctx.Err() != nil {
			out.Truncated = true
			break
		}
		path, ok := strings.CutPrefix(line, "=> ")
		switch {
		case !ok:
			text = append(text, line)
		case seen[path] || strings.ContainsFunc(path, func(r rune) bool { return r < 'a' || r > 'z' }):
		case l.max > 0 && len(out.Outlinks) == l.max:
			out.OutlinksCut++
		default:
			seen[path] = true
			out.Outlinks = append(out.Outlinks, page.Outlink{URL: "http://h.example/" + path})
		}
	}
	out.Text = strings.Join(text, "\n")
	if l.bug != nil {
		if err := l.bug(ctx, c, &out); err != nil {
			return page.Parsed{}, err
		}
		if err := ctx.Err(); err != nil && !out.Truncated {
			return page.Parsed{}, err
		}
	}
	return out, nil
}

func harness(newParser func() parse.Parser) Harness {
	return Harness{
		New: newParser,
		Documents: []page.Content{
			{URL: "http://h.example/x", Type: "text/x-lines", Body: []byte("hello\n=> a\n=> b\nworld\n=> c\n=> a\n")},
			{URL: "http://h.example/y", Type: "text/x-lines", Body: []byte("another\n=> d\n")},
		},
		Limited: func(n int) parse.Parser { return &lines{max: n} },
		Size:    2048,
	}
}

func TestKit(t *testing.T) {
	Run(t, harness(func() parse.Parser { return &lines{} }))
	if err := Check(t.Context(), harness(func() parse.Parser { return &lines{} })); err != nil {
		t.Error(err)
	}
}

func TestKitNeedsItsFields(t *testing.T) {
	h := harness(func() parse.Parser { return &lines{} })
	h.Documents = nil
	if err := Check(t.Context(), h); err == nil {
		t.Error("no documents, no complaint")
	}
	h = harness(nil)
	if err := Check(t.Context(), h); err == nil {
		t.Error("no parser, no complaint")
	}
	h = harness(func() parse.Parser { return &lines{} })
	h.Limited = nil
	if err := Check(t.Context(), h); err != nil {
		t.Error(err)
	}
}

// TestRulesFindFaults runs over parsers with one fault each the rule that must find it.
func TestRulesFindFaults(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	fresh := func(bug func(context.Context, *page.Content, *page.Parsed) error) func() parse.Parser {
		return func() parse.Parser { return &lines{bug: bug} }
	}
	var all []kit.Mutant[Harness]
	for _, m := range []struct {
		name, rule string
		parser     func() parse.Parser
		harness    func(*Harness)
	}{
		{"finds nothing", "it reads its documents", fresh(func(_ context.Context, _ *page.Content, out *page.Parsed) error {
			*out = page.Parsed{}
			return nil
		}), nil},
		{"refuses everything", "it reads its documents", fresh(func(context.Context, *page.Content, *page.Parsed) error {
			return errors.New("no")
		}), nil},
		{"panics on NUL", "it neither panics nor hangs", fresh(func(_ context.Context, c *page.Content, _ *page.Parsed) error {
			if bytes.IndexByte(c.Body, 0) >= 0 {
				panic("NUL")
			}
			return nil
		}), nil},
		{"hangs on an open comment", "it neither panics nor hangs", fresh(func(_ context.Context, c *page.Content, _ *page.Parsed) error {
			if bytes.HasPrefix(c.Body, []byte("<!-- x")) {
				<-release
			}
			return nil
		}), func(h *Harness) { h.Patience = 200 * time.Millisecond }},
		{"relative links", "links are absolute", fresh(func(_ context.Context, _ *page.Content, out *page.Parsed) error {
			out.Outlinks = append(out.Outlinks, page.Outlink{URL: "/x"})
			return nil
		}), nil},
		{"a relative refresh", "links are absolute", fresh(func(_ context.Context, _ *page.Content, out *page.Parsed) error {
			out.Refresh = "x"
			return nil
		}), nil},
		{"links that are no URL", "links are absolute", fresh(func(_ context.Context, _ *page.Content, out *page.Parsed) error {
			out.Outlinks = append(out.Outlinks, page.Outlink{URL: "http://h/%zz"})
			return nil
		}), nil},
		{"links twice", "links are distinct", fresh(func(_ context.Context, _ *page.Content, out *page.Parsed) error {
			out.Outlinks = append(out.Outlinks, out.Outlinks...)
			return nil
		}), nil},
		{"bytes as they came", "strings are UTF-8", fresh(func(_ context.Context, c *page.Content, out *page.Parsed) error {
			out.Text = string(c.Body)
			return nil
		}), nil},
		{"grows", "what it returns is bounded", fresh(func(_ context.Context, c *page.Content, out *page.Parsed) error {
			if len(c.Body) > 1000 {
				out.Text = strings.Repeat("x", boundFixed+boundFactor*len(c.Body)+1)
			}
			return nil
		}), nil},
		{"one too many", "the limit on links holds", fresh(nil), func(h *Harness) {
			h.Limited = func(n int) parse.Parser { return &lines{max: n + 1} }
		}},
		{"cuts in silence", "the limit on links holds", fresh(nil), func(h *Harness) {
			h.Limited = func(n int) parse.Parser {
				return &lines{max: n, bug: func(_ context.Context, _ *page.Content, out *page.Parsed) error {
					out.OutlinksCut = 0
					return nil
				}}
			}
		}},
		{"keeps the last", "the limit on links holds", fresh(nil), func(h *Harness) {
			h.Limited = func(n int) parse.Parser {
				return &lines{bug: func(_ context.Context, _ *page.Content, out *page.Parsed) error {
					out.OutlinksCut = len(out.Outlinks) - n
					out.Outlinks = out.Outlinks[out.OutlinksCut:]
					return nil
				}}
			}
		}},
		{"lower-cases in place", "the content is not changed", fresh(func(_ context.Context, c *page.Content, _ *page.Parsed) error {
			copy(c.Body, bytes.ToLower(c.Body))
			return nil
		}), nil},
		{"corrects the URL", "the content is not changed", fresh(func(_ context.Context, c *page.Content, _ *page.Parsed) error {
			c.URL += "/"
			return nil
		}), nil},
		{"text is the body", "the body is not kept", fresh(func(_ context.Context, c *page.Content, out *page.Parsed) error {
			if n := len(c.Body); n > 0 && n < 100 {
				out.Title = unsafe.String(&c.Body[0], n)
			}
			return nil
		}), nil},
		{"counts its calls", "same content, same result", func() parse.Parser {
			var calls atomic.Int64
			return &lines{bug: func(_ context.Context, _ *page.Content, out *page.Parsed) error {
				out.Title = fmt.Sprint(calls.Add(1))
				return nil
			}}
		}, nil},
		{"fails for good", "an error fails that page only", func() parse.Parser {
			var failed atomic.Bool
			return &lines{bug: func(_ context.Context, c *page.Content, _ *page.Parsed) error {
				if bytes.IndexByte(c.Body, 0) >= 0 {
					failed.Store(true)
				}
				if failed.Load() {
					return errors.New("no more")
				}
				return nil
			}}
		}, nil},
		{"shares its buffer", "it can be used concurrently", func() parse.Parser {
			var mu sync.Mutex
			var buf string
			return &lines{bug: func(_ context.Context, _ *page.Content, out *page.Parsed) error {
				mu.Lock()
				buf = out.Text
				mu.Unlock()
				for range 10 {
					runtime.Gosched()
				}
				mu.Lock()
				out.Text = buf
				mu.Unlock()
				return nil
			}}
		}, nil},
		{"does not look at the context", "a done context is noticed", func() parse.Parser {
			l := &lines{}
			return parserFunc(func(_ context.Context, c *page.Content) (page.Parsed, error) {
				return l.Parse(context.Background(), c)
			})
		}, nil},
		{"looks at the context once", "a context that ends meanwhile is noticed", func() parse.Parser {
			l := &lines{}
			return parserFunc(func(ctx context.Context, c *page.Content) (page.Parsed, error) {
				if err := ctx.Err(); err != nil {
					return page.Parsed{}, err
				}
				return l.Parse(context.Background(), c)
			})
		}, nil},
		{"another error than the context's", "a done context is noticed", func() parse.Parser {
			l := &lines{}
			return parserFunc(func(ctx context.Context, c *page.Content) (page.Parsed, error) {
				out, err := l.Parse(ctx, c)
				if err != nil {
					err = errors.New("stopped")
				}
				return out, err
			})
		}, nil},
	} {
		h := harness(m.parser)
		if m.harness != nil {
			m.harness(&h)
		}
		all = append(all, kit.Mutant[Harness]{Fault: m.name, Rule: m.rule, Harness: h})
	}
	kit.Catch(t, Harness.kit, all, nil)
}

type parserFunc func(context.Context, *page.Content) (page.Parsed, error)

func (f parserFunc) Parse(ctx context.Context, c *page.Content) (page.Parsed, error) {
	return f(ctx, c)
}

func TestCheckNamesTheRule(t *testing.T) {
	err := Check(t.Context(), harness(func() parse.Parser {
		return &lines{bug: func(_ context.Context, _ *page.Content, out *page.Parsed) error {
			out.Outlinks = append(out.Outlinks, page.Outlink{URL: "/x"})
			return nil
		}}
	}))
	var broken *kit.Error
	if !errors.As(err, &broken) || broken.Rule != "links are absolute" || !strings.HasPrefix(err.Error(), `rule "links are absolute" is broken`) {
		t.Errorf("%v", err)
	}
}

func TestHostile(t *testing.T) {
	const size = 10_000
	names := make(map[string][]byte)
	for name, body := range Hostile(size) {
		if _, ok := names[name]; ok {
			t.Errorf("two documents are called %q", name)
		}
		names[name] = body
		if len(body) > size+5000 {
			t.Errorf("%s: %d bytes", name, len(body))
		}
	}
	for name, body := range Hostile(size) {
		if !bytes.Equal(names[name], body) {
			t.Errorf("%s is another document the second time", name)
		}
	}
}
