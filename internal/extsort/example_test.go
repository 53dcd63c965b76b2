package extsort_test

import (
	"context"
	"fmt"

	"github.com/recrawl/recrawl/internal/extsort"
)

func Example() {
	s := extsort.New(extsort.Options{MemoryBytes: 1 << 20})
	defer s.Close()
	for _, link := range [][2]string{
		{"com,example)http:/b", "http://one.example/"},
		{"com,example)http:/a", "http://two.example/"},
		{"com,example)http:/a", "http://one.example/"},
	} {
		if err := s.Add([]byte(link[0]), []byte(link[1])); err != nil {
			fmt.Println(err)
			return
		}
	}
	for p, err := range s.Sorted(context.Background()) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s %s\n", p.Key, p.Value)
	}
	// Output:
	// com,example)http:/a http://one.example/
	// com,example)http:/a http://two.example/
	// com,example)http:/b http://one.example/
}
