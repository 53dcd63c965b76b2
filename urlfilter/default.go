package urlfilter

import "slices"

// Default returns rules for a new crawl: [Basic], which also refuses schemes
// other than http and https; [SessionIDs]; rejection of files with
// [DefaultSuffixes]; and [Traps] against endless sites. Unlike Nutch's stock
// rules they keep URLs that have a query. Each call returns new rules, which
// the caller may change.
func Default() *Rules {
	return &Rules{
		Normalizers: []Normalizer{Basic{}, SessionIDs{}},
		Filters: []Filter{
			NewSuffix(SuffixOptions{Reject: true, IgnoreCase: true, Path: true}, DefaultSuffixes()...),
			Traps{},
		},
	}
}

// DefaultSuffixes returns the path suffixes that [Default] rejects, in lower
// case: those of images, styles, scripts, archives, programs, films and office
// files that Nutch's stock regex-urlfilter.txt skips.
func DefaultSuffixes() []string { return slices.Clone(defaultSuffixes[:]) }

var defaultSuffixes = [...]string{
	".bmp", ".css", ".eps", ".exe", ".gif", ".gz", ".ico", ".jpeg", ".jpg",
	".js", ".mov", ".mpg", ".png", ".ppt", ".rpm", ".sit", ".tgz", ".wmf",
	".xls", ".zip",
}
