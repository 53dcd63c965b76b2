package urlfilter

import "slices"

// Default returns rules for a new crawl: [Basic], which also refuses schemes
// other than http and https; [SessionIDs]; no files of [DefaultSuffixes]; and
// [Traps] against what has no end. Unlike Nutch's stock rules they keep URLs
// that have a query. Each call returns rules of their own to add to, or take from.
func Default() *Rules {
	return &Rules{
		Normalizers: []Normalizer{Basic{}, SessionIDs{}},
		Filters: []Filter{
			NewSuffix(SuffixOptions{Reject: true, IgnoreCase: true, Path: true}, DefaultSuffixes()...),
			Traps{},
		},
	}
}

// DefaultSuffixes returns the endings of paths that [Default] rejects, in lower
// case: those of images, styles, scripts, archives, programs, films and office
// files that Nutch's stock regex-urlfilter.txt skips.
func DefaultSuffixes() []string { return slices.Clone(defaultSuffixes[:]) }

var defaultSuffixes = [...]string{
	".bmp", ".css", ".eps", ".exe", ".gif", ".gz", ".ico", ".jpeg", ".jpg",
	".js", ".mov", ".mpg", ".png", ".ppt", ".rpm", ".sit", ".tgz", ".wmf",
	".xls", ".zip",
}
