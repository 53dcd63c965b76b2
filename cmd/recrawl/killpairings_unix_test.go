//go:build unix

package main_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/internal/testlevel"
	"github.com/recrawl/recrawl/protocol/webtest"
)

// laterEventsFile is where a reader that parses in a stage of its own notes the events.
const laterEventsFile = "later-" + eventsFile

// A pairing is a sequence of verbs. The test kills the verbs that begin with "!". The crawl db at the end
// of the sequence has to be that of an undisturbed one: only the end shows a loss that a later stage
// depends on.
type pairing struct {
	name string
	jobs []string // online if they begin with a verb that fetches
	// quick says that the quick form of the test has it, too.
	quick bool
}

// pairings pairs each verb of a round with the options that change what a stage leaves to others.
func pairings() []pairing {
	const first = "inject -d crawl -seeds seeds.txt\ncrawl -d crawl -rounds 1 -no-sitemaps\n"
	const rest = "!update -d crawl\n!invert -d crawl\n!crawl -d crawl -rounds 1"
	var all []pairing
	add := func(name, jobs string, quick bool) {
		all = append(all, pairing{name, strings.Split(jobs, "\n"), quick})
	}
	for _, of := range []string{"", " -no-sitemaps", " -redirects 3", " -follow-depth 1", " -redirects 3 -follow-depth 1", " -ignore-external", " -threads-per-host 3"} {
		add("fetch"+of, first+"generate -d crawl\n!fetch -d crawl"+of+"\n"+rest, of == " -redirects 3")
		add("fetch and parse"+of, first+"generate -d crawl\n!fetch -d crawl -no-parse"+of+"\n!parse -d crawl -agent testbot"+"\n"+rest, of == "" || of == " -follow-depth 1")
	}
	for _, no := range []string{"", " -no-parse"} {
		jobs := first + "generate -d crawl -lists 2\n!fetch -d crawl -lists 0" + no + "\n!fetch -d crawl -lists 1" + no + "\n"
		if no != "" {
			jobs += "!parse -d crawl -agent testbot\n"
		}
		add("fetch of lists"+no, jobs+rest, false)
	}
	for _, of := range []string{"", " -dedup", " -redirects 3", " -follow-depth 1", " -keep-segments 1", " -schedule learned -budget 100/day", " -scoring pagerank"} {
		add("crawl"+of, first+"!crawl -d crawl -rounds 2"+of, false)
	}
	add("crawl that parses later", first+"!reader crawl "+laterEventsFile, true)
	add("sitemap", first+"!sitemap -d crawl -hosts\n!crawl -d crawl -rounds 1", false)
	add("sitemap, and a crawl that parses later", first+"!sitemap -d crawl -hosts\n!reader crawl "+laterEventsFile, false)
	add("update with purge and filters", first+"generate -d crawl\nfetch -d crawl\n!update -d crawl -purge-gone -filter -normalize\n!invert -d crawl\n!crawl -d crawl -rounds 1", false)
	add("freegen and fetch without parsing", first+"!freegen -d crawl urls.txt\n!fetch -d crawl -no-parse\n!parse -d crawl -agent testbot\n"+rest, false)
	return all
}

// pairedJob makes the job of a line.
func pairedJob(line string) (j job, killed bool) {
	line, killed = strings.CutPrefix(line, "!")
	j = job{name: line, now: killDay1, args: strings.Fields(line), again: true}
	switch j.args[0] {
	case "reader":
		j.reader, j.online, j.args = true, true, j.args[1:]
	case "fetch", "crawl", "sitemap":
		j.online = true
	}
	return j, killed
}

// TestKillPairings kills each verb under the options that change what it leaves to the stages after it,
// and lets the sequence go on to its end.
func TestKillPairings(t *testing.T) {
	t.Parallel()
	k := &killer{random: rand.New(rand.NewPCG(*killSeed, 34)), points: 1, classes: map[string]int{}}
	first := newPlace(t, &webtest.Web{Hosts: 3, PagesPerHost: testlevel.Pick(12, 30), LinksPerPage: 6, WordsPerPage: 20, Sitemaps: true})
	if _, err := k.trace(t, first, job{now: killDay1, args: []string{"readdb", "--help"}}, 0); err != nil {
		k.points = 0
		t.Logf("NO TRACER: %v. Kills are at random instants.", err)
	}
	for _, c := range pairings() {
		if !c.quick && !testlevel.Exhaustive {
			continue
		}
		t.Run(c.name, func(t *testing.T) { k.pairing(t, first, c.jobs) })
	}
	if k.done < testlevel.Pick(4, 40) {
		t.Errorf("only %d kills", k.done)
	}
}

// pairing runs the jobs undisturbed, and once for each job that is to be killed, in which it kills
// that.
func (k *killer) pairing(t *testing.T, first *place, lines []string) {
	run := func(p *place, from, to int) {
		for _, line := range lines[from:to] {
			j, _ := pairedJob(line)
			if r := finish(t, p.command(j)); r.code != 0 {
				t.Fatalf("%s: %+v", line, r)
			}
		}
	}
	last, _ := pairedJob(lines[len(lines)-1])
	p := first.copy(t)
	defer p.remove()
	type target struct {
		line   int
		before *place
	}
	var targets []target
	for i, line := range lines {
		if _, killed := pairedJob(line); killed && (len(targets) == 0 || testlevel.Exhaustive) {
			before := p.copy(t)
			defer before.remove()
			targets = append(targets, target{i, before})
		}
		run(p, i, i+1)
	}
	want := p.digest(t, last)
	for _, of := range targets {
		j, _ := pairedJob(lines[of.line])
		for range testlevel.Pick(1, 2) {
			p := of.before.copy(t)
			at := aim{after: time.Duration(k.random.Int64N(int64(300 * time.Millisecond)))}
			if k.points > 0 {
				at = aim{change: 1 + k.random.IntN(60)}
			}
			what, killed, _ := k.end(t, p, j, at)
			if killed {
				k.done++
				run(p, of.line, of.line+1)
			}
			run(p, of.line+1, len(lines))
			if got := p.digest(t, last); got != want {
				t.Errorf("%s, killed %s: %s", lines[of.line], what, difference(got, want))
			}
			p.remove()
		}
	}
}
