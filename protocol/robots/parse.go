package robots

import (
	"bytes"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"

	"github.com/recrawl/recrawl/internal/directives"
)

const (
	// MaxBytes is how much of a robots.txt file is read, cut at the end of a
	// line: the least that RFC 9309 section 2.5 demands. A [Cache] can be set
	// to read more.
	MaxBytes = 500 << 10

	// maxLine is how much of a line is read. Google's parser has the same
	// limit: eight times the longest URL of a once common browser.
	maxLine = 8*2083 - 1

	maxCrawlDelay = 24 * time.Hour
)

// Parse reads a robots.txt file for the crawler with the given product tokens,
// usually one ("recrawl"; only the first word of "recrawl/1.0 (+https://...)"
// counts). The groups that name one of the tokens apply, taken together; if
// there are none, those for "*" do. Any bytes are a valid robots.txt file,
// maybe one without rules.
func Parse(body []byte, products ...string) *Rules { return parse(body, products, MaxBytes) }

// parse reads as much of a file as the limit allows.
func parse(body []byte, products []string, limit int) *Rules {
	p := parser{products: directives.Products(products)}
	body = decodeText(body, limit)
	p.html = isHTML(body)
	for len(body) > 0 {
		i := bytes.IndexAny(body, "\r\n")
		if i < 0 {
			p.line(body)
			break
		}
		p.line(body[:i])
		if bytes.HasPrefix(body[i:], []byte("\r\n")) {
			i++
		}
		body = body[i+1:]
	}
	return p.finish()
}

// Two groups matter: that of the products and that for all crawlers ("*").
const (
	ownGroup = iota
	anyGroup
)

type parser struct {
	products   []string
	html       bool
	lineNumber int32 // the line that is read, from 1

	// named says whether the current group is ownGroup or anyGroup, and delays
	// the same for Crawl-delay. They differ because Crawl-delay is no rule: a
	// User-agent line after it continues the group (RFC 9309 section 2.2.4),
	// yet the delay does not apply to those named after it.
	named, delays                [2]bool
	inGroup, inRules, afterDelay bool

	// usages and afterUsage do for usage what delays and afterDelay do for Crawl-delay.
	usages     [2]bool
	afterUsage bool
	usage      [2][]usageRule

	found    bool // a group named a product
	rules    [2][]rule
	delay    [2]time.Duration
	hasDelay [2]bool

	sitemaps []string
	seen     map[string]bool
}

func (p *parser) line(b []byte) {
	p.lineNumber++
	s := string(b[:min(len(b), maxLine)])
	s, _, _ = strings.Cut(s, "#")
	if p.html {
		s = stripTags(s)
	}
	key, value, ok := splitField(s)
	if !ok {
		return
	}
	switch fieldOf(key) {
	case fieldUserAgent:
		p.userAgent(value)
	case fieldAllow:
		p.rule(value, true)
	case fieldDisallow:
		p.rule(value, false)
	case fieldCrawlDelay:
		p.afterDelay = true
		if d, ok := parseDelay(value); ok {
			for i, on := range p.delays {
				if on {
					p.delay[i], p.hasDelay[i] = max(p.delay[i], d), true
				}
			}
		}
	case fieldUsage:
		p.usageLine(value)
	case fieldSitemap:
		value = strings.TrimSpace(value) // no URL holds white space of any kind
		if value == "" || p.seen[value] {
			return
		}
		if p.seen == nil {
			p.seen = make(map[string]bool)
		}
		value = strings.Clone(value)
		p.seen[value] = true
		p.sitemaps = append(p.sitemaps, value)
	}
}

func (p *parser) userAgent(value string) {
	if p.inRules {
		p.named, p.inRules = [2]bool{}, false
		p.afterDelay, p.afterUsage = true, true
	}
	if p.afterDelay {
		p.delays, p.afterDelay = [2]bool{}, false
	}
	if p.afterUsage {
		p.usages, p.afterUsage = [2]bool{}, false
	}
	p.inGroup = true
	for v := range strings.SplitSeq(value, ",") {
		v = trim(v)
		switch {
		case v == "*" || len(v) > 1 && v[0] == '*' && strings.IndexByte(space, v[1]) >= 0:
			p.named[anyGroup], p.delays[anyGroup], p.usages[anyGroup] = true, true, true
		case directives.Names(v, p.products):
			p.named[ownGroup], p.delays[ownGroup], p.usages[ownGroup] = true, true, true
			p.found = true
		}
	}
}

func (p *parser) rule(value string, allow bool) {
	if !p.inGroup {
		return
	}
	p.inRules = true
	if value == "" || p.named == [2]bool{} {
		return
	}
	r := newRule(value, allow)
	r.line = p.lineNumber
	for i, on := range p.named {
		if on {
			p.rules[i] = append(p.rules[i], r)
		}
	}
	if !allow {
		return
	}
	// A server shows "index.html" of a directory for the directory, so a
	// file that allows one means the other. (As Google.)
	dir := strings.LastIndexByte(r.pattern, '/') + 1
	if dir > 0 && strings.HasPrefix(r.pattern[dir:], "index.htm") {
		p.rule(value[:strings.LastIndexByte(value, '/')+1]+"$", true)
	}
}

func (p *parser) finish() *Rules {
	g := anyGroup
	if p.found {
		g = ownGroup
	}
	r := &Rules{
		CrawlDelay:    p.delay[g],
		HasCrawlDelay: p.hasDelay[g],
		Sitemaps:      p.sitemaps,
		usage:         p.usage[g],
	}
	r.rules, r.size = newRuleSet(p.rules[g])
	for i := range r.usage {
		r.size += 100 + len(r.usage[i].pattern)
	}
	for _, s := range r.Sitemaps {
		r.size += 16 + len(s)
	}
	return r
}

// cutAtLimit cuts a file that is longer than the limit at the end of a line.
func cutAtLimit(b []byte, limit int) (kept []byte, cut bool) {
	if len(b) <= limit {
		return b, false
	}
	if isUTF16(b) {
		limit &^= 1
	}
	if endsLine(b, limit) {
		return b[:limit], true
	}
	return completeLines(b[:limit]), true
}

// completeLines returns the lines of a file that have an end.
func completeLines(b []byte) []byte {
	if !isUTF16(b) {
		return b[:bytes.LastIndexAny(b, "\r\n")+1]
	}
	for i := len(b) &^ 1; i > 2; i -= 2 {
		if endsLine(b, i-2) {
			return b[:i]
		}
	}
	return nil
}

// endsLine reports whether a line ends at i, an even index in UTF-16.
func endsLine(b []byte, i int) bool {
	if !isUTF16(b) {
		return b[i] == '\n' || b[i] == '\r'
	}
	if i+1 >= len(b) {
		return false
	}
	hi, lo := b[i], b[i+1]
	if b[0] == 0xFF {
		hi, lo = lo, hi
	}
	return hi == 0 && (lo == '\n' || lo == '\r')
}

// isUTF16 reports whether a file begins with the byte order mark of UTF-16.
func isUTF16(b []byte) bool {
	return len(b) >= 2 && (b[0] == 0xFE && b[1] == 0xFF || b[0] == 0xFF && b[1] == 0xFE)
}

// decodeText returns the part of a file that is read, converted from UTF-16 if
// necessary, without a byte order mark, or what is left of one, and without NUL
// bytes.
func decodeText(b []byte, limit int) []byte {
	b, _ = cutAtLimit(b, limit)
	if isUTF16(b) {
		return fromUTF16(b[2:], int(b[0])&1)
	}
	for _, c := range [...]byte{0xEF, 0xBB, 0xBF} {
		if len(b) == 0 || b[0] != c {
			break
		}
		b = b[1:]
	}
	if bytes.IndexByte(b, 0) >= 0 {
		b = bytes.ReplaceAll(b, []byte{0}, nil)
	}
	return b
}

// fromUTF16 decodes pairs of bytes; the one at index high is the high one.
func fromUTF16(b []byte, high int) []byte {
	u := make([]uint16, 0, len(b)/2)
	for ; len(b) >= 2; b = b[2:] {
		if c := uint16(b[high])<<8 | uint16(b[1-high]); c != 0 {
			u = append(u, c)
		}
	}
	return []byte(string(utf16.Decode(u)))
}

// isHTML reports whether a file is a web page, with or without rules in it.
func isHTML(b []byte) bool {
	for {
		i := bytes.IndexByte(b, '<')
		if i < 0 {
			return false
		}
		b = b[i+1:]
		for _, tag := range [...]string{"html", "head", "body", "!doctype"} {
			if n := len(tag); len(b) > n && strings.EqualFold(string(b[:n]), tag) && (b[n] == '>' || b[n] <= ' ') {
				return true
			}
		}
	}
}

func stripTags(s string) string {
	var b strings.Builder
	for {
		text, rest, ok := strings.Cut(s, "<")
		b.WriteString(text)
		if !ok {
			return b.String()
		}
		_, s, _ = strings.Cut(rest, ">")
	}
}

// splitField splits a line. If the colon was forgotten, white space replaces it,
// provided there are just two words. The colon of a URL is then the first one.
func splitField(s string) (key, value string, ok bool) {
	key, value, ok = strings.Cut(s, ":")
	if last := strings.LastIndexAny(key, space) + 1; !ok || last > 0 && strings.HasPrefix(value, "//") &&
		(strings.EqualFold(key[last:], "http") || strings.EqualFold(key[last:], "https")) {
		f := strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(space, r) })
		if len(f) != 2 {
			return "", "", false
		}
		return f[0], f[1], true
	}
	return trim(key), trim(value), true
}

// space is white space: see directives.Space.
const space = directives.Space

func trim(s string) string { return directives.Trim(s) }

type fieldName uint8

const (
	fieldUnknown fieldName = iota
	fieldUserAgent
	fieldAllow
	fieldDisallow
	fieldCrawlDelay
	fieldSitemap
	fieldUsage
)

// fields are the names of fields and their misspellings, in lower case, as
// known to Google's parser.
var fields = []struct {
	name  string
	field fieldName
}{
	{"user-agent", fieldUserAgent},
	{"useragent", fieldUserAgent},
	{"user agent", fieldUserAgent},
	{"allow", fieldAllow},
	{"disallow", fieldDisallow},
	{"dissallow", fieldDisallow},
	{"dissalow", fieldDisallow},
	{"disalow", fieldDisallow},
	{"diasllow", fieldDisallow},
	{"disallaw", fieldDisallow},
	{"crawl-delay", fieldCrawlDelay},
	{"crawldelay", fieldCrawlDelay},
	{"crawl delay", fieldCrawlDelay},
	{"crawl_delay", fieldCrawlDelay},
	{"sitemap", fieldSitemap},
	{"site-map", fieldSitemap},
	{"content-usage", fieldUsage},
	{"content-signal", fieldUsage},
}

// fieldOf returns what a line is about. As for Google, the name need only begin
// with a known one: "Disallowed" counts too.
func fieldOf(key string) fieldName {
	for _, f := range fields {
		if len(key) >= len(f.name) && strings.EqualFold(key[:len(f.name)], f.name) {
			return f.field
		}
	}
	return fieldUnknown
}

// parseDelay reads seconds: "10", "0.5", "1,5", "10s", "10 seconds". What it
// cannot read is ignored; more than a day counts as a day.
func parseDelay(s string) (time.Duration, bool) {
	s = strings.TrimPrefix(strings.ToLower(strings.TrimSpace(s)), "+")
	i := strings.LastIndexAny(s, "0123456789.") + 1
	switch strings.TrimSpace(s[i:]) {
	case "", "s", "sec", "secs", "second", "seconds":
	default:
		return 0, false
	}
	if strings.IndexAny(s[:i], "0123456789.") != 0 || strings.ContainsAny(s[:i], "_x") {
		return 0, false
	}
	f, err := strconv.ParseFloat(strings.Replace(s[:i], ",", ".", 1), 64)
	// ErrRange comes with a value, which is infinite.
	if err != nil && f == 0 || !(f >= 0) {
		return 0, false
	}
	if f >= maxCrawlDelay.Seconds() {
		return maxCrawlDelay, true
	}
	return time.Duration(f * float64(time.Second)), true
}
