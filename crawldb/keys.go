package crawldb

import (
	"bytes"
	"strings"
)

// Keys does what [AppendKey], [URLOf] and [Datum.UnmarshalBinary] do, for engines
// that pass many records in the order of their keys, or the links of pages: it
// remembers the most recent sites. The zero value is ready to use, by one
// goroutine at a time.
type Keys struct {
	// The last two sites, since a page mostly has links to its own site and
	// others in turns, and which of them is the older one.
	sites       [2]site
	older       int
	key, keyURL []byte // as in site, of the last key
	buf         []byte
	signatures  []byte // of the last records; the contents never change
}

// site is what the URLs and the keys of a site begin with: up to the slash that begins
// the path, and up to the colon after the scheme.
type site struct{ url, key []byte }

// AppendKey appends the [Key] of a URL to dst.
func (k *Keys) AppendKey(dst []byte, url string) []byte {
	for i := range k.sites {
		s := &k.sites[i]
		if n := len(s.url); n > 0 && n <= len(url) && string(s.url) == url[:n] {
			k.older = 1 - i
			return append(append(dst, s.key...), url[n-1:]...)
		}
	}
	n := len(dst)
	dst, at := appendSite(dst, url)
	if at < len(url) && url[at] == '/' && dst[n] != '!' {
		s := &k.sites[k.older]
		k.older = 1 - k.older
		s.url = append(s.url[:0], url[:at+1]...)
		s.key = append(s.key[:0], dst[n:]...)
	}
	return append(dst, url[at:]...)
}

// AppendURL appends the URL whose [Key] is key to dst, or what [URLOf] returns for
// a string that is not a key.
func (k *Keys) AppendURL(dst, key []byte) []byte {
	if len(k.key) == 0 || !bytes.HasPrefix(key, k.key) {
		host := bytes.IndexByte(key, ')')
		scheme := bytes.IndexByte(key[host+1:], ':')
		if host < 0 || scheme < 0 || key[0] == '!' {
			return append(dst, URLOf(string(key))...)
		}
		k.key = append(k.key[:0], key[:host+1+scheme+1]...)
		k.keyURL = append(append(k.keyURL[:0], key[host+1:host+1+scheme]...), "://"...)
		k.keyURL = appendReversedKey(k.keyURL, string(key[:host]))
	}
	dst = append(dst, k.keyURL...)
	rest := key[len(k.key):]
	if len(rest) > 0 && '0' <= rest[0] && rest[0] <= '9' {
		dst = append(dst, ':')
	}
	return append(dst, rest...)
}

// Decode makes *d the record that is kept under a key and encoded as data
// ([Datum.AppendBinary]); neither is retained. Malformed bytes are an error, and
// leave the record with only its URL.
func (k *Keys) Decode(d *Datum, key, data []byte) error {
	*d = Datum{}
	// One copy for all the strings of a record.
	buf := k.AppendURL(k.buf[:0], key)
	n := len(buf)
	buf, t, ok := d.read(buf, data)
	k.buf = buf
	all := string(buf)
	if d.URL = all[:n]; !ok || !d.take(&t, all, n) {
		*d = Datum{URL: strings.Clone(d.URL)}
		return errDatum
	}
	if t.signature != nil {
		d.Signature = k.signature(t.signature)
	}
	return nil
}

// manySignatures is how many bytes of signatures share one block of memory: retaining one
// signature retains no more than that.
const manySignatures = 128

// signature returns a copy of a signature.
func (k *Keys) signature(b []byte) []byte {
	if k.signatures == nil || cap(k.signatures)-len(k.signatures) < len(b) {
		k.signatures = make([]byte, 0, max(manySignatures, len(b)))
	}
	n := len(k.signatures)
	k.signatures = append(k.signatures, b...)
	return k.signatures[n:len(k.signatures):len(k.signatures)]
}
