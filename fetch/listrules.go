package fetch

import (
	"github.com/recrawl/recrawl/urlfilter"
)

// normalized returns a URL of the list as normalized by the rules.
func (l *loop) normalized(url string) (string, error) {
	rules := *l.opts.Rules
	if !l.opts.NormalizeList {
		rules.Normalizers = nil
	}
	if !l.opts.FilterList {
		rules.Filters = nil
	}
	return rules.Apply(urlfilter.AnyScope, url)
}

// acceptListed reports whether a page of the list should be visited as it is. One
// that the rules reject or respell is recorded as skipped, and the new spelling
// queued; seen says that it was visited, or recorded, before this run.
func (l *loop) acceptListed(it item, seen bool) bool {
	if !l.opts.NormalizeList && !l.opts.FilterList || l.opts.Rules == nil {
		return !seen
	}
	url, err := l.normalized(it.URL)
	if err == nil && url == it.URL {
		return !seen
	}
	reason := "its normal form is " + oneLine(url)
	if err != nil {
		reason = "the rules reject it: " + oneLine(err.Error())
	}
	if !seen {
		v := l.skipped(it, &verdict{reason: reason}, 0)
		if err != nil {
			l.report.Filtered++
			l.report.noteRefusal(&it.Datum, &v.visit)
		}
		l.finish(v)
	}
	if err != nil || !l.follower.known[idOf(url)].otherSpelling {
		return false
	}
	l.follower.known[idOf(url)] = position{}
	if !l.visitedBefore.has(url) {
		it.URL, it.unlisted = url, true
		l.queueUnlisted(it)
	}
	return false
}
