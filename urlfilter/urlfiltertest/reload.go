package urlfiltertest

import (
	"fmt"
	"maps"

	"github.com/recrawl/recrawl/urlfilter"
)

// reloaded makes a filter or normalizer to reload, and asks it.
type reloaded struct {
	*check
	make   func() any
	answer func(v any, u string) string
}

// eachReloaded calls f for the filter and the normalizer of the harness, with the
// initial content.
func (k *check) eachReloaded(f func(r reloaded)) {
	k.Need(k.h.Rewrite != nil, "Harness.Rewrite is nil")
	if k.h.Filter != nil {
		k.rewrite(First)
		f(reloaded{k,
			func() any { return k.h.Filter() },
			func(v any, u string) string { return fmt.Sprint(v.(urlfilter.Filter).Accept(u)) },
		})
	}
	if k.h.Normalizer != nil {
		k.rewrite(First)
		f(reloaded{k,
			func() any { return k.h.Normalizer() },
			func(v any, u string) string {
				form, err := v.(urlfilter.Normalizer).Normalize(urlfilter.Outlink, u)
				return fmt.Sprint(form, " ", err != nil)
			},
		})
	}
}

func (k *check) rewrite(c Content) { k.Must(k.h.Rewrite(c), "Harness.Rewrite") }

func (r reloaded) answers(v any) map[string]string {
	all := map[string]string{}
	r.each(func(u string) { all[u] = r.answer(v, u) })
	return all
}

// same demands that current answers are the earlier ones.
func (k *check) same(earlier, now map[string]string) {
	for u, want := range earlier {
		if now[u] != want {
			k.Failf("%.200q: got %.200s, want %.200s", u, now[u], want)
		}
	}
}

func (k *check) reloader(v any) urlfilter.Reloader {
	r, ok := v.(urlfilter.Reloader)
	if !ok {
		k.Failf("%T is not a Reloader", v)
	}
	return r
}

func (k *check) reload(v any, wantChanged bool) {
	changed, err := k.reloader(v).Reload()
	k.Must(err, "Reload")
	if changed != wantChanged {
		k.Failf("Reload returned %v, want %v", changed, wantChanged)
	}
}

func sameIsNoChange(k *check) {
	k.eachReloaded(func(r reloaded) {
		v := r.make()
		first := r.answers(v)
		for range 2 {
			k.reload(v, false)
			k.rewrite(First) // the same content again
		}
		k.same(first, r.answers(v))
	})
}

func badIsNoChange(k *check) {
	k.eachReloaded(func(r reloaded) {
		v := r.make()
		first := r.answers(v)
		k.rewrite(Bad)
		for range 2 { // the second time must fail, too
			if changed, err := k.reloader(v).Reload(); err == nil || changed {
				k.Failf("Reload of bad content returned %v, %v", changed, err)
			}
		}
		k.same(first, r.answers(v))
		k.rewrite(First)
		k.reload(v, false) // the content was repaired
		k.same(first, r.answers(v))
	})
}

func reloadedIsNew(k *check) {
	k.eachReloaded(func(r reloaded) {
		v := r.make()
		first := r.answers(v)
		for _, c := range []Content{Other, First} {
			k.rewrite(c)
			k.reload(v, true)
			now := r.answers(v)
			k.same(r.answers(r.make()), now)
			if c == Other && maps.Equal(first, now) {
				k.Failf("the other rules give the same answers: the harness needs URLs for which they differ")
			}
		}
	})
}
