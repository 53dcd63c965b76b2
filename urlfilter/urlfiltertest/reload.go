package urlfiltertest

import (
	"errors"
	"fmt"

	"github.com/recrawl/recrawl/urlfilter"
)

func filterExplains(make func() urlfilter.Filter, urls []string) error {
	return explains(make(), urls)
}

func normalizerExplains(make func() urlfilter.Normalizer, urls []string) error {
	return explains(make(), urls)
}

// explains checks that Explain, if there is one, has exactly one answer for any string.
func explains(v any, urls []string) error {
	e, ok := v.(urlfilter.Explainer)
	if !ok {
		return nil
	}
	first := map[string]string{}
	for _, u := range urls {
		if err := guard(u, func() error { first[u] = e.Explain(u); return nil }); err != nil {
			return err
		}
	}
	return together(urls, func(u string) error {
		if got := e.Explain(u); got != first[u] {
			return fmt.Errorf("%.200q: %q at first, %q later", u, first[u], got)
		}
		return nil
	})
}

func explanationsAgree(make func() urlfilter.Filter, urls []string) error {
	f := make()
	e, ok := f.(urlfilter.Explainer)
	if !ok {
		return nil
	}
	type answer struct {
		url      string
		accepted bool
	}
	byRule := map[string]answer{}
	for _, u := range urls {
		rule := e.Explain(u)
		if rule == "" {
			continue
		}
		got := answer{u, f.Accept(u)}
		if before, ok := byRule[rule]; ok && before.accepted != got.accepted {
			return fmt.Errorf("the rule %q decides about %.200q and %.200q, but only one of them is accepted", rule, before.url, u)
		}
		byRule[rule] = got
	}
	return nil
}

// reloaded makes a filter or normalizer to reload, and asks it.
type reloaded struct {
	make   func() any
	answer func(v any, u string) string
}

// eachReloaded calls f for the filter and the normalizer of the harness, with
// the initial content.
func eachReloaded(h Harness, f func(r reloaded) error) error {
	var all []reloaded
	if h.Filter != nil {
		all = append(all, reloaded{
			func() any { return h.Filter() },
			func(v any, u string) string { return fmt.Sprint(v.(urlfilter.Filter).Accept(u)) },
		})
	}
	if h.Normalizer != nil {
		all = append(all, reloaded{
			func() any { return h.Normalizer() },
			func(v any, u string) string {
				form, err := v.(urlfilter.Normalizer).Normalize(urlfilter.Outlink, u)
				return fmt.Sprint(form, " ", err != nil)
			},
		})
	}
	for _, r := range all {
		if err := h.Rewrite(First); err != nil {
			return err
		}
		if err := f(r); err != nil {
			return err
		}
	}
	return nil
}

func (r reloaded) answers(v any, urls []string) map[string]string {
	all := map[string]string{}
	for _, u := range urls {
		all[u] = r.answer(v, u)
	}
	return all
}

// same compares current answers with earlier ones.
func same(before, now map[string]string) error {
	for u, want := range before {
		if now[u] != want {
			return fmt.Errorf("%.200q: got %.200s, want %.200s", u, now[u], want)
		}
	}
	return nil
}

func reload(v any, wantChanged bool) error {
	r, ok := v.(urlfilter.Reloader)
	if !ok {
		return fmt.Errorf("%T is not a Reloader", v)
	}
	changed, err := r.Reload()
	if err == nil && changed != wantChanged {
		err = fmt.Errorf("Reload returned %v, want %v", changed, wantChanged)
	}
	return err
}

func sameIsNoChange(h Harness, urls []string) error {
	return eachReloaded(h, func(r reloaded) error {
		v := r.make()
		before := r.answers(v, urls)
		for range 2 {
			if err := reload(v, false); err != nil {
				return err
			}
			if err := h.Rewrite(First); err != nil { // the same content again
				return err
			}
		}
		return same(before, r.answers(v, urls))
	})
}

func badIsNoChange(h Harness, urls []string) error {
	return eachReloaded(h, func(r reloaded) error {
		v := r.make()
		before := r.answers(v, urls)
		if err := h.Rewrite(Bad); err != nil {
			return err
		}
		for range 2 { // the second time must fail, too
			loader, ok := v.(urlfilter.Reloader)
			if !ok {
				return fmt.Errorf("%T is not a Reloader", v)
			}
			if changed, err := loader.Reload(); err == nil || changed {
				return fmt.Errorf("Reload of bad content returned %v, %v", changed, err)
			}
		}
		if err := same(before, r.answers(v, urls)); err != nil {
			return err
		}
		if err := h.Rewrite(First); err != nil {
			return err
		}
		if err := reload(v, false); err != nil {
			return fmt.Errorf("after the content was repaired: %w", err)
		}
		return same(before, r.answers(v, urls))
	})
}

func reloadedIsNew(h Harness, urls []string) error {
	return eachReloaded(h, func(r reloaded) error {
		v := r.make()
		first := r.answers(v, urls)
		for _, c := range []Content{Other, First} {
			if err := h.Rewrite(c); err != nil {
				return err
			}
			if err := reload(v, true); err != nil {
				return err
			}
			now := r.answers(v, urls)
			if err := same(r.answers(r.make(), urls), now); err != nil {
				return err
			}
			if c == Other && same(first, now) == nil {
				return errors.New("the other rules give the same answers: the harness needs URLs for which they differ")
			}
		}
		return nil
	})
}
