package generate

import (
	"crypto/md5"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/recrawl/recrawl/internal/frontier"
)

// A site that was divided before divides what comes next as a new one does.
func TestSiteIsDividedAgain(t *testing.T) {
	rnd := rand.New(rand.NewPCG(2, 3))
	hosts := []string{"example.org", "www.example.org", "www12.example.org", "qwerty.example.org"}
	dirs := []string{"", "docs/", "2024/05/", "news/4711/", "a/b/a/", "search"}
	some := func() []string {
		urls := make([]string, 50+rnd.IntN(200))
		for i := range urls {
			urls[i] = "http://" + hosts[rnd.IntN(len(hosts))] + "/" + dirs[rnd.IntN(len(dirs))]
			if rnd.IntN(4) == 0 {
				urls[i] += "?q"
			}
			urls[i] += fmt.Sprint(i)
		}
		return urls
	}
	var a frontier.Account
	for i, u := range some() {
		said := i
		if !strings.Contains(u, "www.") { // which is proven
			said %= 10
		}
		sum := md5.Sum([]byte(fmt.Sprint(said)))
		a.Read(frontier.PartOf(u), sum[:])
	}
	d := &domain{name: "example.org", account: &a}
	for range 20 {
		urls := some()
		divided := func(s *site) []int {
			order, places := make([]int, len(urls)), make([]int, len(urls))
			for i := range places {
				places[i] = i
			}
			s.divide(order, places, func(i int) string { return urls[i] })
			return order
		}
		if got, want := divided(d.site()), divided(plant(&a, d.name)); !slices.Equal(got, want) {
			t.Fatalf("%v, want %v", got, want)
		}
	}
}
