package warc

import (
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// known remembers the latest captures that have a payload, up to a number of them.
type known struct {
	max int

	mu       sync.Mutex
	byDigest map[string]*knownCapture
	byURL    map[string]*knownCapture
	ring     []*knownCapture // in the order in which they came; next is the oldest of a full ring
	next     int
}

type knownCapture struct {
	url, digest string
	at          time.Time
}

// revisit returns the fields and the block by which a capture is written: as a revisit
// record if it is 304, or if its payload was written before, and otherwise as it is.
func (k *known) revisit(c *capture) (Fields, []byte) {
	profile, sum := "", c.digest
	var earlier *knownCapture
	k.mu.Lock()
	switch {
	case c.kind != TypeResponse:
	case c.status == 304:
		profile, sum = profileNotModified, ""
		if earlier = k.byURL[c.url]; earlier != nil {
			sum = earlier.digest
		}
	case len(c.block) > c.headers:
		if earlier = k.byDigest[c.digest]; earlier != nil {
			profile = profileIdentical
		}
	}
	k.mu.Unlock()

	kind, block := c.kind, c.block
	if profile != "" {
		kind, block = TypeRevisit, c.block[:c.headers]
	}
	fields := Fields{
		{"WARC-Type", kind},
		{"WARC-Record-ID", c.id},
		{"WARC-Date", formatTime(c.at)},
		{"WARC-Target-URI", c.url},
	}
	fields = append(fields, c.fields...)
	if c.kind == TypeResponse && sum != "" {
		fields = append(fields, Field{"WARC-Payload-Digest", sum})
	}
	if profile != "" {
		fields = append(fields, Field{"WARC-Profile", profile})
		c.digest = sum
	}
	if earlier != nil {
		fields = append(fields, Field{"WARC-Refers-To-Target-URI", earlier.url}, Field{"WARC-Refers-To-Date", formatTime(earlier.at)})
	}
	return fields, block
}

// add remembers a capture that was written whole.
func (k *known) add(c *capture) {
	if c.kind == TypeResponse && c.status != 304 && len(c.block) > c.headers {
		k.insert(&knownCapture{url: c.url, digest: c.digest, at: c.at})
	}
}

func (k *known) insert(c *knownCapture) {
	if k.max <= 0 {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.byDigest == nil {
		k.byDigest, k.byURL = map[string]*knownCapture{}, map[string]*knownCapture{}
	}
	if k.byDigest[c.digest] != nil {
		return
	}
	if len(k.ring) < k.max {
		k.ring = append(k.ring, c)
	} else {
		oldest := k.ring[k.next]
		delete(k.byDigest, oldest.digest)
		if k.byURL[oldest.url] == oldest {
			delete(k.byURL, oldest.url)
		}
		k.ring[k.next] = c
		k.next = (k.next + 1) % k.max
	}
	k.byDigest[c.digest], k.byURL[c.url] = c, c
}

// load remembers the latest captures that the CDXJ files of a folder list.
func (k *known) load(dir string) error {
	names, err := filepath.Glob(filepath.Join(escapeGlob(dir), "*.cdxj"))
	if err != nil {
		return fmt.Errorf("warc: %w", err)
	}
	slices.Sort(names) // each prefix in the order of time
	var found []*knownCapture
	for _, name := range slices.Backward(names) {
		if len(found) >= k.max {
			break
		}
		for line, err := range readIndex(name) {
			if err != nil {
				return err
			}
			if line.MIME != revisitMIME && line.Status != "" && line.Digest != "" {
				found = append(found, &knownCapture{url: line.URL, digest: line.Digest, at: line.Time})
			}
		}
	}
	slices.SortFunc(found, func(a, b *knownCapture) int { return a.at.Compare(b.at) })
	for _, c := range found[max(0, len(found)-k.max):] {
		k.insert(c)
	}
	return nil
}
