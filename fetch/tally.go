package fetch

import (
	"math"
	"strings"
	"time"

	"github.com/recrawl/recrawl/protocol"
)

// Causes counts the reasons why pages were not visited or visits failed.
type Causes struct {
	// HostFails counts the pages skipped because their host failed too often
	// (MaxFailures), HostWaits those skipped because they would have had to wait
	// too long (MaxWait, daily limits and hours). (Nutch:
	// above_exception_threshold_total.)
	HostFails, HostWaits int
	// CrawlDelay counts the pages denied because of a Crawl-delay above
	// MaxCrawlDelay. (Nutch: robots_denied_maxcrawldelay_total.)
	CrawlDelay int
	// Failed counts failed visits by the first word of the reason: "dns", "connect",
	// "tls", "timeout", "http", "body" for visits by httpproto; "status" is an answer
	// such as 500, and "other" a reason without such a word. (Nutch:
	// errors_network_total, errors_timeout_total and others.)
	Failed map[string]int
}

// cause is the reason why a page was not visited.
type cause uint8

const (
	noCause cause = iota
	hostFails
	hostWaits
	crawlDelay
)

// maxWords limits how many words for failures are counted separately.
const maxWords = 32

func (c *Causes) count(v *visitResult) {
	switch v.cause {
	case hostFails:
		c.HostFails++
	case hostWaits:
		c.HostWaits++
	case crawlDelay:
		c.CrawlDelay++
	}
	o := &v.visit.Outcome
	if o.Code != protocol.Failed {
		return
	}
	word, _, ok := strings.Cut(o.Reason, ":")
	switch {
	case o.Status >= 400:
		word = "status"
	case !ok || word == "" || strings.Trim(word, "abcdefghijklmnopqrstuvwxyz") != "":
		word = "other"
	}
	if _, known := c.Failed[word]; !known && len(c.Failed) >= maxWords {
		word = "other"
	}
	if c.Failed == nil {
		c.Failed = map[string]int{}
	}
	c.Failed[word]++
}

// Latency says how long the visits took. (Nutch: fetch_latency_count_total,
// _sum_ms, _p50_ms, _p95_ms, _p99_ms.)
type Latency struct {
	// Count is the number of visits, Sum how long they took in total, and Max the
	// longest.
	Count    int
	Sum, Max time.Duration

	buckets []int // by bucket
}

// A bucket is an eighth of a power of two of microseconds wide.
const bucketBits = 3

func bucket(d time.Duration) int {
	us := uint64(max(d.Microseconds(), 0))
	if us < 1<<bucketBits {
		return int(us)
	}
	e := math.Ilogb(float64(us)) - bucketBits
	return e<<bucketBits + int(us>>e)
}

// longest returns the longest time in a bucket.
func longest(b int) time.Duration {
	if b < 1<<bucketBits {
		return time.Duration(b) * time.Microsecond
	}
	e := b>>bucketBits - 1
	return time.Duration((uint64(b&(1<<bucketBits-1)|1<<bucketBits)+1)<<e-1) * time.Microsecond
}

func (l *Latency) add(d time.Duration) {
	l.Count++
	l.Sum += d
	l.Max = max(l.Max, d)
	b := bucket(d)
	for len(l.buckets) <= b {
		l.buckets = append(l.buckets, 0)
	}
	l.buckets[b]++
}

// Quantile returns the time within which the fraction q of the visits, such as
// 0.95, was over. It is at most an eighth too long, and zero if there were no
// visits.
func (l *Latency) Quantile(q float64) time.Duration {
	rest := q * float64(l.Count)
	for b, n := range l.buckets {
		if rest -= float64(n); n > 0 && rest <= 0 {
			return min(longest(b), l.Max)
		}
	}
	return l.Max
}
