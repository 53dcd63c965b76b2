package robots_test

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/recrawl/recrawl/robots"
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
func (c testCase) allowed(parse func([]byte, string) *robots.Rules) bool {
	for _, agent := range c.Agents {
		if !parse(c.Robots, agent).Allowed(c.URL) {
			return false
		}
	}
	return true
}

// A lostCase is a row of testdata/contested.md.
type lostCase struct{ question, reason string }

// contested reads the table of testdata/contested.md by line number.
func contested(t *testing.T) map[int]lostCase {
	t.Helper()
	b, err := os.ReadFile("testdata/contested.md")
	if err != nil {
		t.Fatal(err)
	}
	m := make(map[int]lostCase)
	for line := range bytes.Lines(b) {
		cells := strings.Split(string(line), "|")
		if len(cells) != 6 {
			continue
		}
		n, err := strconv.Atoi(strings.TrimSpace(cells[1]))
		if err != nil {
			continue
		}
		m[n] = lostCase{strings.TrimSpace(cells[2]), strings.TrimSpace(cells[4])}
	}
	return m
}

// TestCorpus holds Parse against the tests of other parsers. Where two of these
// contradict each other one must lose, and is in the table of contested cases.
func TestCorpus(t *testing.T) {
	lost := contested(t)
	questions := make(map[string]bool)
	for _, l := range lost {
		questions[l.question] = true
	}
	if len(questions) > 8 || len(lost) > 15 {
		t.Errorf("%d contested questions in %d cases, want at most 8 in 15", len(questions), len(lost))
	}
	cases := corpus(t)
	if len(cases) != 827 {
		t.Errorf("%d cases, want 827", len(cases))
	}
	for _, c := range cases {
		ok := c.allowed(robots.Parse) == c.Allowed
		l, listed := lost[c.Line]
		switch {
		case !ok && !listed:
			t.Errorf("line %d: %s %s %q %s: allowed is not %v by\n%.2000s", c.Line, c.Suite, c.Test, c.Agents, c.URL, c.Allowed, c.Robots)
		case ok && listed:
			t.Errorf("line %d passes but is listed as contested: %s", c.Line, l.reason)
		case listed && (l.question == "" || l.reason == ""):
			t.Errorf("line %d is contested without a reason", c.Line)
		}
	}
}
