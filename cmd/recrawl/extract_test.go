package main_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// shop serves one page. Each request gets another advert; the test sets the price and a word of the text.
type shop struct {
	*httptest.Server
	requests atomic.Int32
	price    atomic.Value
	word     atomic.Value
}

func openShop(t *testing.T) *shop {
	s := &shop{}
	s.price.Store("34.90")
	s.word.Store("brushed")
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/kettle" {
			http.NotFound(w, r)
			return
		}
		n := s.requests.Add(1)
		fmt.Fprintf(w, `<html lang=en><title>Kettle | Shop</title><meta name=author content="Ada Writer"><nav>Menu %d</nav><main><h1>Kettle</h1>
<p>A kettle of %s steel for 1.7 litres of water. It switches itself off, and keeps water warm for half an hour.</p>
<div class=ad><p>Advert %d: buy an umbrella, and get another one for nothing, only this week.</p></div>
<h2>Parts</h2><p>The <b>filter</b> at the spout can be taken out for washing, and the cord is stored in the base of the kettle.</p><p class=price>€ %s</p></main>`, n, s.word.Load(), n, s.price.Load())
	}))
	t.Cleanup(s.Close)
	return s
}

func writeRules(t *testing.T) string {
	file := filepath.Join(t.TempDir(), "fields.yaml")
	if err := os.WriteFile(file, []byte("rules:\n- url: '*/kettle'\n  fields:\n    price: {css: .price, as: number}\n    name: {xpath: //h1}\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestMainContentOfAPageIsShownAndIndexed(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	dir := filepath.Join(t.TempDir(), "crawl")
	rules := writeRules(t)
	ok(t, "crawl", "-d", dir, "-agent", "testbot", "-allow-private", "-delay", "0", "-fields", rules, s.URL+"/kettle")
	const want = "A kettle of brushed steel for 1.7 litres of water. It switches itself off, and keeps water warm for half an hour.\n\n## Parts\n\nThe **filter** at the spout"
	md := ok(t, "readseg", "-d", dir, "-markdown")
	for _, part := range []string{"url: \"" + s.URL + "/kettle\"\n", "title: \"Kettle\"\n", "author: \"Ada Writer\"\n", want} {
		if !strings.Contains(md, part) {
			t.Errorf("readseg lacks %q:\n%s", part, md)
		}
	}
	if strings.Contains(md, "Advert") || strings.Contains(md, "Menu") {
		t.Error(md)
	}
	record := object(t, ok(t, "readseg", "-d", dir, "-markdown", "-json"))["record"].(map[string]any)
	if !strings.Contains(record["markdown"].(string), want) {
		t.Errorf("%v", record)
	}
	doc := object(t, ok(t, "index", "-d", dir, "-format", "markdown"))
	if !strings.HasPrefix(doc["text"].(string), want) || doc["binary_content"] != nil || doc["title"] != "Kettle" {
		t.Errorf("%v", doc)
	}
	if got := fmt.Sprint(doc["fields"]); got != "map[author:[Ada Writer] language:[en] name:[Kettle] price:[34.90]]" {
		t.Error(got)
	}
	if got := object(t, ok(t, "index", "-d", dir)); fmt.Sprint(got["fields"]) != "map[name:[Kettle] price:[34.90]]" || !strings.Contains(got["text"].(string), "Advert") {
		t.Errorf("%v", got)
	}
	shown := ok(t, "check", "extract", "-agent", "testbot", "-allow-private", "-fields", rules, s.URL+"/kettle")
	for _, part := range []string{"title:\tKettle\n", "field:\tprice = 34.90\n", want} {
		if !strings.Contains(shown, part) {
			t.Errorf("check extract lacks %q:\n%s", part, shown)
		}
	}
	if both := ok(t, "check", "extract", "-agent", "testbot", "-allow-private", s.URL+"/kettle", s.URL+"/kettle"); strings.Count(both, "title:\tKettle\n") != 2 {
		t.Errorf("two URLs:\n%s", both)
	}
	file := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(file, []byte("<title>T</title><p class=price>1.234,50 €"), 0o666); err != nil {
		t.Fatal(err)
	}
	read := object(t, ok(t, "check", "extract", "-fields", rules, "-base", "https://a.example/kettle", "-json", file))
	if fmt.Sprint(read["fields"]) != "map[price:[1234.50]]" || read["title"] != "T" {
		t.Errorf("%v", read)
	}
}

// TestSignatureSaysWhatIsAChange crawls a page once a year. A crawl that compares the main content, or the
// price, and remembers that, finds a change only in that.
func TestSignatureSaysWhatIsAChange(t *testing.T) {
	t.Parallel()
	rules := writeRules(t)
	for _, test := range []struct {
		signature string
		want      string
	}{
		{"text", "new changed changed changed"}, {"main", "new unchanged changed changed"}, {"field=price", "new unchanged unchanged changed"},
	} {
		t.Run(test.signature, func(t *testing.T) {
			t.Parallel()
			s := openShop(t)
			dir := filepath.Join(t.TempDir(), "crawl")
			var got []string
			before := ""
			for year := range 4 {
				switch year {
				case 2:
					s.word.Store("polished")
				case 3:
					s.price.Store("29.90")
				}
				args := []string{"crawl", "-d", dir, "-agent", "testbot", "-allow-private", "-delay", "0", "-now", fmt.Sprintf("20%d-01-01T00:00:00Z", 30+year)}
				if year == 0 {
					args = append(args, "-fields", rules, "-signature", test.signature, s.URL+"/kettle")
				}
				ok(t, args...)
				sum := object(t, ok(t, "index", "-d", dir))["signature"].(string)
				switch {
				case before == "":
					got = append(got, "new")
				case before == sum:
					got = append(got, "unchanged")
				default:
					got = append(got, "changed")
				}
				before = sum
			}
			if s.requests.Load() != 4 || strings.Join(got, " ") != test.want {
				t.Errorf("after %d requests: %v, want %s", s.requests.Load(), got, test.want)
			}
		})
	}
}

func TestExtractionFlagsAreChecked(t *testing.T) {
	t.Parallel()
	rules := writeRules(t)
	bad := filepath.Join(t.TempDir(), "bad.yaml")
	if err := os.WriteFile(bad, []byte("rules:\n- url: x\n  fields:\n    a: {css: '['}\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "crawl")
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"crawl", "-d", dir, "-agent", "b", "-signature", "nothing", "http://a.example/"}, `"nothing" is not one of text, words`},
		{[]string{"crawl", "-d", dir, "-agent", "b", "-signature", "field=price", "http://a.example/"}, "needs -fields FILE"},
		{[]string{"crawl", "-d", dir, "-agent", "b", "-fields", rules, "-signature", "field=cost", "http://a.example/"}, `no rule of -fields has a field "cost"; they have name, price`},
		{[]string{"crawl", "-d", dir, "-agent", "b", "-fields", bad, "http://a.example/"}, bad + ":4: field a: css: "},
		{[]string{"check", "extract", "-fields", bad, "x.html"}, bad + ":4: field a: css: "},
		{[]string{"check", "extract", "-tables", "x.html"}, "-tables needs -json"},
		{[]string{"readseg", "-d", dir, "-markdown", "-recode"}, "-markdown and -recode exclude each other"},
		{[]string{"index", "-d", dir, "-format", "html"}, `"html" is not one of text and markdown`},
	} {
		if r := recrawl(t, test.args...); r.code == 0 || !strings.Contains(r.err, test.want) {
			t.Errorf("%v: %d, %s", test.args, r.code, r.err)
		}
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("a crawl was created")
	}
}
