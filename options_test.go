package recrawl_test

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/crawldb/dedup"
	"github.com/recrawl/recrawl/protocol/webtest"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/stores/memstore"
)

// Whatever number an option has, a crawl works and comes to an end.
func TestExtremeOptions(t *testing.T) {
	for i, name := range numbers(reflect.TypeFor[recrawl.Options](), "Options") {
		if strings.HasPrefix(name, "Options.HTTP.") { // there is another protocol
			continue
		}
		for word, most := range map[string]bool{"least": false, "greatest": true} {
			t.Run(name+" "+word, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newSetup(&webtest.Web{Hosts: 2, PagesPerHost: 4})
					s.opts.Scoring, s.opts.Dedup = scoring.PageRank{}, &dedup.Options{}
					s.opts.Rounds = 5
					if setNumber(reflect.ValueOf(&s.opts).Elem(), i, most) >= 0 {
						t.Fatal("there is no such option")
					}
					s.run(t, s.web.Seeds()...)
					s.now = s.now.AddDate(0, 0, 40)
					s.run(t)
				})
			})
		}
	}
}

// numbers names the numbers in a struct, those of structs within included.
func numbers(t reflect.Type, path string) (names []string) {
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() {
			continue
		}
		name := path + "." + f.Name
		switch f.Type.Kind() {
		case reflect.Struct:
			names = append(names, numbers(f.Type, name)...)
		case reflect.Int, reflect.Int32, reflect.Int64, reflect.Float32, reflect.Float64:
			names = append(names, name)
		}
	}
	return names
}

// setNumber sets the one at an index to the greatest or the least number there is, and
// returns a number below zero if there is one.
func setNumber(v reflect.Value, n int, most bool) int {
	for i := range v.NumField() {
		f := v.Field(i)
		if !v.Type().Field(i).IsExported() {
			continue
		}
		switch f.Kind() {
		case reflect.Struct:
			if n = setNumber(f, n, most); n < 0 {
				return n
			}
			continue
		case reflect.Int, reflect.Int64:
			if n == 0 {
				f.SetInt(math.MinInt64)
				if most {
					f.SetInt(math.MaxInt64)
				}
			}
		case reflect.Int32:
			if n == 0 {
				f.SetInt(math.MinInt32)
				if most {
					f.SetInt(math.MaxInt32)
				}
			}
		case reflect.Float32, reflect.Float64:
			if n == 0 {
				f.SetFloat(math.NaN())
				if most {
					f.SetFloat(math.Inf(1))
				}
			}
		default:
			continue
		}
		if n--; n < 0 {
			return n
		}
	}
	return n
}

func TestAgentIsAProductToken(t *testing.T) {
	for _, agent := range []string{"my bot", "bot/1.0", "bot\r\nX: y", "bót", "bot."} {
		if c, err := recrawl.New(recrawl.Stores{Crawl: new(memstore.DB).Crawl()}, recrawl.Options{Agent: agent}); err == nil {
			c.Close()
			t.Errorf("agent %q is accepted; no robots.txt can name it", agent)
		}
	}
	c, err := recrawl.New(recrawl.Stores{Crawl: new(memstore.DB).Crawl()}, recrawl.Options{Agent: "My-bot_2"})
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}
