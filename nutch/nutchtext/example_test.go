package nutchtext_test

import (
	"fmt"

	"github.com/recrawl/recrawl/nutch/nutchtext"
)

func ExampleFloat() {
	fmt.Println(nutchtext.Float(1), nutchtext.Float(0.00001), nutchtext.Float(1.0/3), nutchtext.Float(12345678))
	// Output: 1.0 1.0E-5 0.33333334 1.2345678E7
}
