package nutchconf

import (
	"math"

	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/signature"
)

// schedule makes the schedule.
func (b *builder) schedule() schedule.FetchSchedule {
	base := schedule.Default{
		DefaultInterval: b.positive("db.fetch.interval.default", b.wholeSeconds("db.fetch.interval.default")),
		MaxInterval:     b.positive("db.fetch.interval.max", b.wholeSeconds("db.fetch.interval.max")),
		NutchCompat:     b.compat(),
	}
	const adaptive = "db.fetch.schedule.adaptive."
	a := schedule.Adaptive{
		Default:     base,
		IncRate:     b.share(adaptive + "inc_rate"),
		DecRate:     b.share(adaptive + "dec_rate"),
		MinInterval: b.seconds(adaptive + "min_interval"),
		AdaptiveMax: b.positive(adaptive+"max_interval", b.seconds(adaptive+"max_interval")),
		SyncRate:    b.share(adaptive + "sync_delta_rate"),
	}
	if a.MinInterval <= 0 {
		a.MinInterval = -1 // none: zero means a minute
	}
	switch {
	case !b.bool(adaptive + "sync_delta"):
		a.SyncRate = -1
	case a.SyncRate < 0:
		// A rate of zero moves no visit, but in Nutch the age of a page still
		// replaces its interval.
		a.SyncRate = math.SmallestNonzeroFloat64
	}
	if most := min(a.AdaptiveMax, a.MaxInterval); b.Corrected && most > 0 && a.MinInterval > most {
		b.fail(adaptive+"min_interval", "%v is longer than the longest interval, %v", a.MinInterval, most)
	}
	name := "db.fetch.schedule.class"
	mimeFile := b.word("db.fetch.schedule.mime.file")
	switch s := b.word(name); class(s) {
	case "DefaultFetchSchedule":
		return &base
	case "AdaptiveFetchSchedule", "MimeAdaptiveFetchSchedule":
		// The name of the file is fixed, and the file is optional.
		if path := b.path("adaptive-host-specific-intervals.txt"); exists(path) {
			a.HostIntervals = readFile(b, name, path, schedule.ParseHostIntervals)
		}
		if class(s) == "AdaptiveFetchSchedule" {
			return &a
		}
		return &schedule.MimeAdaptive{Adaptive: a, Types: readFile(b, "db.fetch.schedule.mime.file", b.path(mimeFile), schedule.ParseMimeRates)}
	default:
		b.fail(name, "unknown schedule %s; known are DefaultFetchSchedule, AdaptiveFetchSchedule and MimeAdaptiveFetchSchedule", s)
		return &base
	}
}

// scoring makes the chain of scoring filters.
func (b *builder) scoring(plugins *plugins) scoring.Filter {
	made := map[string]scoring.Filter{
		"scoring-opic": &scoring.OPIC{
			InternalFactor: float64(b.factor("db.score.link.internal")),
			ExternalFactor: float64(b.factor("db.score.link.external")),
			CountFiltered:  b.bool("db.score.count.filtered"),
			ScorePower:     float64(b.factor("indexer.score.power")),
			NutchCompat:    b.compat(),
		},
		"scoring-depth": b.depth(plugins),
		"scoring-link":  &scoring.LinkAnalysis{Normalize: b.factor("link.analyze.normalize.score"), NutchCompat: b.compat()},
		"scoring-metadata": &scoring.Metadata{
			DB: b.list("scoring.db.md"), Content: b.list("scoring.content.md"), Parse: b.list("scoring.parse.md"),
			NutchCompat: b.compat(),
		},
		"scoring-orphan": &scoring.Orphan{
			GoneAfter:   never(b.wholeSeconds("scoring.orphan.mark.gone.after")),
			OrphanAfter: never(b.wholeSeconds("scoring.orphan.mark.orphan.after")),
			NutchCompat: b.compat(),
		},
		"urlmeta": b.urlmeta(),
	}
	var chain scoring.Chain
	for _, id := range b.ordered("scoring.filter.order", scoringClasses[:], plugins, true) {
		chain = append(chain, made[id])
	}
	if len(chain) == 1 {
		return chain[0]
	}
	return chain
}

// urlmeta makes the filter of the plugin urlmeta.
func (b *builder) urlmeta() scoring.Filter {
	m := scoring.URLMeta(b.list("urlmeta.tags")...)
	m.NutchCompat = b.compat()
	return &m
}

// depth makes the filter of the plugin scoring-depth.
func (b *builder) depth(plugins *plugins) scoring.Filter {
	d := &scoring.Depth{Max: b.int("scoring.depth.max"), OverrideMax: b.int("scoring.depth.max.override"), NutchCompat: b.compat()}
	if d.OverrideMax == 0 {
		b.note("scoring.depth.max.override", "0 is not supported; the value is 10")
	}
	d.Override = b.pattern("scoring.depth.override.pattern")
	d.BreadthFirst = !plugins.has("scoring-opic") && !plugins.has("scoring-link")
	return d
}

// signature makes the signature.
func (b *builder) signature() signature.Signature {
	const profile = "db.signature.text_profile."
	t := signature.TextProfile{
		MinTokenLen: b.int(profile + "min_token_len"),
		QuantRate:   b.number(profile + "quant_rate"),
		Unsorted:    !b.bool(profile + "sec_sort_lex"),
		NutchCompat: b.compat(),
	}
	if t.MinTokenLen == 0 {
		t.MinTokenLen = -1
	}
	if t.QuantRate == 0 {
		t.QuantRate = -1
	}
	name := "db.signature.class"
	switch s := b.word(name); class(s) {
	case "MD5Signature":
		return signature.MD5{}
	case "TextMD5Signature":
		return signature.TextMD5{NutchCompat: b.compat()}
	case "TextProfileSignature":
		return t
	default:
		b.fail(name, "unknown signature %s; known are MD5Signature, TextMD5Signature and TextProfileSignature", s)
		return signature.MD5{}
	}
}
