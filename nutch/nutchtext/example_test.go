package nutchtext_test

import (
	"fmt"
	"time"

	"github.com/recrawl/recrawl/nutch/nutchtext"
)

func ExampleFloat() {
	fmt.Println(nutchtext.Float(1), nutchtext.Float(0.00001), nutchtext.Float(1.0/3), nutchtext.Float(12345678))
	// Output: 1.0 1.0E-5 0.33333334 1.2345678E7
}

func ExampleDate() {
	fmt.Println(nutchtext.Date(time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)))
	fmt.Println(nutchtext.Date(time.Time{}))
	// Output:
	// Mon Jan 05 08:00:00 UTC 2026
	// Thu Jan 01 00:00:00 UTC 1970
}
