package segmenttest

import (
	"slices"
	"strings"

	"github.com/recrawl/recrawl/segment"
)

func invalidNameIsErrName(c *check) {
	s := c.Store()
	for _, bad := range []string{"", ".", "..", "-", "-a", "A", "aB", "a.b", "a/b", "/a", "a/", "a\\b", "a:b", "a b", "a\x00", "a\n", "ä", "\xff", "a.open", "../a", strings.Repeat("a", 65)} {
		for _, at := range [][2]string{{bad, "part"}, {"seg", bad}} {
			_, err := s.Stat(c.Ctx, at[0], at[1])
			c.Is(err, segment.ErrName, "Stat %q", at)
			c.Is(c.readError(c.Ctx, s, at[0], at[1], 0), segment.ErrName, "Read %q", at)
			w, err := s.Append(c.Ctx, at[0], at[1], 0)
			if err == nil {
				w.Close()
			}
			c.Is(err, segment.ErrName, "Append %q", at)
		}
		c.Is(s.Remove(c.Ctx, bad), segment.ErrName, "Remove %q", bad)
	}
	c.lists(s)
}

func everyValidNameCanBeUsed(c *check) {
	s := c.Store()
	names := []string{"0", "_", "a", "a-", "a--b", "__", "con", "20260102030405-000", "crawl_generate", strings.Repeat("z", 64), strings.Repeat("0", 64)}
	for _, seg := range names {
		for _, part := range names {
			c.put(s, seg, part, true, []byte(seg+" "+part))
		}
	}
	c.Twice(s, func(s segment.Store) {
		for _, seg := range names {
			for _, part := range names {
				c.holds(s, seg, part, true, [][]byte{[]byte(seg + " " + part)})
			}
		}
	})
}

func listIsInOrderOfNames(c *check) {
	s := c.Store()
	c.lists(s)
	names := []string{"b", "a", "a_", "a-", "a0", "aa", "20260102030405-001", "20260102030405-000", "_", "0-"}
	for i, name := range names {
		c.put(s, name, "part", i%2 == 0)
	}
	slices.Sort(names)
	s = c.Twice(s, func(s segment.Store) { c.lists(s, names...) })
	c.Must(s.Remove(c.Ctx, names[0]), "Remove")
	c.Twice(s, func(s segment.Store) { c.lists(s, names[1:]...) })
}
