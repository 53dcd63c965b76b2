package hostile_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/recrawl/recrawl/internal/testlevel"
)

// rows are all that is checked here, in the order they are published.
var rows = sync.OnceValue(func() []row {
	return slices.Concat(connectRows(), hopRows(), wireRows(), robotsRows(), politeRows(), contentRows(), feedRows())
})

// TestHostile crawls each row together with an honest site, and demands its figure and the
// common budgets.
func TestHostile(t *testing.T) {
	// What the runtime opens once is not a leak.
	_, expected := crawlRow(t, row{id: "alone"})
	for _, r := range rows() {
		t.Run(r.id, func(t *testing.T) {
			if r.alone != nil {
				r.alone(t)
				return
			}
			for range testlevel.Pick(min(r.more, 1), r.more) {
				crawlRow(t, r)
			}
			if r.pages == 0 {
				r.pages = 8
			}
			// A rate counts if it is reached once, for the machine may be busy with
			// something else. The time over which it is taken grows, but not so far that
			// a worker's wait for a time limit would not show.
			const tries, most = 5, 64
			for i := range tries {
				c, beside := crawlRow(t, r)
				t.Logf("%s\t%s", r.id, describe(c, beside))
				if t.Failed() || beside > 0 && (testlevel.Race || r.interrupt != nil || r.more > 0) {
					return
				}
				alone := expected
				if beside < share()*expected {
					_, alone = crawlRow(t, row{id: "alone", pages: r.pages, edit: r.edit}) // by its options
				}
				if beside > 0 && beside >= share()*alone {
					return
				}
				if i == tries-1 {
					t.Errorf("B4: the honest site was asked %.1f times a second, alone %.1f times", beside, alone)
				}
				r.pages = min(2*r.pages, max(r.pages, most))
			}
		})
	}
}

// strict demands the times and rates of docs/robustness.md. Without it a busy machine fails no
// test.
var strict = flag.Bool("strict", false, "want the times and rates of docs/robustness.md; the machine has to be quiet")

// patience is how long something may take that has to be done within d.
func patience(d time.Duration) time.Duration {
	if *strict {
		return d
	}
	return 10 * d
}

// share is the part of its rate that the honest site has to keep.
func share() float64 {
	if *strict {
		return 0.9
	}
	return 0.5
}

var update = flag.Bool("update", false, "write docs/robustness.md")

// TestRobustness demands that docs/robustness.md describes the rows that are checked.
func TestRobustness(t *testing.T) {
	const file = "../../docs/robustness.md"
	want := robustness()
	if *update {
		if err := os.WriteFile(file, want, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want) {
		t.Errorf("docs/robustness.md is not what go test ./internal/hostile -run TestRobustness -update makes (%v)", err)
	}
	ids := map[string]bool{}
	for _, r := range rows() {
		if ids[r.id] || r.input == "" || r.outcome == "" || r.figure == "" || len(r.sites) == 0 && r.alone == nil && r.during == nil {
			t.Errorf("row %q occurs twice or is incomplete", r.id)
		}
		ids[r.id] = true
	}
	for _, o := range open() {
		if ids[o.id] && !strings.Contains(o.what, " ") {
			t.Errorf("row %q is both done and open", o.id)
		}
	}
}

func robustness() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `# Robustness

What a hostile or broken web may do to a crawl, and what happens then. Each row is a test: its servers are crawled on
loopback by the whole stack beside an honest site, and the row's figure and six budgets must hold.

| budget | |
| --- | --- |
| B1 | memory in use stays under 96 MiB plus two bodies for each worker, and for each of the two sitemaps read at a time |
| B2 | no visit takes longer than its time limit plus a second |
| B3 | connections, goroutines and open files are back where they were within 2 s of the end of the crawl |
| B4 | the honest site is visited at 90 %% or more of the rate it is visited at alone |
| B5 | crawl db, link db and segments read back and are consistent; nothing is left leased |
| B6 | every URL that was selected has a visit and a record, with a status and a reason in one line of ASCII; nothing panics |

B4 does not apply to P10, P14 and P14a, whose runs are cancelled or vary the number of workers, nor under the race detector;
W8 runs in its own process, without the budgets. In the rows F not the servers are hostile, but the receivers and
clients of the change feed; the honest site has 100 pages. The crawls have %d workers, and limits of %d KiB for
bodies and %d ms for visits unless a row says otherwise. Servers that flood send 16 MB a second.

    go test ./internal/hostile -run TestRobustness -update                    # writes this file
    go test -tags exhaustive ./internal/hostile -run TestHostile -strict -v   # checks the rows, and prints what was measured

Without -strict times may be ten times as long and B4 requires half the rate, so that a busy machine fails no test. Without
-tags exhaustive, as in go test work, C6 tries all traps at once only, P14 and P14a crawl twice, and F1 and F3 have 40 honest pages.

## Checked

| row | servers | what they do | what happens | figure that must hold |
| --- | ---: | --- | --- | --- |
`, workers, maxBytes>>10, timeLimit.Milliseconds())
	for _, r := range rows() {
		fmt.Fprintf(&b, "| %s | %d | %s | %s | %s |\n", r.id, len(r.sites), r.input, r.outcome, r.figure)
	}
	b.WriteString("\n## Open\n\nNot checked here, and why.\n\n| row | what | why |\n| --- | --- | --- |\n")
	for _, o := range open() {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", o.id, o.what, o.why)
	}
	return b.Bytes()
}
