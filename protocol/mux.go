package protocol

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/recrawl/recrawl/page"
)

// Mux is a Protocol that passes each visit to the protocol for the scheme of
// its URL; keys are schemes in lower case, such as "https". A URL of any other
// scheme, or of none, is Refused.
type Mux map[string]Protocol

// Fetch calls the protocol for the scheme of the URL.
func (m Mux) Fetch(ctx context.Context, req Request) (Response, error) {
	if err := ctx.Err(); err != nil {
		return Response{}, fmt.Errorf("protocol: fetch %q: %w", req.URL, err)
	}
	scheme, _, ok := strings.Cut(req.URL, ":")
	if p := m[strings.ToLower(scheme)]; ok && p != nil {
		return p.Fetch(ctx, req)
	}
	return Response{
		Outcome: Outcome{Code: Refused, Reason: "url: no protocol for its scheme"},
		Content: page.Content{URL: req.URL, Time: time.Now()},
	}, nil
}
