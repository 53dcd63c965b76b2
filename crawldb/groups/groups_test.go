package groups_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/net/publicsuffix"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/crawldb/groups"
	"github.com/recrawl/recrawl/stores/memstore"
)

func TestEachSlotBelongsToOneGroup(t *testing.T) {
	for _, n := range []int{1, 2, 3, 7, 1000, groups.Slots} {
		table, err := groups.Divide(n, groups.Routing{})
		if err == nil {
			err = table.Check()
		}
		if err != nil || len(table.Groups) != n {
			t.Errorf("%d groups: %v, %v", n, table.Groups, err)
		}
	}
	for _, n := range []int{-1, 0, groups.Slots + 1} {
		if _, err := groups.Divide(n, groups.Routing{}); err == nil {
			t.Errorf("%d groups are accepted", n)
		}
	}
	for _, bad := range [][]groups.Group{
		nil,
		{{0, 0, 1023}},
		{{0, 0, 600}, {1, 500, 1024}},
		{{1, 0, 512}, {0, 512, 1024}},
		{{0, -1, 1024}},
		{{0, 0, 1025}},
	} {
		table := groups.Table{Version: 1, Groups: bad}
		if _, err := groups.DecodeTable(table.Encode()); err == nil {
			t.Errorf("table %v is accepted", bad)
		}
	}
	if _, err := groups.DecodeTable("{"); err == nil {
		t.Error("a damaged table is accepted")
	}
}

// TestSlotsStayTheSame has the slots that stored crawls rely on.
func TestSlotsStayTheSame(t *testing.T) {
	r := groups.DefaultRouting()
	r.Hot = []string{"wikipedia.org"}
	router := r.Router()
	for _, c := range []struct {
		url, name string
		slot      int
	}{
		{"http://www.example.com/a?b", "example.com", 198},
		{"https://example.com:8443/", "example.com", 198},
		{"http://a.b.example.co.uk/", "example.co.uk", 667},
		{"http://co.uk/", "co.uk", 227},
		{"http://me.github.io/", "me.github.io", 98},
		{"http://www.ck/", "www.ck", 572},
		{"http://shop.x.ck/", "shop.x.ck", 585},
		{"http://de.wikipedia.org/", "de.wikipedia.org", 91},
		{"http://192.0.2.1/", "192.0.2.1", 536},
		{"http://[2001:db8::1]/", "[2001:db8::1]", 77},
		{"http://localhost/", "localhost", 890},
		{"mailto:a@example.com", "", 805},
	} {
		if got := router.Name(crawldb.Host(c.url)); got != c.name {
			t.Errorf("%s is routed by %q, want %q", c.url, got, c.name)
		}
		if got := router.Slot(c.url); got != c.slot {
			t.Errorf("%s has slot %d, want %d", c.url, got, c.slot)
		}
	}
}

func TestDomainsAreThoseOfPublicSuffixList(t *testing.T) {
	r := groups.DefaultRouting()
	router := r.Router()
	n := 0
	for line := range strings.Lines(r.Suffixes) {
		rule := strings.TrimSpace(line)
		if strings.HasPrefix(rule, "//") {
			continue
		}
		n++
		rule = strings.Replace(strings.TrimPrefix(rule, "!"), "*", "any", 1)
		for _, host := range []string{rule, "a." + rule, "b.a." + rule} {
			want, err := publicsuffix.EffectiveTLDPlusOne(host)
			if err != nil {
				want = host
			}
			if got := router.Name(host); got != want {
				t.Errorf("%s is routed by %s, want %s", host, got, want)
			}
		}
	}
	if n < 8000 {
		t.Errorf("the list has %d rules", n)
	}
}

// engine returns an engine over stores in memory with n groups, and the stores of a lease of each.
func engine(t *testing.T, n int) (*groups.Local, groups.Table, []groups.Stores) {
	t.Helper()
	table, err := groups.Divide(n, groups.Routing{})
	if err != nil {
		t.Fatal(err)
	}
	e, err := groups.OpenLocal(t.Context(), new(memstore.Crawl), table, func(int) (groups.Stores, func() error, error) {
		db := new(memstore.DB)
		return groups.Stores{Crawl: db.Crawl(), Links: db.Links(), Segments: db.Segments(), Hosts: db.Hosts()}, db.Close, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	var stores []groups.Stores
	if _, err := e.Renew(t.Context(), "worker"); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		l, err := e.Acquire(t.Context(), "worker", i)
		if err != nil {
			t.Fatal(err)
		}
		s, err := e.Open(t.Context(), l)
		if err != nil {
			t.Fatal(err)
		}
		stores = append(stores, s)
	}
	return e, table, stores
}

func write(t *testing.T, s crawldb.Store, marks map[string]string) {
	t.Helper()
	if err := s.Update(t.Context(), crawldb.Batch{Marks: func() map[string]string { return marks }}); err != nil {
		t.Fatal(err)
	}
}

// TestItemsArriveOnceAndInOrder sends more than a row can hold, takes it in small bites, and
// removes what was folded.
func TestItemsArriveOnceAndInOrder(t *testing.T) {
	ctx := t.Context()
	e, table, stores := engine(t, 3)
	m := table.Member(0, table.Routing.Router())
	var mine []string
	for i := range 3000 {
		if url := fmt.Sprintf("http://%d.example%d.com/", i, i); !m.Owns(url) {
			mine = append(mine, url)
		}
	}
	sent := map[int][]string{}
	out := groups.NewOutbox(m, stores[0].Crawl)
	for i, url := range mine {
		out.Add(url, append([]byte("v"), make([]byte, 400)...))
		sent[m.Of(url)] = append(sent[m.Of(url)], url)
		if i%700 == 0 {
			marks, err := out.Cut(ctx)
			if err != nil {
				t.Fatal(err)
			}
			write(t, stores[0].Crawl, marks)
		}
	}
	marks, err := out.Cut(ctx)
	if err != nil {
		t.Fatal(err)
	}
	write(t, stores[0].Crawl, marks)
	if marks, err := out.Cut(ctx); marks != nil || err != nil {
		t.Errorf("an empty outbox has the marks %v, %v", marks, err)
	}

	for range 2 { // the second time nothing waits
		inboxes, err := groups.Poll(ctx, e, &table, []int{1, 2})
		if err != nil {
			t.Fatal(err)
		}
		for _, in := range inboxes {
			for !in.Empty() {
				rows, marks, err := in.Take(ctx, e, 1)
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range rows {
					for it, err := range groups.Items(r.Text) {
						if err != nil {
							t.Fatal(err)
						}
						if len(sent[in.Group]) == 0 || sent[in.Group][0] != it.URL || len(it.Value) != 401 {
							t.Fatalf("group %d has item %s", in.Group, it.URL)
						}
						sent[in.Group] = sent[in.Group][1:]
					}
				}
				write(t, stores[in.Group].Crawl, marks)
			}
			if len(sent[in.Group]) > 0 {
				t.Errorf("%d items did not arrive in group %d", len(sent[in.Group]), in.Group)
			}
		}
	}

	folded, err := groups.Folded(ctx, e, &table, 0)
	if err != nil {
		t.Fatal(err)
	}
	write(t, stores[0].Crawl, folded)
	for _, to := range []int{1, 2} {
		left, err := e.Marks(ctx, []groups.MarkName{{Group: 0, Name: groups.RowMark(to, 1)}, {Group: 0, Name: groups.OutboxMark(to)}})
		if err != nil || left[0] != "" {
			t.Errorf("row 1 for group %d is still there: %v", to, err)
		}
		if b, err := groups.ParseBounds(left[1]); err != nil || b.First != b.Next || b.First == 1 {
			t.Errorf("the bounds of the outbox for group %d are %v, %v", to, b, err)
		}
	}
	if folded, err := groups.Folded(ctx, e, &table, 0); len(folded) > 0 || err != nil {
		t.Errorf("there is more to remove: %v, %v", folded, err)
	}
}

func TestDamagedRowsAndMarksAreErrors(t *testing.T) {
	good := string(groups.AppendItem(nil, "http://example.com/", []byte("value")))
	for n := 1; n < len(good); n++ {
		var err error
		for _, err = range groups.Items(good[:n]) {
		}
		if err == nil {
			t.Errorf("a row cut after %d bytes is accepted", n)
		}
	}
	for _, mark := range []string{"1", "2 1", "0 1", "1 2 3", "x"} {
		if _, err := groups.ParseBounds(mark); err == nil {
			t.Errorf("bounds %q are accepted", mark)
		}
	}
	for _, mark := range []string{"0", "-1", "x"} {
		if _, err := groups.ParseInbox(mark); err == nil {
			t.Errorf("count %q is accepted", mark)
		}
	}
}

func TestTableIsKeptByControlStore(t *testing.T) {
	control := new(memstore.Crawl)
	first, _ := groups.Divide(2, groups.Routing{Hot: []string{"example.com"}})
	if _, err := groups.OpenLocal(t.Context(), control, first, nil); err != nil {
		t.Fatal(err)
	}
	other, _ := groups.Divide(5, groups.Routing{})
	e, err := groups.OpenLocal(t.Context(), control, other, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := e.Table(t.Context())
	if err != nil || got.Encode() != first.Encode() {
		t.Errorf("the table is %v, %v", got, err)
	}
	if _, err := groups.OpenLocal(t.Context(), new(memstore.Crawl), groups.Table{}, nil); err == nil {
		t.Error("a crawl without groups is opened")
	}
}

func TestStoresThatCannotBeOpenedAreReported(t *testing.T) {
	table, _ := groups.Divide(2, groups.Routing{})
	broken := errors.New("no disk")
	e, err := groups.OpenLocal(t.Context(), new(memstore.Crawl), table, func(int) (groups.Stores, func() error, error) {
		return groups.Stores{}, nil, broken
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Renew(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Acquire(t.Context(), "a", 1); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
}

func ExampleRouter() {
	routing := groups.DefaultRouting()
	table, _ := groups.Divide(4, routing)
	member := table.Member(1, routing.Router())
	for _, url := range []string{"http://www.example.co.uk/", "http://example.co.uk/page", "http://example.org/"} {
		fmt.Println(url, member.Of(url), member.Owns(url))
	}
	// Output:
	// http://www.example.co.uk/ 2 false
	// http://example.co.uk/page 2 false
	// http://example.org/ 3 false
}
