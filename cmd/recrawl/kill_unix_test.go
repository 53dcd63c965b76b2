//go:build unix

package main_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/recrawl/recrawl/internal/testlevel"
	"github.com/recrawl/recrawl/protocol/webtest"
)

var (
	kills    = flag.Int("kills", 0, "kill the command before every change it makes to the file system, and `N` times at random")
	killAt   = flag.Int("kill-at", 1<<30, "with -kills, kill before `N` of the changes of each job, and not before every one")
	killOnly = flag.String("kill-only", "", "of the jobs of TestKill, kill only the one of this `NAME`")
	killSeed = flag.Uint64("kill-seed", 1, "the random instants of TestKill are those of this `SEED`")
)

// TestKill kills every verb that writes, and whole crawls: before the changes that
// it makes to the file system, by the tracer, and at random instants. Often the
// command that continues is killed as well. Then the same command runs to its end, without
// any repair before, and the result has to be that of an undisturbed run: crawl db, link db,
// segments, statistics of hosts, and files beside them.
//
// The quick form kills each verb once, most before a change and every fourth at a random
// instant; the exhaustive one does both. All changes, and 1,000 random instants, are
//
//	go test ./cmd/recrawl -run TestKill -kills 1000 -timeout 2h -v
func TestKill(t *testing.T) {
	t.Parallel()
	k := &killer{random: rand.New(rand.NewPCG(*killSeed, 0)), points: 1, instants: 1, byTurns: !testlevel.Exhaustive && *kills == 0, classes: map[string]int{}}
	if *kills > 0 {
		k.points = *killAt
		k.instants = (*kills + len(jobs()) - 1) / len(jobs())
	}
	p := newPlace(t, &webtest.Web{Hosts: testlevel.Pick(4, 6), PagesPerHost: testlevel.Pick(20, 40), LinksPerPage: 6, WordsPerPage: 30, Sitemaps: true})
	if _, err := k.trace(t, p, job{now: killDay1, args: []string{"readdb", "--help"}}, 0); err != nil {
		k.points, k.instants, k.byTurns = 0, max(k.instants, testlevel.Pick(2, 5)), false
		t.Logf("NO TRACER: %v. No kill is aimed at a call to the system; there are more at random instants.", err)
	}
	for _, j := range jobs() {
		k.job(t, p, j)
	}
	t.Logf("%d kills, %d of them before a change, %d while going on after a kill, %d when the result was printed; one cost %d requests at most", k.done, k.aimed, k.again, k.told, k.repeated)
	for _, class := range slices.Sorted(maps.Keys(k.classes)) {
		t.Logf("%6d before a %s", k.classes[class], class)
	}
	if k.done < testlevel.Pick(20, 60) && *killOnly == "" {
		t.Errorf("only %d kills", k.done)
	}
}

// TestKillMerges is TestKill for large Merges of links, each of which makes a layer, for the joining
// of these in the background, and for Compact.
func TestKillMerges(t *testing.T) {
	t.Parallel()
	k := &killer{random: rand.New(rand.NewPCG(*killSeed, 424)), points: testlevel.Pick(1, 2), instants: 2, classes: map[string]int{}}
	if *kills > 0 {
		k.points, k.instants = *killAt, *kills
	}
	p := newPlace(t, &webtest.Web{Hosts: 1, PagesPerHost: 1})
	if _, err := k.trace(t, p, job{now: killDay1, args: []string{"readdb", "--help"}}, 0); err != nil {
		k.points = 0
		t.Logf("NO TRACER: %v. No kill is aimed at a call to the system.", err)
	}
	k.job(t, p, job{name: "merges", now: killDay1, reader: true, args: []string{"links", "layers"}})
	t.Logf("%d kills, %d of them before a change, %d while going on after a kill", k.done, k.aimed, k.again)
	if k.done < 3 {
		t.Errorf("only %d kills", k.done)
	}
}

// A job is one command line, run in a directory with everything that the jobs
// before it have left.
type job struct {
	name   string
	args   []string
	now    string
	online bool
	reader bool // not the command, but a program that uses the library
	once   bool // makes a directory, and refuses to once it is there
	again  bool // makes a round each time it is called, if the last was done or not: segments are not compared
}

// Some days.
const (
	killDay1 = "2026-01-05T08:00:00Z"
	killDay2 = "2026-01-08T08:00:00Z"
	killDay3 = "2026-03-01T08:00:00Z"
	killDay4 = "2026-05-01T08:00:00Z"
)

func jobs() []job {
	online := func(name, now, args string) job {
		return job{name: name, now: now, online: true, args: strings.Fields(args)}
	}
	offline := func(name, now, args string) job {
		return job{name: name, now: now, args: strings.Fields(args)}
	}
	return []job{
		offline("inject", killDay1, "inject -d crawl -seeds seeds.txt"),
		offline("generate", killDay1, "generate -d crawl"),
		online("fetch", killDay1, "fetch -d crawl"),
		offline("update", killDay1, "update -d crawl"),
		offline("invert", killDay1, "invert -d crawl"),
		online("crawl", killDay1, "crawl -d crawl -topN 60 -rounds 3 -dedup"),
		online("crawl to the end", killDay1, "crawl -d crawl -topN 1000"),
		offline("dedup", killDay1, "dedup -d crawl"),
		offline("updatehostdb", killDay1, "updatehostdb -d crawl"),
		offline("index", killDay1, "index -d crawl -o pages.jsonl"),
		offline("generate what is due again", killDay2, "generate -d crawl -adddays 60 -lists 2"),
		online("fetch without parsing", killDay2, "fetch -d crawl -no-parse"),
		offline("parse", killDay2, "parse -d crawl -agent testbot"),
		offline("update and purge", killDay2, "update -d crawl -purge-gone -filter -normalize"),
		offline("invert again", killDay2, "invert -d crawl"),
		offline("freegen", killDay2, "freegen -d crawl urls.txt"),
		online("crawl what was given", killDay2, "crawl -d crawl -rounds 1"),
		{name: "sitemap", now: killDay2, online: true, again: true, args: []string{"sitemap", "-d", "crawl", "-hosts"}},
		offline("inject and purge", killDay2, "inject -d crawl -seeds seeds.txt -update -filter-normalize-all -purge-gone"),
		{name: "pages", now: killDay3, reader: true, online: true, args: []string{"crawl", eventsFile}},
		offline("index again", killDay3, "index -d crawl -o pages.jsonl"),
		{name: "backup", now: killDay3, once: true, args: strings.Fields("backup -d crawl saved")},
		offline("clean", killDay3, "clean -d crawl -o gone.jsonl"),
		online("another crawl", killDay3, "crawl -d other -seeds seeds.txt -rounds 2 -topN 80"),
		offline("mergedb", killDay3, "mergedb -d merged crawl other"),
		offline("mergelinkdb", killDay3, "mergelinkdb -d merged crawl other"),
		offline("mergesegs", killDay3, "mergesegs -d other -slice 50"),
		offline("mergesegs and remove", killDay3, "mergesegs -d crawl -slice 150 -remove"),
		online("crawl once more", killDay4, "crawl -d crawl -dedup -topN 150"),
		online("crawl by rank, and learn", killDay1, "crawl -d learned -seeds seeds.txt -scoring pagerank -schedule learned -budget 2000/day -rounds 3 -topN 60"),
	}
}

// eventsFile is where the reader notes the events.
const eventsFile = "events.txt"

// A killer kills jobs.
type killer struct {
	random   *rand.Rand
	points   int // calls to kill a job at; all if there are fewer
	instants int // and random instants
	byTurns  bool
	jobs     int // begun

	done, aimed, again, told int
	classes                  map[string]int // kills by the kind of call
	repeated                 int            // requests that one kill has cost, at most
}

// An aim says when to kill: before a change, or after some time.
type aim struct {
	change int
	after  time.Duration
}

// job runs a job undisturbed in p, and kills it again and again in copies of
// what p was before.
func (k *killer) job(t *testing.T, p *place, j job) {
	points, instants := k.points, k.instants
	if k.jobs++; k.byTurns && k.jobs%4 == 0 {
		points = 0
	} else if k.byTurns {
		instants = 0
	}
	before := p.copy(t)
	defer before.remove()
	undisturbed, err := k.trace(t, p, j, 0)
	if err != nil && k.points > 0 || undisturbed.Code != 0 {
		t.Fatalf("%s, undisturbed: %v, %+v", j.name, err, undisturbed)
	}
	if k.points == 0 {
		finish(t, p.command(j))
	}
	want := p.digest(t, j)
	var took time.Duration
	if instants > 0 {
		twin := before.copy(t)
		defer twin.remove()
		began := time.Now()
		if r := finish(t, twin.command(j)); r.code != 0 {
			t.Fatalf("%s, undisturbed: %+v", j.name, r)
		}
		took = time.Since(began)
		if got := twin.digest(t, j); got != want {
			t.Errorf("%s, undisturbed, twice: %s", j.name, difference(got, want))
		}
	}
	t.Logf("%s: %v, %d changes", j.name, took, undisturbed.Changes)

	if *killOnly != "" && *killOnly != j.name {
		return
	} else if *killOnly != "" {
		instants = *kills
	}
	for i := range min(points, undisturbed.Changes) {
		at := i + 1
		if points < undisturbed.Changes {
			at += k.random.IntN(undisturbed.Changes/points) + i*undisturbed.Changes/points - i
		}
		k.kill(t, before, j, aim{change: at}, took, want)
	}
	for range instants {
		k.kill(t, before, j, aim{after: k.instant(took)}, took, want)
	}
}

func (k *killer) instant(took time.Duration) time.Duration {
	return time.Duration(k.random.Int64N(int64(min(took, 500*time.Millisecond))))
}

// kill kills a job, perhaps several times, and lets it come to its end.
func (k *killer) kill(t *testing.T, before *place, j job, first aim, took time.Duration, want string) {
	p := before.copy(t)
	defer p.remove()
	p.site.reset()
	aims := []aim{first}
	for k.random.IntN(3) == 0 && len(aims) < 4 { // and again, often before it has come back
		switch {
		case k.points == 0:
			aims = append(aims, aim{after: k.instant(took)})
		default:
			aims = append(aims, aim{change: 1 + k.random.IntN(60)})
		}
	}
	var story []string
	var kept []visits
	told := false
	for i, a := range aims {
		what, killed, out := k.end(t, p, j, a)
		if !killed {
			break
		}
		if story = append(story, what); i > 0 {
			k.again++
		}
		p.sound(t, j, j.name+", killed "+strings.Join(story, ", and "))
		p.leavesNothing(t, j.name+", killed "+strings.Join(story, ", and "))
		k.done++
		if j.online {
			kept = append(kept, p.visits(t, j))
		}
		// What it has printed is done, whatever comes.
		if told = out != ""; told {
			story = append(story, "when it had printed "+out)
			k.told++
			break
		}
	}
	if len(story) == 0 {
		return // it was faster
	}
	what := j.name + ", killed " + strings.Join(story, ", and ")
	if !told {
		if r := finish(t, p.command(j)); r.code != 0 && !(j.once && strings.Contains(r.err, "is not empty")) {
			t.Errorf("%s: exit %d\n%s%s", what, r.code, r.out, r.err)
			return
		}
	}
	p.sound(t, j, what+", and run to its end")
	if got := p.digest(t, j); got != want {
		t.Errorf("%s: %s", what, difference(got, want))
	}
	if !j.online {
		return
	}
	now := p.visits(t, j)
	if len(kept) == 1 {
		k.repeated = max(k.repeated, now.repeated(before.visits(t, j)))
	}
	for i, v := range kept {
		for url, n := range v.of {
			if now.of[url] == n && now.asked[url] > v.asked[url] {
				t.Errorf("%s: %s was asked for again, although the visit was kept at kill %d", what, url, i+1)
			}
		}
	}
}

// end runs a job and kills it, and returns when that was and what it had printed.
func (k *killer) end(t *testing.T, p *place, j job, a aim) (what string, killed bool, printed string) {
	if a.change > 0 {
		traced, err := k.trace(t, p, j, a.change)
		if err != nil || traced.Code > 0 {
			t.Fatalf("%s: %v, %+v", j.name, err, traced)
		}
		class, _, _ := strings.Cut(traced.At, " ")
		if killed = traced.Code < 0; killed {
			k.aimed++
			k.classes[class]++
		}
		return fmt.Sprintf("before change %d, %s", a.change, strings.ReplaceAll(traced.At, p.root+"/", "")), killed, traced.out
	}
	c, out, errs := p.command(j), new(output), new(output)
	c.Stdout, c.Stderr = out, errs
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(a.after)
	c.Process.Kill()
	if r := wait(t, c, out, errs); r.code > 0 {
		t.Fatalf("%s: %+v", j.name, r)
	} else {
		killed = r.code < 0
	}
	return fmt.Sprintf("after %v", a.after.Round(time.Microsecond)), killed, out.String()
}

// tracing is what the tracer says: see tracer_linux_test.go.
type tracing struct {
	Code, Changes int
	At, Error     string
	out           string // what the job printed
}

// trace runs a job under the tracer, which kills it before change number n.
func (k *killer) trace(t *testing.T, p *place, j job, n int) (seen tracing, err error) {
	c := p.command(j)
	c.Path, c.Args = os.Args[0], append([]string{os.Args[0], c.Path}, c.Args[1:]...)
	c.Env = append(c.Env, "RECRAWL_TEST_AS_TRACER="+strconv.Itoa(n))
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr, c.ExtraFiles = &out, &errs, []*os.File{w}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if ended := wait(t, c, &out, &errs); ended.code != 0 {
		t.Fatalf("the tracer: %+v", ended)
	}
	if err := json.NewDecoder(r).Decode(&seen); err != nil {
		t.Fatalf("the tracer says nothing: %v", err)
	}
	seen.out = out.String()
	if seen.Error != "" {
		return seen, fmt.Errorf("%s", seen.Error)
	}
	if seen.Code > 0 {
		return seen, fmt.Errorf("exit %d: %s", seen.Code, errs.String())
	}
	return seen, nil
}
