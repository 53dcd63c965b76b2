package indextest_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/recrawl/recrawl/index"
	"github.com/recrawl/recrawl/index/indextest"
	"github.com/recrawl/recrawl/internal/kit"
)

// engine is a sound index in memory. Each of its fields is one fault.
type engine struct {
	committed map[string]index.Document
	pending   map[string]*index.Document // nil is a deletion

	losesLast, keepsFirst, dropsSegment, foldsText, refusesBadText, ignoresDelete, deletesPrefix, staysGone, missesDelete,
	refusesEmptyCommit, aliases, changesCaller, ignoresContext, tearsOnReopen, forgetsOnReopen, losesLate bool
	commits int
}

func (e *engine) Write(ctx context.Context, d *index.Document) error {
	if err := ctx.Err(); err != nil && !e.ignoresContext {
		return err
	}
	if e.refusesBadText && strings.ToValidUTF8(d.Title, "") != d.Title {
		return errors.New("bad text")
	}
	_, again := e.pending[d.URL]
	if e.keepsFirst && again || e.staysGone && again {
		return nil
	}
	if e.changesCaller {
		d.Fetched = d.Fetched.UTC()
	}
	own := *d
	if e.aliases {
		e.pending[d.URL] = d
		return nil
	}
	own.Anchors = slices.Clone(d.Anchors)
	if e.dropsSegment {
		own.Segment = ""
	}
	if e.foldsText {
		own.Text = strings.TrimSpace(d.Text)
		own.Title = strings.Join(strings.Fields(d.Title), " ")
	}
	e.pending[d.URL] = &own
	return nil
}

func (e *engine) Delete(ctx context.Context, url string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	_, known := e.committed[url]
	if _, ok := e.pending[url]; e.missesDelete && !ok && !known {
		return errors.New("not found")
	}
	if e.deletesPrefix {
		for other := range e.committed {
			if strings.HasPrefix(other, url) {
				e.pending[other] = nil
			}
		}
	}
	if !e.ignoresDelete {
		e.pending[url] = nil
	}
	return nil
}

func (e *engine) Commit(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if e.refusesEmptyCommit && len(e.pending) == 0 {
		return errors.New("nothing to commit")
	}
	e.commits++
	urls := slices.Sorted(maps.Keys(e.pending))
	if e.losesLast {
		urls = urls[:max(0, len(urls)-1)]
	}
	if e.losesLate && e.commits > 10 {
		urls = nil
	}
	for _, url := range urls {
		if d := e.pending[url]; d != nil {
			e.committed[url] = *d
		} else {
			delete(e.committed, url)
		}
	}
	clear(e.pending)
	return nil
}

// harness opens engines that fault has changed.
func harness(fault func(*engine)) indextest.Harness {
	return indextest.Harness{
		Open: func() (index.Writer, error) {
			e := &engine{committed: map[string]index.Document{}, pending: map[string]*index.Document{}}
			if fault != nil {
				fault(e)
			}
			return e, nil
		},
		Read: func(w index.Writer) (map[string]index.Document, error) { return maps.Clone(w.(*engine).committed), nil },
		Reopen: func(w index.Writer) (index.Writer, error) {
			e := w.(*engine)
			if e.forgetsOnReopen {
				clear(e.committed)
			}
			if e.tearsOnReopen {
				for url, d := range e.pending {
					e.committed[url] = index.Document{URL: url, Title: d.Title[:len(d.Title)/2]}
				}
			}
			clear(e.pending)
			return e, nil
		},
	}
}

func TestSoundWriter(t *testing.T) { indextest.Run(t, harness(nil)) }

// TestRulesFindFaults runs over writers with one fault each the rule that must find it.
func TestRulesFindFaults(t *testing.T) {
	var all []kit.Mutant[indextest.Harness]
	for rule, fault := range map[string]func(*engine){
		"a document is there after Commit":                  func(e *engine) { e.losesLast = true },
		"every field is kept":                               func(e *engine) { e.dropsSegment = true },
		"text is kept unchanged":                            func(e *engine) { e.foldsText = true },
		"text that is not UTF-8 does no harm":               func(e *engine) { e.refusesBadText = true },
		"the last Write of a URL wins":                      func(e *engine) { e.keepsFirst = true },
		"Delete removes the document":                       func(e *engine) { e.ignoresDelete = true },
		"Delete removes no other document":                  func(e *engine) { e.deletesPrefix = true },
		"a document can come back":                          func(e *engine) { e.staysGone = true },
		"Delete of a missing document is no error":          func(e *engine) { e.missesDelete = true },
		"Commit of nothing is no error":                     func(e *engine) { e.refusesEmptyCommit = true },
		"the caller may change the document after Write":    func(e *engine) { e.aliases = true },
		"Write does not change the document":                func(e *engine) { e.changesCaller = true },
		"a done context ends every method":                  func(e *engine) { e.ignoresContext = true },
		"committed documents outlive the writer":            func(e *engine) { e.forgetsOnReopen = true },
		"uncommitted changes are there whole or not at all": func(e *engine) { e.tearsOnReopen = true },
		"random writes and deletions agree with a map":      func(e *engine) { e.losesLate = true },
	} {
		all = append(all, kit.Mutant[indextest.Harness]{Fault: rule, Rule: rule, Harness: harness(fault)})
	}
	kit.Catch(t, indextest.Kit, all, nil)
}

func TestCheck(t *testing.T) {
	if err := indextest.Check(t.Context(), harness(nil)); err != nil {
		t.Errorf("a sound writer: %v", err)
	}
	h := harness(nil)
	h.Reopen = nil
	if err := indextest.Check(t.Context(), h); err != nil {
		t.Errorf("a sound writer that cannot be reopened: %v", err)
	}
	if err := indextest.Check(t.Context(), indextest.Harness{}); err == nil {
		t.Error("an empty harness was passed")
	}
	err := indextest.Check(t.Context(), harness(func(e *engine) { e.dropsSegment = true }))
	var broken *kit.Error
	if !errors.As(err, &broken) || broken.Rule != "every field is kept" || !strings.Contains(err.Error(), "Segment is") {
		t.Errorf("error is %v, want one that names rule and field", err)
	}
}
