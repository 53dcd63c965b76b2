package httpapi

import (
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
)

// Action is something that a request does.
type Action string

// The actions. All but ActionRead change the crawl.
const (
	ActionRead         Action = "read"
	ActionAddSeeds     Action = "add_seeds"
	ActionFetch        Action = "fetch"
	ActionSignal       Action = "signal"
	ActionPauseHost    Action = "pause_host"
	ActionReloadRules  Action = "reload_rules"
	ActionDropConsumer Action = "drop_consumer"
)

// Actions returns all actions.
func Actions() []Action {
	return []Action{ActionRead, ActionAddSeeds, ActionFetch, ActionSignal, ActionPauseHost, ActionReloadRules, ActionDropConsumer}
}

var (
	// ErrUnauthenticated says that a request needs the credentials of a user. It is answered with
	// status 401; browsers then ask for a password.
	ErrUnauthenticated = errors.New("authentication is required")
	// ErrForbidden says that a request is not allowed. It is answered with status 403.
	ErrForbidden = errors.New("not allowed")
)

// Guard decides which requests are answered. Its methods may be called from many goroutines at
// once.
type Guard struct {
	// Hosts are the names, without ports, under which the handler may be requested; "*" stands for all.
	// This refuses DNS rebinding: requests of a page of another site whose name has come to resolve to
	// the address of the handler. Nil means localhost, 127.0.0.1 and ::1.
	Hosts []string
	// Authorize returns an error if a request may not do something: one that is ErrUnauthenticated, or
	// any other. It is also called to find out which controls a page has for a user. Nil allows
	// ActionRead and nothing else.
	Authorize func(r *http.Request, a Action) error
}

// Check returns an error if a request is not to be answered. A request that changes something must
// come from a page of the same origin, or from a program that is no browser.
func (g *Guard) Check(r *http.Request, a Action) error {
	if !g.allowsHost(r.Host) {
		return fmt.Errorf("%w: the handler has no name %q; see Guard.Hosts, or -host of recrawl serve", ErrForbidden, r.Host)
	}
	if a != ActionRead {
		if err := http.NewCrossOriginProtection().Check(r); err != nil {
			return fmt.Errorf("%w: the request is of a page of another site", ErrForbidden)
		}
	}
	return g.authorize(r, a)
}

func (g *Guard) allowsHost(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.ToLower(strings.TrimSuffix(strings.Trim(name, "[]"), "."))
	allowed := g.Hosts
	if allowed == nil {
		allowed = []string{"localhost", "127.0.0.1", "::1"}
	}
	return slices.Contains(allowed, "*") || slices.ContainsFunc(allowed, func(a string) bool { return strings.EqualFold(a, name) })
}

func (g *Guard) authorize(r *http.Request, a Action) error {
	switch {
	case g.Authorize != nil:
		return g.Authorize(r, a)
	case a == ActionRead:
		return nil
	}
	return fmt.Errorf("%w: the handler is read-only", ErrForbidden)
}

// Protect returns a handler that passes the requests that g allows to next. action says what a request
// does, such as [ActionOf] for pages that another process makes.
func (g *Guard) Protect(next http.Handler, action func(*http.Request) Action) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := g.Check(r, action(r))
		if err == nil {
			next.ServeHTTP(w, r)
			return
		}
		secureHeaders(w.Header())
		status := http.StatusForbidden
		if errors.Is(err, ErrUnauthenticated) {
			status = http.StatusUnauthorized
			w.Header().Set("WWW-Authenticate", challenge)
		}
		http.Error(w, err.Error(), status)
	})
}

// Allowed returns the actions that the user of a request may do.
func (g *Guard) Allowed(r *http.Request) (allowed []Action) {
	for _, a := range Actions() {
		if g.authorize(r, a) == nil {
			allowed = append(allowed, a)
		}
	}
	return allowed
}

const challenge = `Basic realm="recrawl", charset="UTF-8"`

// Token returns a Guard.Authorize that allows the given actions, and ActionRead, to requests with a
// token: as a bearer token, or as the password of any user, for which browsers ask.
func Token(token string, allowed ...Action) func(*http.Request, Action) error {
	return func(r *http.Request, a Action) error {
		given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !ok {
			_, given, _ = r.BasicAuth()
		}
		if token == "" || subtle.ConstantTimeCompare([]byte(given), []byte(token)) != 1 {
			return ErrUnauthenticated
		}
		return Allow(allowed...)(r, a)
	}
}

// Allow returns a Guard.Authorize that allows the given actions, and ActionRead, to everyone.
func Allow(allowed ...Action) func(*http.Request, Action) error {
	return func(_ *http.Request, a Action) error {
		if a == ActionRead || slices.Contains(allowed, a) {
			return nil
		}
		return fmt.Errorf("%w: %s", ErrForbidden, a)
	}
}

// secureHeaders makes browsers load nothing but the style sheet and images of the handler, run no
// script at all, and show the pages in no frame.
func secureHeaders(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}
