package hoststat_test

import (
	"fmt"
	"testing"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb/hoststat"
	"github.com/recrawl/recrawl/stores/memstore"
)

func BenchmarkRun100kRecords1kHosts(b *testing.B) {
	var records []crawldb.Datum
	for i := range 100_000 {
		records = append(records, page(fmt.Sprintf("https://www.host%04d.example/pages/%05d", i%1000, i),
			"Content-Type", "text/html", "_pst_", "success(1), lastModified=0", "_rs_", fmt.Sprint(i%977), "nutch.protocol.code", "200"))
	}
	crawl := crawlOf(b, records...)
	for b.Loop() {
		run(b, crawl, new(memstore.Hosts), hoststat.Options{})
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100_000, "ns/record")
}
