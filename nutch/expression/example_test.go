package expression_test

import (
	"fmt"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/nutch/expression"
)

// Pages that were fetched before a day, on two hosts, in German or in a language
// that is not known.
func ExampleRecordFilter() {
	where, err := expression.RecordFilter(`status =~ ['db_fetched', 'db_notmodified'] && fetchTime < 2030-01-01T00:00:00Z &&
		url =~ 'https?://(www|shop)\.example\.org/.*' && (lang ?: 'de') == 'de'`)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, d := range []crawldb.Datum{
		{URL: "https://shop.example.org/", Status: crawldb.Fetched},
		{URL: "https://shop.example.org/en", Status: crawldb.Fetched, Meta: crawldb.MetaOf("lang", "en")},
		{URL: "https://example.net/", Status: crawldb.Fetched},
	} {
		ok, err := where(&d)
		fmt.Println(d.URL, ok, err)
	}
	_, err = expression.RecordFilter("score >")
	fmt.Println(err)
	// Output:
	// https://shop.example.org/ true <nil>
	// https://shop.example.org/en false <nil>
	// https://example.net/ false <nil>
	// expression: "score >", column 8: ends too early
}

// Ten times as long a pause as an answer takes, and five seconds where that is
// not known.
func ExampleHostNumber() {
	delay, err := expression.HostNumber("(avg._rs_ ?? 500) * 10")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, h := range []hostdb.Host{{Name: "a.example"}, {Name: "b.example", Fields: map[string]float64{"avg._rs_": 120}}} {
		ms, err := delay(&h)
		fmt.Println(h.Name, ms, err)
	}
	// Output:
	// a.example 5000 <nil>
	// b.example 1200 <nil>
}
