package robots_test

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/recrawl/recrawl/protocol/robots"
)

// A testCase is one line of testdata/cases.jsonl, whose README says more.
type testCase struct {
	Line    int
	Suite   string
	Test    string
	Agents  []string
	URL     string
	Robots  []byte `json:"-"`
	Base64  string `json:"robots_b64"`
	Allowed bool
}

func corpus(tb testing.TB) []testCase {
	tb.Helper()
	f, err := os.Open("testdata/cases.jsonl")
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	var cases []testCase
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		c := testCase{Line: len(cases) + 1}
		if err := json.Unmarshal(s.Bytes(), &c); err != nil {
			tb.Fatalf("line %d: %v", c.Line, err)
		}
		if c.Robots, err = base64.StdEncoding.DecodeString(c.Base64); err != nil {
			tb.Fatalf("line %d: %v", c.Line, err)
		}
		cases = append(cases, c)
	}
	if err := s.Err(); err != nil {
		tb.Fatal(err)
	}
	return cases
}

// allowed asks for all the agents of a case: a URL is allowed to a crawler that
// goes by two names if it is to each.
func (c testCase) allowed(parse func([]byte, ...string) *robots.Rules) bool {
	for _, agent := range c.Agents {
		if !parse(c.Robots, agent).Allowed(c.URL) {
			return false
		}
	}
	return true
}

// A contestedCase is a row of testdata/contested.md.
type contestedCase struct {
	name, reason string
	lost, held   []int // lines of the corpus
}

// contested reads the table of testdata/contested.md.
func contested(t *testing.T) []contestedCase {
	t.Helper()
	b, err := os.ReadFile("testdata/contested.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := func(s string) (n []int) {
		for f := range strings.FieldsSeq(s) {
			i, err := strconv.Atoi(f)
			if err != nil {
				t.Fatalf("contested.md: %q: %v", s, err)
			}
			n = append(n, i)
		}
		return n
	}
	var all []contestedCase
	for line := range bytes.Lines(b) {
		cells := strings.Split(string(line), "|")
		if len(cells) != 7 || !strings.HasPrefix(cells[1], fmt.Sprintf(" %d ", len(all)+1)) {
			continue
		}
		all = append(all, contestedCase{strings.TrimSpace(cells[1]), strings.TrimSpace(cells[5]), lines(cells[2]), lines(cells[4])})
	}
	return all
}

// TestCorpus holds Parse against the tests of other parsers. Where two of these
// contradict each other one must lose, and is in the table of contested cases.
func TestCorpus(t *testing.T) {
	lost, held := make(map[int]string), make(map[int]string)
	cases := contested(t)
	for _, c := range cases {
		if c.reason == "" || len(c.lost) == 0 || len(c.held) == 0 {
			t.Errorf("case %s: no reason, or nobody loses, or nobody says otherwise", c.name)
		}
		for _, n := range c.lost {
			lost[n] = c.name
		}
		for _, n := range c.held {
			held[n] = c.name
		}
	}
	if len(cases) != 8 || len(lost) != 15 {
		t.Errorf("%d contested cases, in which %d assertions are lost; want 8 and 15", len(cases), len(lost))
	}
	all := corpus(t)
	if len(all) != 827 {
		t.Errorf("%d assertions, want 827", len(all))
	}
	for _, c := range all {
		switch ok := c.allowed(robots.Parse) == c.Allowed; {
		case !ok && held[c.Line] != "":
			t.Errorf("line %d, which shall hold in case %s, does not", c.Line, held[c.Line])
		case !ok && lost[c.Line] == "":
			t.Errorf("line %d: %s %s %q %s: allowed is not %v by\n%.2000s", c.Line, c.Suite, c.Test, c.Agents, c.URL, c.Allowed, c.Robots)
		case ok && lost[c.Line] != "":
			t.Errorf("line %d holds but is listed as lost in case %s", c.Line, lost[c.Line])
		}
	}
}
