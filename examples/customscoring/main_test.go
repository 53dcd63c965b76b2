package main

import (
	"strings"
	"testing"
)

func TestCustomscoring(t *testing.T) {
	const want = `inject: "http://docs.example.test/": urlfilter: rejected by the ban on docs.example.test
round
  1      http://shop.example.test/
  1      http://news.example.test/
round
  0.5    http://news.example.test/pages/1.html
  0.5    http://shop.example.test/pages/1.html
  0.5    http://shop.example.test/pages/2.html
  0.5    http://shop.example.test/pages/9.html
round
  0.25   http://shop.example.test/pages/3.html
  0.25   http://news.example.test/pages/2.html
  0.25   http://news.example.test/pages/5.html
  0.25   http://shop.example.test/view?id=6
  0.25   http://news.example.test/pages/6.html
round
  0.125  http://news.example.test/pages/3.html
  0.125  http://shop.example.test/pages/4.html
  0.125  http://news.example.test/pages/4.html
  0.125  http://news.example.test/pages/7.html
  0.125  http://news.example.test/pages/8.html
  0.125  http://news.example.test/pages/9.html
round
  0.125  http://shop.example.test/pages/7.html
  0.0625 http://shop.example.test/pages/5.html
  0.0625 http://shop.example.test/view?id=8
`
	var out strings.Builder
	if err := run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}
