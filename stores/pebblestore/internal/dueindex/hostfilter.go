package dueindex

import (
	"bytes"

	"github.com/recrawl/recrawl/crawldb"
)

// seekFrom is how many entries of a host that is not wanted are passed before the others are
// skipped.
const seekFrom = 8

// A hostFilter asks whether hosts are wanted, but not again once one is not.
type hostFilter struct {
	group    []byte // of the last key asked about, up to the end of its host
	host     string // of the group, if it may be wanted
	no       bool   // the group is not wanted
	yes      bool   // it is wanted, until the loop continues
	unwanted map[string]struct{}
	steps    int // entries of a host that is not wanted
	keys     crawldb.Keys
	buf      []byte
}

// askAgain lets the next key of a host that was wanted ask whether it still is.
func (f *hostFilter) askAgain() { f.yes = false }

// wants reports whether the host of a key of an index is wanted.
func (f *hostFilter) wants(key []byte, prefix int, want func(string) bool) bool {
	if len(f.group) == 0 || !bytes.HasPrefix(key, f.group) {
		own := key[prefix:]
		end := bytes.IndexByte(own, ')')
		if end < 0 || own[0] == '!' { // only crawldb can find the host
			f.group, f.steps, f.yes = f.group[:0], 0, false
			return want(crawldb.Host(crawldb.URLOf(string(own))))
		}
		f.group, f.steps, f.yes = append(f.group[:0], key[:prefix+end+1]...), 0, false
		if _, f.no = f.unwanted[string(own[:end])]; !f.no {
			f.host = f.hostOf(own, end)
		}
	}
	if f.yes || f.no {
		return f.yes
	}
	if f.yes = want(f.host); f.yes {
		return true
	}
	if f.unwanted == nil {
		f.unwanted = map[string]struct{}{}
	}
	f.no, f.unwanted[string(f.group[prefix:len(f.group)-1])] = true, struct{}{}
	return false
}

// hostOf returns the host of a key, named by its first end bytes.
func (f *hostFilter) hostOf(own []byte, end int) string {
	if path := bytes.IndexByte(own[end:], '/'); path >= 0 {
		own = own[:end+path+1]
	}
	f.buf = f.keys.AppendURL(f.buf[:0], own)
	return crawldb.Host(string(f.buf))
}

// skip returns the first key that can follow those of the host last asked
// about, nil if a single step is as good.
func (f *hostFilter) skip() []byte {
	if f.steps++; f.steps < seekFrom || len(f.group) == 0 {
		return nil
	}
	f.group[len(f.group)-1]++ // no key has this
	next := f.group
	f.group, f.steps = nil, 0
	return next
}
