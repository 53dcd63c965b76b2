package expression

import (
	"encoding/hex"
	"strings"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
)

// names are the names that an expression may use.
type names[T any] struct {
	fixed map[string]variable[T]
	// other finds any other name; nil if there are no others.
	other func(in T, name string) any
}

// variable is a name that always has a value.
type variable[T any] struct {
	kind kind
	get  func(T) any
}

// caseOf returns the known name that differs from name in case only; empty if
// there is none or name is known.
func caseOf[T any](name string, fixed map[string]variable[T], known bool) string {
	if !known {
		for n := range fixed {
			if strings.EqualFold(n, name) {
				return n
			}
		}
	}
	return ""
}

// spelled reports whether an expression means a key by name.
func spelled(key, name string) bool {
	if len(key) != len(name) {
		return false
	}
	for i := range len(key) {
		if c := key[i]; c != name[i] && !(c == '-' && name[i] == '_') {
			return false
		}
	}
	return true
}

func recordNames() names[*crawldb.Datum] {
	type variables = map[string]variable[*crawldb.Datum]
	return names[*crawldb.Datum]{
		fixed: variables{
			"url":          {str, func(d *crawldb.Datum) any { return d.URL }},
			"status":       {str, func(d *crawldb.Datum) any { return d.Status.String() }},
			"fetchTime":    {num, func(d *crawldb.Datum) any { return milliseconds(d.FetchTime) }},
			"modifiedTime": {num, func(d *crawldb.Datum) any { return milliseconds(d.Modified) }},
			"retries":      {num, func(d *crawldb.Datum) any { return int64(d.Retries) }},
			"interval":     {num, func(d *crawldb.Datum) any { return int64(d.Interval.Seconds()) }},
			"score":        {num, func(d *crawldb.Datum) any { return decimal(d.Score) }},
			"signature": {unknown, func(d *crawldb.Datum) any {
				if d.Signature == nil {
					return nil
				}
				return hex.EncodeToString(d.Signature)
			}},
		},
		other: func(d *crawldb.Datum, name string) any {
			var found any
			for k, v := range d.Meta.All() {
				if k == name {
					return text(v)
				}
				if found == nil && spelled(k, name) {
					found = text(v)
				}
			}
			return found
		},
	}
}

func hostNames() names[*hostdb.Host] {
	type variables = map[string]variable[*hostdb.Host]
	return names[*hostdb.Host]{
		fixed: variables{
			"host":               {str, func(h *hostdb.Host) any { return h.Name }},
			"homepage":           {str, func(h *hostdb.Host) any { return h.Homepage }},
			"score":              {num, func(h *hostdb.Host) any { return decimal(h.Score) }},
			"unfetched":          {num, func(h *hostdb.Host) any { return h.Pages.Unfetched }},
			"fetched":            {num, func(h *hostdb.Host) any { return h.Pages.Fetched }},
			"notModified":        {num, func(h *hostdb.Host) any { return h.Pages.NotModified }},
			"redirTemp":          {num, func(h *hostdb.Host) any { return h.Pages.RedirTemp }},
			"redirPerm":          {num, func(h *hostdb.Host) any { return h.Pages.RedirPerm }},
			"redirs":             {num, func(h *hostdb.Host) any { return h.Pages.RedirTemp + h.Pages.RedirPerm }},
			"gone":               {num, func(h *hostdb.Host) any { return h.Pages.Gone }},
			"ok":                 {num, func(h *hostdb.Host) any { return h.Pages.Fetched + h.Pages.NotModified }},
			"numRecords":         {num, func(h *hostdb.Host) any { return numRecords(h.Pages) }},
			"dnsFailures":        {num, func(h *hostdb.Host) any { return h.DNSFailures }},
			"connectionFailures": {num, func(h *hostdb.Host) any { return h.ConnectionFailures }},
			"num.overdue":        {num, func(h *hostdb.Host) any { return h.Overdue }},
		},
		other: func(h *hostdb.Host, name string) any {
			if v, ok := h.Fields[name]; ok {
				return v
			}
			// If two keys have the same spelling, the lesser one counts.
			var found any
			least := ""
			for k, v := range h.Fields {
				if spelled(k, name) && (found == nil || k < least) {
					found, least = v, k
				}
			}
			return found
		},
	}
}

// numRecords is Nutch's count, which leaves out duplicates, orphans and what
// could not be parsed.
func numRecords(p hostdb.Pages) int64 {
	return p.Unfetched + p.Fetched + p.Gone + p.RedirPerm + p.RedirTemp + p.NotModified
}
