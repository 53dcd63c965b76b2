package signature

import (
	"cmp"
	"crypto/md5"
	"fmt"
	"math"
	"slices"
	"strconv"
	"unicode"

	"github.com/recrawl/recrawl/page"
)

// TextProfile is the MD5 of the more frequent words of a page and of about how
// often each occurs. It stays the same when words change place, when rare words
// change, and when a frequent word comes or goes now and then; so a date or a
// counter does not change it. The zero value has Nutch's defaults. (Nutch:
// TextProfileSignature.)
//
// It works like this. A word is a run of letters and decimal digits in lower
// case; those of MinTokenLen characters or fewer are left out. Let m be how
// often the most frequent one occurs. Each count is rounded down to a multiple
// of the quantum, which is m times QuantRate, rounded to an integer, and at
// least 2; or 1 if no word occurs twice. Words whose count becomes 0 are left
// out; the others are sorted by count, then by word unless Unsorted is set.
//
// So in a text where one word occurs twice, every word that occurs once is left
// out: little is left to tell short texts apart.
type TextProfile struct {
	// MinTokenLen is the length in characters up to which words are left out.
	// Zero means 2, a negative number keeps all words. (Nutch:
	// db.signature.text_profile.min_token_len.)
	MinTokenLen int

	// QuantRate is the quantum as a share of the highest count. Zero means 0.01,
	// a negative number the least quantum. (Nutch:
	// db.signature.text_profile.quant_rate.)
	QuantRate float32

	// Unsorted leaves words of equal count in the order of a Java hash table,
	// instead of sorting them. It is for comparing with digests made that way.
	// (Nutch: db.signature.text_profile.sec_sort_lex, the other way round;
	// sorted by default.)
	Unsorted bool

	// NutchCompat gives all texts that have no word left the same sum, the MD5 of
	// nothing, as Nutch does. Without it such a text, say one of short words or of
	// dashes alone, gets its [TextMD5].
	NutchCompat bool
}

// Defaults of a [TextProfile].
const (
	defaultMinTokenLen = 2
	defaultQuantRate   = float32(0.01)
)

func (s TextProfile) params() (minLen int, rate float32) {
	minLen, rate = s.MinTokenLen, s.QuantRate
	if minLen == 0 {
		minLen = defaultMinTokenLen
	}
	if rate == 0 {
		rate = defaultQuantRate
	}
	// This is also true of NaN.
	if !(rate > 0) {
		rate = 0
	}
	return max(minLen, 0), min(rate, math.MaxInt32)
}

// Name is "TextProfile(2,0.01)" for the zero value; ",unsorted" follows the
// numbers with Unsorted, then ",nutch" with NutchCompat.
func (s TextProfile) Name() string {
	minLen, rate := s.params()
	more := ""
	if s.Unsorted {
		more = ",unsorted"
	}
	if s.NutchCompat {
		more += ",nutch"
	}
	return fmt.Sprintf("TextProfile(%d,%s%s)", minLen, strconv.FormatFloat(float64(rate), 'g', -1, 32), more)
}

// Sum returns 16 bytes. A page without text gets its [MD5].
func (s TextProfile) Sum(c *page.Content, p *page.Parsed) []byte {
	if p == nil || p.Text == "" {
		return MD5{}.Sum(c, p)
	}
	minLen, rate := s.params()
	found := words(p.Text, minLen)
	if s.Unsorted {
		hashOrder(found)
	}
	profile := profile(found, rate, !s.Unsorted)
	if len(profile) == 0 && !s.NutchCompat {
		return TextMD5{}.Sum(c, p)
	}
	sum := md5.Sum(profile)
	return sum[:]
}

// word is a word and how often it occurs.
type word struct {
	text  string
	count int
}

// words counts the words of more than minLen characters. A character beyond the
// basic plane is not part of a word: Nutch looks at UTF-16 units, and half a
// character is no letter.
func words(text string, minLen int) []word {
	var found []word
	index := make(map[string]int)
	var token []byte
	length := 0
	end := func() {
		if length > minLen {
			i, ok := index[string(token)]
			if !ok {
				i = len(found)
				found = append(found, word{text: string(token)})
				index[found[i].text] = i
			}
			found[i].count++
		}
		token, length = token[:0], 0
	}
	for _, r := range text {
		switch {
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9':
			token = append(token, byte(r))
			length++
		case 'A' <= r && r <= 'Z':
			token = append(token, byte(r+'a'-'A'))
			length++
		case r >= 0x80 && r < 0x10000 && (unicode.IsLetter(r) || unicode.IsDigit(r)):
			token = append(token, string(unicode.ToLower(r))...)
			length++
		default:
			end()
		}
	}
	end()
	return found
}

// hashOrder sorts words, which are distinct and in order of first occurrence,
// into the order of a java.util.HashMap: by the low bits of a hash, for a table
// that is at most three quarters full.
func hashOrder(words []word) {
	size := 16
	for 4*len(words) > 3*size {
		size *= 2
	}
	bucket := func(w word) uint32 {
		var h uint32
		for _, r := range w.text { // all in the basic plane: a rune is a unit
			h = 31*h + uint32(r)
		}
		return (h ^ h>>16) & uint32(size-1)
	}
	slices.SortStableFunc(words, func(a, b word) int { return cmp.Compare(bucket(a), bucket(b)) })
}

// profile writes the words that are left after rounding, one per line, by
// count; words of equal count in alphabetical order, or in order of arrival.
func profile(words []word, rate float32, sorted bool) []byte {
	most := 0
	for _, w := range words {
		most = max(most, w.count)
	}
	// As in Java: the product is a float, and halves are rounded up.
	quantum := int(min(math.Floor(float64(float32(most)*rate)+0.5), math.MaxInt32))
	if quantum < 2 {
		quantum = min(max(most, 1), 2)
	}
	kept := words[:0]
	for _, w := range words {
		if w.count = w.count / quantum * quantum; w.count > 0 {
			kept = append(kept, w)
		}
	}
	slices.SortStableFunc(kept, func(a, b word) int {
		if c := cmp.Compare(b.count, a.count); c != 0 || !sorted {
			return c
		}
		// UTF-8 sorts the basic plane as UTF-16 does.
		return cmp.Compare(a.text, b.text)
	})
	var out []byte
	for i, w := range kept {
		if i > 0 {
			out = append(out, '\n')
		}
		out = append(append(out, w.text...), ' ')
		out = strconv.AppendInt(out, int64(w.count), 10)
	}
	return out
}
