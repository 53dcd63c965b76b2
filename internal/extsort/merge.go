package extsort

// merger yields the records of many sources in order. Which of two equal records
// comes first cannot be told.
//
// It is a tree of losers (Knuth, volume 3, 5.4.1) in which each knows how much it has
// in common with the record that it lost to (Ng and Kakehi: Merging string sequences
// by longest common prefixes, 2008). Of two that lost to one record, the one that has
// more in common with it comes first; only if that is the same, their bytes are
// looked at, from there on. What a record has in common with the one before it
// stands in the file.
type merger struct {
	// tree has the record to be yielded, and at each node the one that lost there.
	tree []*source
	// taken says that the first was yielded, and is replaced when the next is asked
	// for: until then its memory is good.
	taken bool
}

func open(runs []run) (*merger, error) {
	m := &merger{tree: make([]*source, len(runs))}
	for i, r := range runs {
		s := &source{run: r, leaf: i}
		ok, err := s.advance()
		if err != nil {
			return nil, err
		}
		if s.same = 0; !ok {
			s.same = over
		}
		m.play(s)
	}
	return m, nil
}

func (m *merger) next() (Pair, bool, error) {
	if m.taken {
		m.taken = false
		s := m.tree[0]
		ok, err := s.advance()
		if err != nil {
			return Pair{}, false, err
		}
		if !ok {
			s.same = over
		}
		m.play(s)
	}
	if len(m.tree) == 0 || m.tree[0].same == over {
		return Pair{}, false, nil
	}
	m.taken = true
	return m.tree[0].cur, true, nil
}

// play lets a source find its place. While the tree is made it may wait for the
// other one of a node.
func (m *merger) play(s *source) {
	for i := (len(m.tree) + s.leaf) / 2; i > 0; i /= 2 {
		if m.tree[i] == nil {
			m.tree[i] = s
			return
		}
		if !s.before(m.tree[i]) {
			m.tree[i], s = s, m.tree[i]
		}
	}
	m.tree[0] = s
}

// over is what a source without a record has in common with the others.
const over = -1

// before reports whether the record of s comes before that of t, and notes what they
// have in common with the one that comes later.
func (s *source) before(t *source) bool {
	if s.same != t.same || s.same == over {
		return s.same >= t.same
	}
	same, before := s.cur.common(t.cur, s.same)
	if before {
		t.same = same
	} else {
		s.same = same
	}
	return before
}

// common returns how much two records have in common that have that much in common
// at least, and whether the first one comes before the other. It counts bytes of the
// key, and, if the keys are the same, one and the bytes of the value.
func (p Pair) common(q Pair, known int) (n int, before bool) {
	if n = known; n <= len(p.Key) {
		n += shared(p.Key[n:], q.Key[n:])
		switch {
		case n < len(p.Key):
			return n, n < len(q.Key) && p.Key[n] < q.Key[n]
		case n < len(q.Key):
			return n, true
		}
		n++
	}
	v := n - len(p.Key) - 1
	v += shared(p.Value[v:], q.Value[v:])
	n = len(p.Key) + 1 + v
	return n, v == len(p.Value) || v < len(q.Value) && p.Value[v] < q.Value[v]
}
