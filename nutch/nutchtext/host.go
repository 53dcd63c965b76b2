package nutchtext

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/recrawl/recrawl/hostdb"
)

// HostHeader returns the line that names the columns of [AppendHost], without a
// newline. (Nutch: hostdb.dump.field.header.)
func HostHeader() string {
	return "hostname\tunfetched\tfetched\tgone\tredirTemp\tredirPerm\tnotModified\tnumRecords\tdnsFail\tcnxFail\tsumFail\tscore\tlastCheck\thomepage\tmetadata"
}

// AppendHost appends the name of a host, a tab, its statistics separated by
// tabs, and a newline, as readhostdb prints them. The number of records leaves
// out duplicate, orphan and parse_failed ones, which Nutch does not count.
// Overdue is the metadata num.overdue, unless it is zero.
func AppendHost(b []byte, h *hostdb.Host) []byte {
	p := &h.Pages
	b = append(b, h.Name...)
	for _, n := range []int64{
		p.Unfetched, p.Fetched, p.Gone, p.RedirTemp, p.RedirPerm, p.NotModified, p.Total() - p.Duplicate - p.Orphan - p.ParseFailed,
		h.DNSFailures, h.ConnectionFailures, h.DNSFailures + h.ConnectionFailures,
	} {
		b = strconv.AppendInt(append(b, '\t'), n, 10)
	}
	b = append(append(b, '\t'), Float(h.Score)...)
	checked := h.LastCheck
	if checked.IsZero() {
		checked = time.UnixMilli(0)
	}
	b = checked.UTC().AppendFormat(append(b, '\t'), "2006-01-02 15:04:05")
	b = append(append(append(b, '\t'), h.Homepage...), '\t')
	var meta []pair
	for _, name := range slices.Sorted(maps.Keys(h.Fields)) {
		meta = append(meta, pair{name, field(name, h.Fields[name])})
	}
	if h.Overdue > 0 {
		meta = append(meta, pair{"num.overdue", strconv.FormatInt(h.Overdue, 10)})
	}
	javaOrder(meta)
	for _, m := range meta {
		b = append(append(append(append(b, m.Name...), ':'), m.Value...), "|||"...)
	}
	return append(b, '\n')
}

// field shows a figure as Nutch's type for it would: what is made of numbers is a
// Float, a count a Long.
func field(name string, v float64) string {
	kind, _, _ := strings.Cut(name, ".")
	number := kind == "min" || kind == "max" || kind == "avg" || strings.HasPrefix(kind, "pct") && kind > "pct" && kind[3] <= '9'
	if whole := int64(v); !number && float64(whole) == v {
		return strconv.FormatInt(whole, 10)
	}
	return Float(float32(v))
}
