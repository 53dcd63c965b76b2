package urlfilter

import (
	"errors"
	"fmt"
	"iter"
	"slices"
)

// A Step is what one normalizer or filter made of a URL.
type Step struct {
	// Name describes the normalizer or filter: what its String returns, or its
	// type.
	Name string
	// Filter distinguishes a filter from a normalizer.
	Filter bool
	// In is the URL it was given, Out the result: empty if it refused.
	In, Out string
	// Accepted is false for a filter that rejected or a normalizer that
	// refused, which is the last step.
	Accepted bool
	// Rule is the rule that decided, as named by the [Explainer]; empty if
	// there is none, or none decided.
	Rule string
	// Err says why a normalizer refused, or that the URL is too long.
	Err error
}

// Explain does what Apply does and returns every step. The URL belongs to the
// crawl if the last step is accepted, or if there are no steps; its normal form
// is the Out of the last step.
func (r *Rules) Explain(scope Scope, url string) []Step {
	var steps []Step
	if r.tooLong(url) {
		return []Step{{Name: "length limit", In: url, Err: errTooLong}}
	}
	out, err := walk(r.Normalizers, r.Loops, scope, url, func(i int, n Normalizer, in, out string, err error) {
		if i < len(r.Normalizers) || in != out || err != nil { // of later rounds what counts
			steps = append(steps, Step{Name: describe(n), In: in, Out: out, Accepted: err == nil, Rule: explainIn(n, scope, in), Err: err})
		}
	})
	if err != nil {
		if n := len(steps); steps[n-1].Err == nil {
			steps = append(steps, Step{Name: "loop limit", In: steps[n-1].Out, Err: err})
		}
		return steps
	}
	url = out
	if r.tooLong(url) {
		return append(steps, Step{Name: "length limit", In: url, Err: errTooLong})
	}
	for _, f := range r.Filters {
		s := Step{Name: describe(f), Filter: true, In: url, Rule: explain(f, url), Accepted: f.Accept(url)}
		if s.Accepted {
			s.Out = url
		}
		steps = append(steps, s)
		if !s.Accepted {
			return steps
		}
	}
	return steps
}

// A scopeExplainer is a [Normalizer] whose rules differ by scope.
type scopeExplainer interface {
	// explainScope returns the rule that changes a URL in a scope, as an
	// [Explainer] does.
	explainScope(scope Scope, url string) (rule string)
}

func explainIn(n Normalizer, scope Scope, url string) string {
	if e, ok := n.(scopeExplainer); ok {
		return e.explainScope(scope, url)
	}
	return explain(n, url)
}

func explain(v any, url string) string {
	if e, ok := v.(Explainer); ok {
		return e.Explain(url)
	}
	return ""
}

// Reload reloads every normalizer and filter that is a [Reloader], and reports
// whether any had changed. One that fails keeps its rules, and does not hinder
// the others; the error joins all failures. Reload may be called while the
// rules are in use.
func (r *Rules) Reload() (changed bool, err error) {
	changed, err = reloadAll(slices.Values(r.Normalizers))
	c, err2 := reloadAll(slices.Values(r.Filters))
	return changed || c, errors.Join(err, err2)
}

func reloadAll[T any](all iter.Seq[T]) (changed bool, err error) {
	var errs []error
	for v := range all {
		if v, ok := any(v).(Reloader); ok {
			c, err := v.Reload()
			changed = changed || c
			errs = append(errs, err)
		}
	}
	return changed, errors.Join(errs...)
}

// ruleAt returns the name of a rule: its line number, if it comes from lines,
// and its text. A [filterFile] adds the path.
func ruleAt(line int, text string) string {
	if line == 0 {
		return text
	}
	return fmt.Sprintf("line %d: %s", line, text)
}
