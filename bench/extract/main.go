// Command extract scores the extraction of main content on a folder of labelled pages, beside other
// extractors. The folder is in the layout of one of two public sets:
//
//   - html/ID.html or ID.html.gz and ground-truth/ID.json, with ground_truth.main_content
//     (github.com/Murrough-Foley/web-content-extraction-benchmark, a folder of a split);
//   - html/ID.html.gz and ground-truth.json, from ID to articleBody
//     (github.com/scrapinghub/article-extraction-benchmark).
//
// Results of trafilatura and readability-lxml are read from the files that others.py writes there.
// go-readability runs here.
//
//	go run ./extract [-show N] [-changes] FOLDER...
package main

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net/url"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"
	"unicode"

	readability "codeberg.org/readeck/go-readability/v2"

	"github.com/recrawl/recrawl/bench/cputime"
	"github.com/recrawl/recrawl/page"
	"github.com/recrawl/recrawl/parse/extract"
)

func main() {
	show := flag.Int("show", 0, "show the N pages on which recrawl is worst, or misses a change")
	only := flag.String("only", "", "print what recrawl extracts from the page of this `ID`")
	fast := flag.Bool("fast", false, "leave go-readability out")
	histories := flag.Bool("changes", false, "count the changes that signatures see in edits of the pages, instead")
	flag.Parse()
	for _, folder := range flag.Args() {
		if err := score(folder, *show, *only, *fast, *histories); err != nil {
			log.Fatal(err)
		}
	}
}

// labelled is a page with the text that it should give.
type labelled struct {
	id, url, kind, want string
	body                []byte
}

// result is what one extractor makes of a folder.
type result struct {
	name    string
	seconds float64
	texts   map[string]string
}

func score(folder string, show int, only string, fast, histories bool) error {
	pages, err := load(folder)
	if err != nil {
		return err
	}
	if histories {
		changes(pages, show)
		return nil
	}
	if only != "" {
		for _, p := range pages {
			if p.id == only {
				got := recrawl(p)
				fmt.Println("==", p.url)
				report(got, p.want, "+")
				report(p.want, got, "-")
			}
		}
		return nil
	}
	size := 0
	for _, p := range pages {
		size += len(p.body)
	}
	results := []result{run("recrawl", pages, recrawl)}
	if !fast {
		results = append(results, run("go-readability", pages, goReadability))
	}
	for _, name := range []string{"trafilatura", "readability-lxml"} {
		b, err := os.ReadFile(filepath.Join(folder, name+".json"))
		if err != nil {
			continue
		}
		var r struct {
			Seconds float64
			Texts   map[string]string
		}
		if err := json.Unmarshal(b, &r); err != nil {
			return err
		}
		results = append(results, result{name, r.Seconds, r.Texts})
	}
	fmt.Printf("%s: %d pages, %.1f MB\n%-18s %7s %9s %7s %10s %8s\n", folder, len(pages), float64(size)/1e6, "", "F1", "precision", "recall", "shingle F1", "MB/s")
	for _, r := range results {
		all := &scores{}
		kinds := map[string]*scores{}
		for _, p := range pages {
			all.add(r.texts[p.id], p.want)
			if kinds[p.kind] == nil {
				kinds[p.kind] = &scores{}
			}
			kinds[p.kind].add(r.texts[p.id], p.want)
		}
		fmt.Printf("%-18s %7.4f %9.4f %7.4f %10.4f %8.2f ", r.name, all.f1/all.n, all.precision/all.n, all.recall/all.n, all.shingleF1(), float64(size)/1e6/r.seconds)
		var names []string
		for k := range kinds {
			names = append(names, k)
		}
		sort.Strings(names)
		for _, k := range names {
			if k != "" {
				fmt.Printf(" %s %.3f(%.2f %.2f)", k[:3], kinds[k].f1/kinds[k].n, kinds[k].precision/kinds[k].n, kinds[k].recall/kinds[k].n)
			}
		}
		fmt.Println()
	}
	if show > 0 {
		type worst struct {
			p labelled
			s scores
		}
		var all []worst
		for _, p := range pages {
			w := worst{p: p}
			w.s.add(results[0].texts[p.id], p.want)
			all = append(all, w)
		}
		sort.Slice(all, func(i, j int) bool { return all[i].s.f1 < all[j].s.f1 })
		for _, w := range all[:min(show, len(all))] {
			fmt.Printf("%.2f, precision %.2f, recall %.2f: %s %s %s\n", w.s.f1, w.s.precision, w.s.recall, w.p.id, w.p.kind, w.p.url)
		}
	}
	return nil
}

// report prints each line of text that shares less than half of its runs of words with other.
func report(text, other, sign string) {
	has := map[string]bool{}
	for _, s := range shingles(words(other)) {
		has[s] = true
	}
	for line := range strings.Lines(text) {
		all := shingles(words(line))
		missing := 0
		for _, s := range all {
			if !has[s] {
				missing++
			}
		}
		if missing*2 > len(all) {
			fmt.Println(sign, strings.TrimSpace(line))
		}
	}
}

var began = time.Now()

// cpu is the CPU time of the process so far or, on systems where it is not read, the time since the process began.
func cpu() time.Duration {
	if used, err := cputime.Sum(); err == nil {
		return used
	}
	return time.Since(began)
}

func run(name string, pages []labelled, text func(labelled) string) result {
	r := result{name: name, texts: map[string]string{}}
	start := cpu()
	for _, p := range pages {
		r.texts[p.id] = text(p)
	}
	r.seconds = (cpu() - start).Seconds()
	return r
}

func recrawl(p labelled) string {
	a, err := extract.Extract(context.Background(), &page.Content{URL: p.url, Type: "text/html", Body: p.body})
	if err != nil {
		return ""
	}
	return a.Text
}

func goReadability(p labelled) string {
	u, _ := url.Parse("https://example.com/")
	a, err := readability.FromReader(strings.NewReader(string(p.body)), u)
	if err != nil || a.Node == nil {
		return ""
	}
	var b strings.Builder
	a.RenderText(&b)
	return b.String()
}

func load(folder string) ([]labelled, error) {
	want := map[string]labelled{}
	if b, err := os.ReadFile(filepath.Join(folder, "ground-truth.json")); err == nil {
		var all map[string]struct{ ArticleBody, URL string }
		if err := json.Unmarshal(b, &all); err != nil {
			return nil, err
		}
		for id, t := range all {
			want[id] = labelled{id: id, url: t.URL, want: t.ArticleBody}
		}
	}
	files, _ := filepath.Glob(filepath.Join(folder, "ground-truth", "*.json"))
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		var t struct {
			URL      string
			Internal struct {
				PageType struct{ Primary string } `json:"page_type"`
			} `json:"_internal"`
			Truth struct {
				Main string `json:"main_content"`
			} `json:"ground_truth"`
		}
		if err := json.Unmarshal(b, &t); err != nil {
			return nil, fmt.Errorf("%s: %w", f, err)
		}
		id := strings.TrimSuffix(filepath.Base(f), ".json")
		want[id] = labelled{id: id, url: t.URL, kind: t.Internal.PageType.Primary, want: t.Truth.Main}
	}
	paths, _ := filepath.Glob(filepath.Join(folder, "html", "*.html*"))
	var pages []labelled
	for _, path := range paths {
		id, _, _ := strings.Cut(filepath.Base(path), ".html")
		p, ok := want[id]
		if !ok {
			continue
		}
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		var r io.Reader = f
		if strings.HasSuffix(path, ".gz") {
			if r, err = gzip.NewReader(f); err != nil {
				return nil, err
			}
		}
		p.body, err = io.ReadAll(r)
		f.Close()
		if err != nil {
			return nil, err
		}
		pages = append(pages, p)
	}
	return pages, nil
}

// scores are sums over pages: of F1, precision and recall of words in lower case, and of precision and
// recall of runs of four words, as the two sets score.
type scores struct {
	n, f1, precision, recall float64
	sp, spn, sr, srn         float64
}

func (s *scores) add(got, want string) {
	s.n++
	g, w := words(strings.ToLower(got)), words(strings.ToLower(want))
	p, r := overlap(g, w)
	s.precision += p
	s.recall += r
	if p+r > 0 {
		s.f1 += 2 * p * r / (p + r)
	}
	g, w = shingles(words(got)), shingles(words(want))
	p, r = overlap(g, w)
	if len(g) > 0 {
		s.sp += p
		s.spn++
	}
	if len(w) > 0 {
		s.sr += r
		s.srn++
	}
}

func (s *scores) shingleF1() float64 {
	p, r := s.sp/s.spn, s.sr/s.srn
	return 2 * p * r / (p + r)
}

func overlap(got, want []string) (precision, recall float64) {
	if len(got) == 0 || len(want) == 0 {
		if len(got) == len(want) {
			return 1, 1
		}
		return 0, 0
	}
	left := map[string]int{}
	for _, w := range want {
		left[w]++
	}
	both := 0
	for _, w := range got {
		if left[w] > 0 {
			left[w]--
			both++
		}
	}
	return float64(both) / float64(len(got)), float64(both) / float64(len(want))
}

func words(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsNumber(r) })
}

func shingles(w []string) []string {
	if len(w) == 0 {
		return nil
	}
	var all []string
	for i := range max(1, len(w)-3) {
		all = append(all, strings.Join(w[i:min(i+4, len(w))], " "))
	}
	return all
}
