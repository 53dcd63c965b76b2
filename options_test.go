package recrawl_test

import (
	"context"
	"log/slog"
	"math"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/crawldb/dedup"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/generate"
	"github.com/recrawl/recrawl/parse"
	"github.com/recrawl/recrawl/protocol/robots"
	"github.com/recrawl/recrawl/protocol/webtest"
	"github.com/recrawl/recrawl/schedule"
	"github.com/recrawl/recrawl/scoring"
	"github.com/recrawl/recrawl/signature"
	"github.com/recrawl/recrawl/stores/memstore"
	"github.com/recrawl/recrawl/update"
	"github.com/recrawl/recrawl/urlfilter"
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
					s.opts.Run.Rounds = 5
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

// An option that is set where it has no effect is an error of New, which names both fields.
func TestOptionSetInTwoPlacesIsAnErrorOfNew(t *testing.T) {
	now := time.Now
	lookup := func(context.Context, string) ([]netip.Addr, error) { return nil, nil }
	for want, set := range map[string]func(o *recrawl.Options){
		"HTTP Protocol":                          func(o *recrawl.Options) { o.HTTP.Version = "1" },
		"Robots Fetch.Robots":                    func(o *recrawl.Options) { o.Robots.Deny403, o.Fetch.Robots = true, &robots.Cache{} },
		"Fetch.Robots Fetch.Politeness.NoRobots": func(o *recrawl.Options) { o.Fetch.Robots, o.Fetch.Politeness.NoRobots = &robots.Cache{}, true },
		"Robots Fetch.Politeness.NoRobots":       func(o *recrawl.Options) { o.Robots.Deny403, o.Fetch.Politeness.NoRobots = true, true },
		"EveryVisit OnPage":                      func(o *recrawl.Options) { o.EveryVisit = true },
		"HTTP.Agent Agent":                       func(o *recrawl.Options) { o.Protocol, o.HTTP.Agent = nil, "another" },
		"HTTP.Now Now":                           func(o *recrawl.Options) { o.Protocol, o.HTTP.Now = nil, now },
		"Generate.Hosts Stores.Hosts":            func(o *recrawl.Options) { o.Generate.Hosts = new(memstore.Hosts) },
		"Generate.Known Stores.Crawl":            func(o *recrawl.Options) { o.Generate.Known = new(memstore.DB).Crawl() },
		"Generate.Taken Stores.Crawl": func(o *recrawl.Options) {
			o.Generate.Taken = func(context.Context, string) (bool, error) { return false, nil }
		},
		"Generate.Lists.Lookup Fetch.Politeness.Lookup": func(o *recrawl.Options) { o.Generate.Lists.Lookup = lookup },
		"Generate.Rules Rules":                          func(o *recrawl.Options) { o.Generate.Rules = urlfilter.Default() },
		"Generate.Schedule Schedule":                    func(o *recrawl.Options) { o.Generate.Schedule = schedule.Default{} },
		"Generate.Scoring Scoring":                      func(o *recrawl.Options) { o.Generate.Scoring = scoring.OPIC{} },
		"Generate.Now Now":                              func(o *recrawl.Options) { o.Generate.Now = now },
		"Fetch.Protocol Protocol":                       func(o *recrawl.Options) { o.Fetch.Protocol = o.Protocol },
		"Fetch.Hosts Stores.Hosts":                      func(o *recrawl.Options) { o.Fetch.Hosts = new(memstore.Hosts) },
		"Fetch.Parser Parser":                           func(o *recrawl.Options) { o.Fetch.Parser = parse.Mux{} },
		"Fetch.Rules Rules":                             func(o *recrawl.Options) { o.Fetch.Rules = urlfilter.Default() },
		"Fetch.Scoring Scoring":                         func(o *recrawl.Options) { o.Fetch.Scoring = scoring.OPIC{} },
		"Fetch.Signature Signature":                     func(o *recrawl.Options) { o.Fetch.Signature = signature.MD5{} },
		"Fetch.Now Now":                                 func(o *recrawl.Options) { o.Fetch.Now = now },
		"Fetch.Logger Logger":                           func(o *recrawl.Options) { o.Fetch.Logger = slog.Default() },
		"Update.Hosts Stores.Hosts":                     func(o *recrawl.Options) { o.Update.Hosts = new(memstore.Hosts) },
		"Update.Schedule Schedule":                      func(o *recrawl.Options) { o.Update.Schedule = schedule.Default{} },
		"Update.Scoring Scoring":                        func(o *recrawl.Options) { o.Update.Scoring = scoring.OPIC{} },
		"Update.Now Now":                                func(o *recrawl.Options) { o.Update.Now = now },
		"Update.Sweep.Rules Rules":                      func(o *recrawl.Options) { o.Update.Sweep.Rules = urlfilter.Default() },
		"Update.Sweep.Schedule Schedule":                func(o *recrawl.Options) { o.Update.Sweep.Schedule = schedule.Default{} },
		"Update.Sweep.Scoring Scoring":                  func(o *recrawl.Options) { o.Update.Sweep.Scoring = scoring.OPIC{} },
		"Update.Sweep.Now Now":                          func(o *recrawl.Options) { o.Update.Sweep.Now = now },
		"Rank.Scoring Scoring":                          func(o *recrawl.Options) { o.Rank.Scoring = scoring.OPIC{} },
		"Rank.Schedule Schedule":                        func(o *recrawl.Options) { o.Rank.Schedule = schedule.Default{} },
	} {
		s := newSetup(&webtest.Web{})
		set(&s.opts)
		c, err := recrawl.New(s.stores(), s.opts)
		if err == nil {
			c.Close()
		}
		for field := range strings.FieldsSeq(want) {
			if !strings.HasPrefix(field, "Stores.") {
				field = "Options." + field
			}
			if err == nil || !slices.Contains(strings.Fields(err.Error()), field) {
				t.Errorf("%s: %v does not name %s", want, err, field)
			}
		}
	}
}

// An options struct has at most 25 fields.
func TestOptionsAreFew(t *testing.T) {
	for _, of := range []reflect.Type{reflect.TypeFor[recrawl.Options](), reflect.TypeFor[generate.Options](), reflect.TypeFor[fetch.Options](), reflect.TypeFor[update.Options]()} {
		n := 0
		for i := range of.NumField() {
			if of.Field(i).IsExported() {
				n++
			}
		}
		if n > 25 {
			t.Errorf("%v has %d fields", of, n)
		}
	}
}
