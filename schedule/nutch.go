package schedule

import (
	"math"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/recrawl/recrawl/crawldb"
)

// This file is Nutch's arithmetic, oddities included: intervals are 32-bit floats of
// seconds that are rounded half up to 32-bit integers, and times are milliseconds. A
// conversion of a product to its own type rounds it, on every machine: otherwise it
// might be fused with the next operation.

// nutchModified returns the modified time that Nutch passes to its schedules: that of the
// record, since Nutch never learns a Last-Modified. A time that is not after the epoch
// counts as unknown.
func nutchModified(v Visit) (at time.Time, known bool) {
	ms := v.PrevModified.UnixMilli()
	if ms == 0 {
		return time.Time{}, false
	}
	return v.PrevModified, ms > 0
}

func (s Default) nutchFetched(d crawldb.Datum, v Visit) crawldb.Datum {
	d.Retries = 0
	if d.Interval == 0 {
		d.Interval = s.defaultInterval()
	}
	d.FetchTime = v.Time.Add(d.Interval)
	mod, known := nutchModified(v)
	if d.Modified = mod; !known || v.Change == Changed {
		d.Modified = v.Time
	}
	return d
}

func (s Default) nutchGone(d crawldb.Datum, v Visit) crawldb.Datum {
	longer := float32(d.Interval/time.Second) * 1.5
	if most := s.max() / time.Second; longer < float32(most) {
		d.Interval = round32(longer)
	} else {
		d.Interval = round32(float32(most) * 0.9)
	}
	d.FetchTime = v.Time.Add(d.Interval)
	return d
}

func (s Default) nutchClamp(i time.Duration) time.Duration {
	if most := s.max(); i > most {
		return round32(float32(most/time.Second) * 0.9)
	}
	return i
}

func (s Adaptive) nutchFetched(d crawldb.Datum, v Visit, r AdaptiveRates) crawldb.Datum {
	d.Retries = 0
	interval := float32(d.Interval / time.Second)
	if interval == 0 {
		interval = float32(s.defaultInterval() / time.Second)
	}
	fetched := v.Time.UnixMilli()
	ref := fetched
	mod, known := nutchModified(v)

	if fixed, ok := nutchFixed(d); ok {
		interval = fixed
	} else {
		if !known {
			mod = v.Time
		}
		switch v.Change {
		case Changed:
			interval *= 1 - float32(r.Dec)
			mod = v.Time
		case Unchanged:
			interval *= 1 + float32(r.Inc)
		}
		least, most := s.nutchBounds(d.URL)
		if sync := rate(s.SyncRate, 0.3); sync > 0 {
			delta := fetched - mod.UnixMilli()
			if float32(delta) > float32(interval*1000) {
				interval = float32(delta / 1000)
			}
			offset := round64(float64(float64(delta) * float64(float32(sync))))
			limit := int64(most) * 1000
			if delta > 0 && offset > limit {
				offset = offset / delta * limit
			}
			ref -= offset
		}
		if interval < least {
			interval = least
		} else if interval > most {
			interval = most
		}
	}
	d.Interval = round32(interval)
	d.FetchTime = time.UnixMilli(ref + round64(float64(float64(interval)*1000))).UTC()
	d.Modified = mod
	return d
}

// nutchBounds ignores both bounds of a host if one is outside of the general bounds.
func (s Adaptive) nutchBounds(url string) (least, most float32) {
	lo, hi := s.globalBounds()
	least, most = float32(lo.Seconds()), float32(hi.Seconds())
	b, ok := s.HostIntervals[nutchHost(url)]
	if !ok {
		return least, most
	}
	l, m := float32(b.Min.Seconds()), float32(b.Max.Seconds())
	if l == 0 {
		l = least
	}
	if m == 0 {
		m = most
	}
	if l < least || m > most || l > m {
		return least, most
	}
	return l, m
}

// nutchHost returns the host that java.net.URI finds in a URL, in its original case; empty
// if it finds none, as in a URL with a character that RFC 2396 does not allow, or if the
// host is not a host name by that standard, as with an underscore.
func nutchHost(url string) string {
	for i := 0; i < len(url); i++ {
		c := url[i]
		switch {
		case c <= ' ' || c == 0x7f || strings.IndexByte("\"<>\\^`{|}", c) >= 0:
			return ""
		case c == '%' && !(i+2 < len(url) && isHex(url[i+1]) && isHex(url[i+2])):
			return ""
		}
	}
	_, rest, ok := strings.Cut(url, "://")
	if !ok {
		return ""
	}
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		rest = rest[:i]
	}
	rest = rest[strings.LastIndexByte(rest, '@')+1:]
	if strings.HasPrefix(rest, "[") {
		return rest[:strings.IndexByte(rest, ']')+1]
	}
	host, port, _ := strings.Cut(rest, ":")
	if strings.Trim(port, "0123456789") != "" {
		return ""
	}
	if addr, err := netip.ParseAddr(host); err == nil && addr.Is4() {
		return host
	}
	labels := strings.Split(strings.TrimSuffix(host, "."), ".")
	for _, l := range labels {
		if l == "" || l[0] == '-' || l[len(l)-1] == '-' || strings.ContainsFunc(l, func(r rune) bool {
			return r != '-' && (r > 'z' || !isAlpha(byte(r)) && (r < '0' || r > '9'))
		}) {
			return ""
		}
	}
	if !isAlpha(labels[len(labels)-1][0]) {
		return ""
	}
	return host
}

func isAlpha(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func isHex(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f' }

// nutchType returns the media type by which Nutch looks up rates: that of the visit, or
// that in the record up to the ';', neither trimmed nor in lower case.
func nutchType(d *crawldb.Datum, v Visit) string {
	typ := v.ContentType
	if typ == "" {
		typ, _ = d.Meta.Get("Content-Type")
	}
	typ, _, _ = strings.Cut(typ, ";")
	return typ
}

func nutchFixed(d crawldb.Datum) (float32, bool) {
	text, ok := d.Meta.Get(FixedKey)
	if !ok {
		return 0, false
	}
	f, err := strconv.ParseFloat(text, 32)
	return float32(f), err == nil
}

// round32 is Java's Math.round(float), as a number of seconds.
func round32(f float32) time.Duration {
	return time.Duration(max(math.MinInt32, min(round64(float64(f)), math.MaxInt32))) * time.Second
}

// round64 is Java's Math.round(double): half up, saturating.
func round64(f float64) int64 {
	floor := math.Floor(f)
	if f-floor >= 0.5 {
		floor++
	}
	switch {
	case f != f:
		return 0
	case floor >= math.MaxInt64:
		return math.MaxInt64
	case floor <= math.MinInt64:
		return math.MinInt64
	}
	return int64(floor)
}
