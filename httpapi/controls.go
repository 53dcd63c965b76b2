package httpapi

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/recrawl/recrawl/hostdb"
)

// result is what a POST returns.
type result struct {
	Done string `json:"done"` // a word that names what was done
	// Count is how many URLs were accepted; Rejected are those that were not, and why.
	Count    int        `json:"count"`
	Rejected []rejected `json:"rejected,omitempty"`
}

type rejected struct {
	URL   string `json:"url"`
	Error string `json:"error"`
}

// controls are the forms of the page.
type controls struct {
	Allowed []Action `json:"allowed"`
	done    string
	count   string
}

func (c controls) May(a Action) bool { return slices.Contains(c.Allowed, a) }

// Done is the message about what was done.
func (c controls) Done() string {
	n := c.count
	if _, err := strconv.Atoi(n); err != nil {
		n = "0"
	}
	switch c.done {
	case "seeds":
		return n + " new seeds were added."
	case "fetch":
		return n + " URLs are fetched in the next round."
	case "signal":
		return "The signal was taken for " + n + " URLs."
	case "paused":
		return "The host is paused."
	case "resumed":
		return "The host is not paused any more."
	case "reloaded":
		return "Rules were read again, and have changed."
	case "unchanged":
		return "Rules were read again. They have not changed."
	case "dropped":
		return "The consumer was removed."
	}
	return ""
}

func (h *Handler) controls(q *request) (any, error) {
	c := controls{Allowed: []Action{}, done: q.URL.Query().Get("done"), count: q.URL.Query().Get("n")}
	for _, a := range h.o.Guard.Allowed(q.Request) {
		if a != ActionRead {
			c.Allowed = append(c.Allowed, a)
		}
	}
	return c, nil
}

// maxURLs limits the URLs of one POST.
const maxURLs = 10_000

// formURLs returns the URLs of a POST.
func (q *request) formURLs() ([]string, error) {
	var urls []string
	for _, text := range q.form["urls"] {
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); line != "" {
				urls = append(urls, line)
			}
		}
	}
	switch {
	case len(urls) == 0:
		return nil, badRequestf("urls is empty")
	case len(urls) > maxURLs:
		return nil, badRequestf("more than %d URLs", maxURLs)
	}
	return urls, nil
}

func (h *Handler) addSeeds(q *request) (any, error) {
	urls, err := q.formURLs()
	if err != nil {
		return nil, err
	}
	r, err := h.o.Crawler.Inject(q.Context(), urls...)
	if err != nil {
		return nil, err
	}
	done := result{Done: "seeds", Count: r.New}
	for _, bad := range r.Bad {
		done.Rejected = append(done.Rejected, rejected{bad.Seed.URL, bad.Err.Error()})
	}
	if r.New == 0 && len(done.Rejected) > 0 {
		return nil, badRequestf("no seed was added: %s", done.Rejected[0].Error)
	}
	return done, nil
}

func (h *Handler) fetchNow(q *request) (any, error) {
	urls, err := q.formURLs()
	if err != nil {
		return nil, err
	}
	r, err := h.o.Crawler.GenerateFree(q.Context(), func(yield func(string, error) bool) {
		for _, u := range urls {
			if !yield(u, nil) {
				return
			}
		}
	})
	if err != nil {
		return nil, err
	}
	if len(r.Segments) == 0 {
		return nil, badRequestf("the rules of the crawl reject these URLs")
	}
	return result{Done: "fetch", Count: r.Selected}, nil
}

func (h *Handler) signal(q *request) (any, error) {
	urls, err := q.formURLs()
	if err != nil {
		return nil, err
	}
	var at time.Time
	if text := q.form.Get("at"); text != "" {
		if at, err = time.Parse(time.RFC3339, text); err != nil {
			return nil, badRequestf("at is not a time such as 2026-11-27T12:00:00Z: %w", err)
		}
	}
	done := result{Done: "signal"}
	for _, u := range urls {
		if err := h.o.Crawler.Signal(q.Context(), u, at); err == nil {
			done.Count++
		} else if q.Context().Err() != nil {
			return nil, err
		} else {
			done.Rejected = append(done.Rejected, rejected{u, err.Error()})
		}
	}
	if done.Count == 0 {
		return nil, badRequestf("%s", done.Rejected[0].Error)
	}
	return done, h.o.Stores.Crawl.Sync(q.Context())
}

func (h *Handler) pauseHost(q *request) (any, error) {
	minutes := 60
	if text := q.form.Get("minutes"); text != "" {
		var err error
		if minutes, err = strconv.Atoi(text); err != nil || minutes < 0 || minutes > 525600 {
			return nil, badRequestf("minutes is %q, not a whole number from 0 to 525600", text)
		}
	}
	return h.setPause(q, time.Duration(minutes)*time.Minute)
}

func (h *Handler) resumeHost(q *request) (any, error) { return h.setPause(q, 0) }

func (h *Handler) setPause(q *request, pause time.Duration) (any, error) {
	host := q.PathValue("host")
	if host == "" {
		host = q.form.Get("host")
	}
	if strings.Contains(host, "://") {
		host = hostdb.ByHost.Key(host)
	}
	if host == "" {
		return nil, badRequestf("host is empty")
	}
	done := result{Done: "paused"}
	if pause == 0 {
		done.Done = "resumed"
	}
	return done, h.o.Crawler.PauseHost(q.Context(), host, time.Now().Add(pause))
}

func (h *Handler) reloadRules(*request) (any, error) {
	changed, err := h.o.Crawler.ReloadRules()
	if err != nil {
		return nil, badRequest{err}
	}
	if changed {
		return result{Done: "reloaded"}, nil
	}
	return result{Done: "unchanged"}, nil
}

func (h *Handler) dropConsumer(q *request) (any, error) {
	return result{Done: "dropped"}, h.o.Crawler.DropConsumer(q.Context(), q.PathValue("name"))
}
