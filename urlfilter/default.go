package urlfilter

import (
	"slices"
	"strings"
)

// Default returns rules for a new crawl: [Basic], which also refuses schemes
// other than http and https, unless [Rules.AllowSchemes] adds some; [SessionIDs]; rejection of files with
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

// AllowSchemes adds schemes, such as "ftp" or "file", to those that each [Basic] among the Normalizers
// accepts, and returns the rules. The crawl also needs a protocol for each of them. Rules without a
// Basic refuse no scheme by a normalizer, and stay as they are.
func (r *Rules) AllowSchemes(schemes ...string) *Rules {
	normalizers := slices.Clone(r.Normalizers)
	for i, n := range normalizers {
		if b, ok := n.(Basic); ok {
			b.Schemes = b.allowed()
			for _, s := range schemes {
				if s = strings.ToLower(s); !slices.Contains(b.Schemes, s) {
					b.Schemes = append(b.Schemes, s)
				}
			}
			normalizers[i] = b
		}
	}
	r.Normalizers = normalizers
	return r
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
