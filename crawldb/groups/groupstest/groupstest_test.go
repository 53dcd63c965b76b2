package groupstest_test

import (
	"context"
	"errors"
	"iter"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/crawldb/groups"
	"github.com/recrawl/recrawl/crawldb/groups/groupstest"
	"github.com/recrawl/recrawl/internal/kit"
	"github.com/recrawl/recrawl/segment"
	"github.com/recrawl/recrawl/stores/memstore"
)

// raw is a sound engine, and its stores without fences.
type raw struct {
	*groups.Local
	stores map[int]groups.Stores
}

func open(t groups.Table) (*raw, error) {
	hosts := new(memstore.Hosts)
	r := &raw{stores: map[int]groups.Stores{}}
	var err error
	r.Local, err = groups.OpenLocal(context.Background(), new(memstore.Crawl), t, func(id int) (groups.Stores, func() error, error) {
		db := new(memstore.DB)
		r.stores[id] = groups.Stores{Crawl: db.Crawl(), Links: db.Links(), Segments: db.Segments(), Hosts: hosts}
		return r.stores[id], db.Close, nil
	})
	return r, err
}

func TestSoundEngine(t *testing.T) {
	groupstest.Run(t, groupstest.Harness{Open: func(t groups.Table) (groups.Engine, error) { return open(t) }})
}

func TestCheckReportsBrokenRules(t *testing.T) {
	err := groupstest.Check(t.Context(), groupstest.Harness{Open: func(groups.Table) (groups.Engine, error) { return nil, errors.New("no engine") }})
	var broken *kit.Error
	if !errors.As(err, &broken) {
		t.Errorf("error %v of an engine that cannot be opened", err)
	}
}

// broken is an engine with other methods where they are not nil.
type broken struct {
	*raw
	state    func(context.Context) (groups.State, error)
	renew    func(context.Context, string) ([]groups.Lease, error)
	acquire  func(context.Context, string, int) (groups.Lease, error)
	release  func(context.Context, groups.Lease) error
	expel    func(context.Context, groups.WorkerState) error
	setTable func(context.Context, groups.Table) error
	open     func(context.Context, groups.Lease) (groups.Stores, error)
	marks    func(context.Context, []groups.MarkName) ([]string, error)
	post     func(context.Context, int, string) error
	close    func() error
}

func (b *broken) State(ctx context.Context) (groups.State, error) { return b.state(ctx) }
func (b *broken) Renew(ctx context.Context, owner string) ([]groups.Lease, error) {
	return b.renew(ctx, owner)
}
func (b *broken) Acquire(ctx context.Context, owner string, g int) (groups.Lease, error) {
	return b.acquire(ctx, owner, g)
}
func (b *broken) Release(ctx context.Context, l groups.Lease) error     { return b.release(ctx, l) }
func (b *broken) Expel(ctx context.Context, w groups.WorkerState) error { return b.expel(ctx, w) }
func (b *broken) SetTable(ctx context.Context, t groups.Table) error    { return b.setTable(ctx, t) }
func (b *broken) Post(ctx context.Context, g int, row string) error     { return b.post(ctx, g, row) }
func (b *broken) Close() error                                          { return b.close() }
func (b *broken) Open(ctx context.Context, l groups.Lease) (groups.Stores, error) {
	return b.open(ctx, l)
}
func (b *broken) Marks(ctx context.Context, names []groups.MarkName) ([]string, error) {
	return b.marks(ctx, names)
}

// crawlWith is a crawl db with another Update or UpdateAll.
type crawlWith struct {
	crawldb.Store
	update    func(context.Context, crawldb.Batch) error
	updateAll func(context.Context, iter.Seq2[crawldb.Batch, error]) error
}

func (c crawlWith) Update(ctx context.Context, b crawldb.Batch) error { return c.update(ctx, b) }
func (c crawlWith) UpdateAll(ctx context.Context, all iter.Seq2[crawldb.Batch, error]) error {
	return c.updateAll(ctx, all)
}

// busySegments cannot be taken over while a writer is open.
type busySegments struct {
	segment.Store
	busy map[string]bool
}

func (s busySegments) Append(ctx context.Context, seg, part string, keep int) (segment.BlockWriter, error) {
	if s.busy[seg+part] {
		return nil, segment.ErrBusy
	}
	s.busy[seg+part] = true
	return s.Store.Append(ctx, seg, part, keep)
}

func TestRulesFindFaults(t *testing.T) {
	type fault struct {
		fault, rule string
		breakIt     func(*broken)
	}
	// unfenced replaces some of the stores of a lease by those without a fence.
	unfenced := func(replace func(fenced *groups.Stores, raw groups.Stores)) func(*broken) {
		return func(b *broken) {
			b.open = func(ctx context.Context, l groups.Lease) (groups.Stores, error) {
				s, err := b.raw.Open(ctx, l)
				if err == nil {
					replace(&s, b.raw.stores[l.Group])
				}
				return s, err
			}
		}
	}
	faults := []fault{
		{"an owner may acquire its group again", "a free group is acquired once", func(b *broken) {
			b.acquire = func(ctx context.Context, owner string, g int) (groups.Lease, error) {
				held, _ := b.raw.Renew(ctx, owner)
				for _, l := range held {
					if l.Group == g {
						return l, nil
					}
				}
				return b.raw.Acquire(ctx, owner, g)
			}
		}},
		{"every rival acquires", "exactly one of many rivals acquires a group", func(b *broken) {
			b.acquire = func(ctx context.Context, owner string, g int) (groups.Lease, error) {
				return groups.Lease{Group: g, Owner: owner, Epoch: 1}, nil
			}
		}},
		{"Acquire makes the worker known", "a worker that is not known acquires nothing", func(b *broken) {
			b.acquire = func(ctx context.Context, owner string, g int) (groups.Lease, error) {
				b.raw.Renew(ctx, owner)
				return b.raw.Acquire(ctx, owner, g)
			}
		}},
		{"an unknown group is taken", "there is no group beyond the table", func(b *broken) {
			b.acquire = func(ctx context.Context, owner string, g int) (groups.Lease, error) {
				if l, err := b.raw.Acquire(ctx, owner, g); !errors.Is(err, groups.ErrNoGroup) {
					return l, err
				}
				return groups.Lease{}, groups.ErrTaken
			}
		}},
		{"epochs do not grow", "each lease has a greater epoch", func(b *broken) {
			b.acquire = func(ctx context.Context, owner string, g int) (groups.Lease, error) {
				l, err := b.raw.Acquire(ctx, owner, g)
				l.Epoch = 1
				return l, err
			}
		}},
		{"Renew returns no leases", "a renewal counts, and returns the leases that are held", func(b *broken) {
			b.renew = func(ctx context.Context, owner string) ([]groups.Lease, error) {
				_, err := b.raw.Renew(ctx, owner)
				return nil, err
			}
		}},
		{"Release does nothing", "a renewal after a release does not return the group", func(b *broken) {
			b.release = func(context.Context, groups.Lease) error { return nil }
		}},
		{"Expel ignores the counter", "a worker that has renewed is not expelled", func(b *broken) {
			b.expel = func(ctx context.Context, w groups.WorkerState) error {
				s, err := b.raw.State(ctx)
				for _, now := range s.Workers {
					if now.Owner == w.Owner {
						return b.raw.Expel(ctx, now)
					}
				}
				return err
			}
		}},
		{"Expel keeps the groups", "the groups of an expelled worker are free", func(b *broken) {
			b.expel = func(ctx context.Context, w groups.WorkerState) error { return nil }
		}},
		{"a worker that renews gets its groups back", "an expelled worker that renews holds nothing", func(b *broken) {
			had := map[string][]groups.Lease{}
			b.renew = func(ctx context.Context, owner string) ([]groups.Lease, error) {
				held, err := b.raw.Renew(ctx, owner)
				if len(held) == 0 {
					held = had[owner]
				}
				had[owner] = held
				return held, err
			}
			b.acquire = func(ctx context.Context, owner string, g int) (groups.Lease, error) {
				l, err := b.raw.Acquire(ctx, owner, g)
				had[owner] = []groups.Lease{l}
				return l, err
			}
		}},
		{"a stale Release frees the group", "a lease is released once", func(b *broken) {
			b.release = func(ctx context.Context, l groups.Lease) error {
				s, err := b.raw.State(ctx)
				if err == nil && s.Groups[l.Group].Owner == l.Owner {
					l.Epoch = s.Groups[l.Group].Epoch
				}
				return b.raw.Release(ctx, l)
			}
		}},
		{"Renew waits for updates", "a renewal does not wait for an update", func(b *broken) {
			writing := make(chan struct{}, 1)
			b.renew = func(ctx context.Context, owner string) ([]groups.Lease, error) {
				writing <- struct{}{}
				defer func() { <-writing }()
				return b.raw.Renew(ctx, owner)
			}
			b.open = func(ctx context.Context, l groups.Lease) (groups.Stores, error) {
				s, err := b.raw.Open(ctx, l)
				crawl := s.Crawl
				s.Crawl = crawlWith{crawl, func(ctx context.Context, batch crawldb.Batch) error {
					writing <- struct{}{}
					defer func() { <-writing }()
					return crawl.Update(ctx, batch)
				}, nil}
				return s, err
			}
		}},
		{"Renew ignores its context", "a done context changes nothing", func(b *broken) {
			b.renew = func(ctx context.Context, owner string) ([]groups.Lease, error) {
				return b.raw.Renew(context.WithoutCancel(ctx), owner)
			}
		}},
		{"Close of a store of a lease closes it", "the stores of a lease can be written", unfenced(func(s *groups.Stores, raw groups.Stores) { s.Crawl = raw.Crawl })},
		{"Update has no fence", "a fenced Update changes nothing", unfenced(func(s *groups.Stores, raw groups.Stores) { s.Crawl = raw.Crawl })},
		{"UpdateAll has no fence", "a fenced UpdateAll changes nothing", unfenced(func(s *groups.Stores, raw groups.Stores) {
			s.Crawl = crawlWith{s.Crawl, s.Crawl.Update, func(ctx context.Context, all iter.Seq2[crawldb.Batch, error]) error {
				return crawldb.UpdateAll(ctx, raw.Crawl, all)
			}}
		})},
		{"Merge has no fence", "a fenced Merge changes nothing", unfenced(func(s *groups.Stores, raw groups.Stores) { s.Links = raw.Links })},
		{"hosts have no fence", "a fenced Update of a host changes nothing", unfenced(func(s *groups.Stores, raw groups.Stores) { s.Hosts = raw.Hosts })},
		{"segments have no fence", "fenced segments change nothing", unfenced(func(s *groups.Stores, raw groups.Stores) { s.Segments = raw.Segments })},
		{"a part stays busy", "the next owner writes where the last one has left a part", func(b *broken) {
			busy := map[string]bool{}
			unfenced(func(s *groups.Stores, _ groups.Stores) { s.Segments = busySegments{s.Segments, busy} })(b)
		}},
		{"only the owner is checked", "an old lease of the same worker is fenced", unfenced(func(s *groups.Stores, raw groups.Stores) { s.Crawl = raw.Crawl })},
		{"a released lease can write", "a released lease is fenced", unfenced(func(s *groups.Stores, raw groups.Stores) { s.Crawl = raw.Crawl })},
		{"the fence is checked before the update, not in it", "an update that a takeover meets is done before it or not at all", func(b *broken) {
			b.open = func(ctx context.Context, l groups.Lease) (groups.Stores, error) {
				s, err := b.raw.Open(ctx, l)
				fenced, store := s.Crawl, b.raw.stores[l.Group].Crawl
				s.Crawl = crawlWith{fenced, func(ctx context.Context, batch crawldb.Batch) error {
					if err := fenced.Update(ctx, crawldb.Batch{}); err != nil {
						return err
					}
					for i := range batch.URLs { // the new owner begins here
						batch.Next(i, nil)
					}
					for {
						state, _ := b.raw.State(ctx)
						if state.Groups[l.Group].Owner != l.Owner {
							break
						}
						time.Sleep(time.Millisecond)
					}
					store.Update(ctx, batch)
					return crawldb.ErrFenced
				}, nil}
				return s, err
			}
		}},
		{"groups share a crawl db", "records, links, segments and marks belong to a group", func(b *broken) {
			unfenced(func(s *groups.Stores, raw groups.Stores) { s.Crawl = b.raw.stores[0].Crawl })(b)
		}},
		{"each group has hosts of its own", "hosts belong to all groups", unfenced(func(s *groups.Stores, raw groups.Stores) { s.Hosts = new(memstore.Hosts) })},
		{"Marks sorts", "Marks reads all groups without a lease", func(b *broken) {
			b.marks = func(ctx context.Context, names []groups.MarkName) ([]string, error) {
				values, err := b.raw.Marks(ctx, names)
				if len(values) > 2 {
					values[0], values[1] = values[1], values[0]
				}
				return values, err
			}
		}},
		{"rows of two groups share their numbers", "posted rows are numbered in order", func(b *broken) {
			b.post = func(ctx context.Context, g int, row string) error {
				b.raw.Post(ctx, 1, row)
				return b.raw.Post(ctx, g, row)
			}
		}},
		{"a row in eight is lost", "rows that many post are all there", func(b *broken) {
			n := 0
			turn := make(chan struct{}, 1)
			b.post = func(ctx context.Context, g int, row string) error {
				turn <- struct{}{}
				defer func() { <-turn }()
				if n++; n%8 == 0 {
					return nil
				}
				return b.raw.Post(ctx, g, row)
			}
		}},
		{"all rows but the last are removed", "posted rows that are not folded are kept", func(b *broken) {
			n := int64(0)
			b.post = func(ctx context.Context, g int, row string) error {
				n++
				err := b.raw.Post(ctx, g, row)
				if err == nil && n == 5 {
					s := b.raw.stores[g].Crawl
					mark, _ := s.Mark(ctx, groups.InboxMark(groups.Outside))
					s.Update(ctx, crawldb.Batch{Marks: crawldb.Mark(groups.InboxMark(groups.Outside), "5")})
					err = b.raw.Post(ctx, g, row)
					s.Update(ctx, crawldb.Batch{Marks: crawldb.Mark(groups.InboxMark(groups.Outside), mark)})
				}
				return err
			}
		}},
		{"SetTable does nothing", "the table is the one that was set last", func(b *broken) {
			b.setTable = func(context.Context, groups.Table) error { return nil }
		}},
		{"any version is taken", "a table of another version is refused", func(b *broken) {
			b.setTable = func(ctx context.Context, t groups.Table) error {
				now, _ := b.raw.Table(ctx)
				t.Version = now.Version + 1
				return b.raw.SetTable(ctx, t)
			}
		}},
		{"a bad table is taken", "a bad table is refused", func(b *broken) {
			b.setTable = func(context.Context, groups.Table) error { return nil }
		}},
		{"a second Close fails", "Close may be repeated", func(b *broken) {
			n := 0
			b.close = func() error {
				if n++; n > 1 {
					return errors.New("closed")
				}
				return b.raw.Close()
			}
		}},
	}
	var all []kit.Mutant[groupstest.Harness]
	for _, f := range faults {
		all = append(all, kit.Mutant[groupstest.Harness]{Fault: f.fault, Rule: f.rule, Harness: groupstest.Harness{
			Patience: 50 * time.Millisecond,
			Open: func(t groups.Table) (groups.Engine, error) {
				r, err := open(t)
				if err != nil {
					return nil, err
				}
				b := &broken{r, r.State, r.Renew, r.Acquire, r.Release, r.Expel, r.SetTable, r.Open, r.Marks, r.Post, r.Close}
				f.breakIt(b)
				return b, nil
			},
		}})
	}
	kit.Catch(t, groupstest.Kit, all, nil)
}
