package pgstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/crawldb/groups"
	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/linkdb"
)

var _ groups.Engine = (*Groups)(nil)

// Groups is a crawl that is divided among groups, so that several processes can crawl it together: a
// [groups.Engine]. The schema of the crawl has the table of the groups, the leases, the workers,
// what is posted from outside, the host db, and group 0; group N has the schema CRAWL_gN. The epoch of a
// lease is the number of the opening of its group, which every change checks in its
// transaction.
//
// It may be used from many goroutines at once.
type Groups struct {
	db  *DB
	dsn string
	o   Options

	mu     sync.Mutex
	closed bool
	pools  map[int]*DB          // by group; their stores are not used
	leases map[groups.Lease]*DB // opened for a lease
}

// mostGroupConns bounds the connections for each group that a process has.
const mostGroupConns = 3

// OpenGroups opens a divided crawl. If the crawl is not divided yet, it divides it by the first
// table: a crawl with records can only become one group. The connection string and the options are
// those of [Open]; with Options.ReadOnly the crawl must be divided, and nothing in it is changed: see
// [groups.Merged].
func OpenGroups(ctx context.Context, dsn string, first groups.Table, o Options) (*Groups, error) {
	g, err := openGroups(ctx, dsn, first, o)
	if err != nil {
		return nil, fmt.Errorf("pgstore: open groups: %w", err)
	}
	return g, nil
}

func openGroups(ctx context.Context, dsn string, first groups.Table, o Options) (_ *Groups, err error) {
	config, name, err := parse(dsn)
	if err != nil {
		return nil, err
	}
	const longest = 63 - len("_g1023")
	if len(name) > longest {
		return nil, fmt.Errorf("the name of a divided crawl has at most %d characters", longest)
	}
	g := &Groups{db: newDB(config, name, o), dsn: dsn, o: o, pools: map[int]*DB{}, leases: map[groups.Lease]*DB{}}
	defer func() {
		if err != nil {
			g.release()
		}
	}()
	if err := g.db.connect(ctx, config, migrations()); err != nil {
		return nil, err
	}
	g.db.makeStores()
	divided, err := g.db.isDivided(ctx)
	if err != nil {
		return nil, err
	}
	switch {
	case o.ReadOnly && divided:
		return g, nil
	case o.ReadOnly:
		return nil, ErrReadOnly
	case !divided:
		if err := g.divide(ctx, first); err != nil {
			return nil, err
		}
	}
	s, err := g.State(ctx)
	if err != nil {
		return nil, err
	}
	if len(s.Workers) == 0 { // the last one has left, or was killed
		err = g.db.hosts.recover(ctx)
	}
	return g, err
}

// divide stores the first table, while no other process has the crawl open.
func (g *Groups) divide(ctx context.Context, first groups.Table) error {
	if err := first.Check(); err != nil {
		return err
	}
	for began := time.Now(); ; {
		err := g.db.own(ctx)
		if err == nil {
			break
		}
		divided, e := g.db.isDivided(ctx)
		if e == nil && divided {
			return nil // by another process
		}
		if !errors.Is(err, ErrLocked) || time.Since(began) > 2*g.db.leaseTime {
			return err
		}
		time.Sleep(g.db.leaseTime / 20)
	}
	defer g.db.stopSigns()
	if divided, err := g.db.isDivided(ctx); err != nil || divided {
		return err
	}
	if len(first.Groups) > 1 {
		var used bool
		if err := g.db.pool.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM page) OR EXISTS (SELECT 1 FROM part)`).Scan(&used); err != nil {
			return err
		}
		if used {
			return fmt.Errorf("%s has records or segments, which belong to one group: divide it into one group first", g.db.place)
		}
	}
	if err := g.makeGroups(ctx, first); err != nil {
		return err
	}
	g.db.stopSigns() // the lease lasts for some seconds more
	return g.change(ctx, func(ctx context.Context, tx pgx.Tx, _ bool) error {
		// What was opened for the whole crawl is fenced, and a package that knows no groups kept away.
		for _, statement := range []string{
			`UPDATE crawl_group SET opening = opening + 1 WHERE id = 0`,
			`UPDATE crawl_lease SET held = false, beat = beat + 1 WHERE id = 0`,
			`UPDATE schema_version SET reader = 2 WHERE id = 0`,
		} {
			if _, err := tx.Exec(ctx, statement); err != nil {
				return err
			}
		}
		tag, err := tx.Exec(ctx, `INSERT INTO group_table (id, version, body) VALUES (0, $1, $2) ON CONFLICT (id) DO NOTHING`, first.Version, []byte(first.Encode()))
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		return setGroups(ctx, tx, first)
	})
}

// setGroups makes the rows of the groups of a table, and removes others.
func setGroups(ctx context.Context, tx pgx.Tx, t groups.Table) error {
	ids := make([]int32, len(t.Groups))
	for i, x := range t.Groups {
		ids[i] = int32(x.ID)
	}
	if _, err := tx.Exec(ctx, `DELETE FROM group_lease WHERE NOT id = ANY ($1::integer[])`, ids); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `INSERT INTO group_lease (id, owner, epoch) SELECT id, '', 0 FROM unnest($1::integer[]) AS u (id) ON CONFLICT (id) DO NOTHING`, ids)
	return err
}

// schema returns the name of the schema of a group.
func (g *Groups) schema(group int) string {
	if group == 0 {
		return g.db.name
	}
	return fmt.Sprintf("%s_g%d", g.db.name, group)
}

// of returns the quoted name of a table of a group.
func (g *Groups) of(group int, table string) string {
	return pgx.Identifier{g.schema(group), table}.Sanitize()
}

// makeGroups makes the schemas of the groups of a table.
func (g *Groups) makeGroups(ctx context.Context, t groups.Table) error {
	for _, x := range t.Groups {
		if _, err := g.pool(ctx, x.ID); err != nil {
			return err
		}
	}
	return nil
}

// pool returns a DB with connections to a group, whose schema it makes.
func (g *Groups) pool(ctx context.Context, group int) (*DB, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, errClosed
	}
	if p := g.pools[group]; p != nil {
		return p, nil
	}
	config, _, err := parse(g.dsn)
	if err != nil {
		return nil, err
	}
	config.MaxConns = mostGroupConns
	config.ConnConfig.RuntimeParams["search_path"] = pgx.Identifier{g.schema(group)}.Sanitize()
	o := g.o
	o.MustExist = false
	p := newDB(config, g.schema(group), o)
	if err := p.connect(ctx, config, migrations()); err != nil {
		p.release()
		return nil, err
	}
	g.pools[group] = p
	return p, nil
}

var errClosed = errors.New("pgstore: engine is closed")

// ready returns why a call cannot begin.
func (g *Groups) ready(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return errClosed
	}
	return nil
}

// errDone ends a change that needs no commit.
var errDone = errors.New("done")

// change makes a change in a transaction, which is repeated while the server cannot be reached. unanswered
// says that the commit of an earlier attempt was sent, and its outcome is not known: what f finds may
// be its own.
func (g *Groups) change(ctx context.Context, f func(ctx context.Context, tx pgx.Tx, unanswered bool) error) error {
	if err := g.ready(ctx); err != nil {
		return err
	}
	if g.db.readOnly {
		return ErrReadOnly
	}
	unanswered := false
	err := g.db.retry(ctx, func(ctx context.Context) error {
		tx, err := g.db.pool.Begin(ctx)
		if err != nil {
			return err
		}
		defer tx.Rollback(context.WithoutCancel(ctx)) // does nothing after a commit
		if err := f(ctx, tx, unanswered); err != nil {
			return err
		}
		err = tx.Commit(context.WithoutCancel(ctx))
		unanswered = unanswered || isUnanswered(err)
		return err
	})
	if err == errDone {
		return nil
	}
	return err
}

// State implements [groups.Coordinator].
func (g *Groups) State(ctx context.Context) (groups.State, error) {
	var s groups.State
	if err := g.ready(ctx); err != nil {
		return s, err
	}
	err := g.db.retry(ctx, func(ctx context.Context) error {
		s = groups.State{}
		return pgx.BeginTxFunc(ctx, g.db.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
			rows, err := tx.Query(ctx, `SELECT id, owner, epoch FROM group_lease ORDER BY id`)
			if err != nil {
				return err
			}
			var id int
			var owner []byte
			var n int64
			if _, err := pgx.ForEachRow(rows, []any{&id, &owner, &n}, func() error {
				s.Groups = append(s.Groups, groups.GroupState{Group: id, Owner: string(owner), Epoch: n})
				return nil
			}); err != nil {
				return err
			}
			if rows, err = tx.Query(ctx, `SELECT owner, counter FROM worker ORDER BY owner`); err != nil {
				return err
			}
			_, err = pgx.ForEachRow(rows, []any{&owner, &n}, func() error {
				s.Workers = append(s.Workers, groups.WorkerState{Owner: string(owner), Counter: n})
				return nil
			})
			return err
		})
	})
	if err != nil {
		return groups.State{}, fmt.Errorf("pgstore: state of the groups: %w", err)
	}
	return s, nil
}

// Renew implements [groups.Coordinator].
func (g *Groups) Renew(ctx context.Context, owner string) (held []groups.Lease, err error) {
	err = g.change(ctx, func(ctx context.Context, tx pgx.Tx, _ bool) error {
		held = nil
		if _, err := tx.Exec(ctx, `INSERT INTO worker (owner, counter) VALUES ($1, 1) ON CONFLICT (owner) DO UPDATE SET counter = worker.counter + 1`, []byte(owner)); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, `SELECT id, epoch FROM group_lease WHERE owner = $1 ORDER BY id`, []byte(owner))
		if err != nil {
			return err
		}
		l := groups.Lease{Owner: owner}
		_, err = pgx.ForEachRow(rows, []any{&l.Group, &l.Epoch}, func() error { held = append(held, l); return nil })
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("pgstore: renew %q: %w", owner, err)
	}
	return held, nil
}

// Acquire implements [groups.Coordinator]. A worker is locked before its groups, as in Expel.
func (g *Groups) Acquire(ctx context.Context, owner string, group int) (groups.Lease, error) {
	l := groups.Lease{Group: group, Owner: owner}
	err := g.change(ctx, func(ctx context.Context, tx pgx.Tx, unanswered bool) error {
		var has []byte
		var known int
		err := tx.QueryRow(ctx, `SELECT 1 FROM worker WHERE owner = $1 FOR SHARE`, []byte(owner)).Scan(&known)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		err = tx.QueryRow(ctx, `SELECT owner, epoch FROM group_lease WHERE id = $1 FOR UPDATE`, group).Scan(&has, &l.Epoch)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return fmt.Errorf("%w: %d", groups.ErrNoGroup, group)
		case err != nil:
			return err
		case unanswered && string(has) == owner:
			return errDone
		case len(has) > 0 || known == 0 || owner == "":
			return groups.ErrTaken
		}
		if err := g.nextEpoch(ctx, tx, group, &l.Epoch); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `UPDATE group_lease SET owner = $2, epoch = $3 WHERE id = $1`, group, []byte(owner), l.Epoch)
		return err
	})
	if err != nil {
		return groups.Lease{}, fmt.Errorf("pgstore: acquire group %d for %q: %w", group, owner, err)
	}
	return l, nil
}

// nextEpoch fences the lease of a group. It waits for what is being committed with it.
func (g *Groups) nextEpoch(ctx context.Context, tx pgx.Tx, group int, epoch *int64) error {
	return tx.QueryRow(ctx, `UPDATE `+g.of(group, "crawl_group")+` SET opening = opening + 1 WHERE id = 0 RETURNING opening`).Scan(epoch)
}

// Release implements [groups.Coordinator].
func (g *Groups) Release(ctx context.Context, l groups.Lease) error {
	err := g.change(ctx, func(ctx context.Context, tx pgx.Tx, unanswered bool) error {
		var owner []byte
		var epoch int64
		err := tx.QueryRow(ctx, `SELECT owner, epoch FROM group_lease WHERE id = $1 FOR UPDATE`, l.Group).Scan(&owner, &epoch)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return fmt.Errorf("%w: %d", groups.ErrNoGroup, l.Group)
		case err != nil:
			return err
		case string(owner) != l.Owner || epoch != l.Epoch:
			if unanswered {
				return errDone
			}
			return ErrFenced
		}
		return g.free(ctx, tx, l.Group)
	})
	if err != nil {
		return fmt.Errorf("pgstore: release group %d: %w", l.Group, err)
	}
	return nil
}

// free ends the lease of a group, whose row is locked.
func (g *Groups) free(ctx context.Context, tx pgx.Tx, group int) error {
	var epoch int64
	if err := g.nextEpoch(ctx, tx, group, &epoch); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `UPDATE group_lease SET owner = '' WHERE id = $1`, group)
	return err
}

// Expel implements [groups.Coordinator].
func (g *Groups) Expel(ctx context.Context, w groups.WorkerState) error {
	err := g.change(ctx, func(ctx context.Context, tx pgx.Tx, unanswered bool) error {
		var counter int64
		err := tx.QueryRow(ctx, `SELECT counter FROM worker WHERE owner = $1 FOR UPDATE`, []byte(w.Owner)).Scan(&counter)
		switch {
		case errors.Is(err, pgx.ErrNoRows) && unanswered:
			return errDone
		case errors.Is(err, pgx.ErrNoRows) || err == nil && counter != w.Counter:
			return groups.ErrTaken
		case err != nil:
			return err
		}
		rows, err := tx.Query(ctx, `SELECT id FROM group_lease WHERE owner = $1 ORDER BY id FOR UPDATE`, []byte(w.Owner))
		if err != nil {
			return err
		}
		held, err := pgx.CollectRows(rows, pgx.RowTo[int])
		if err != nil {
			return err
		}
		for _, group := range held {
			if err := g.free(ctx, tx, group); err != nil {
				return err
			}
		}
		_, err = tx.Exec(ctx, `DELETE FROM worker WHERE owner = $1`, []byte(w.Owner))
		return err
	})
	if err != nil {
		return fmt.Errorf("pgstore: expel %q: %w", w.Owner, err)
	}
	return nil
}

// Table implements [groups.Engine].
func (g *Groups) Table(ctx context.Context) (groups.Table, error) {
	if err := g.ready(ctx); err != nil {
		return groups.Table{}, err
	}
	var body []byte
	err := g.db.retry(ctx, func(ctx context.Context) error {
		return g.db.pool.QueryRow(ctx, `SELECT body FROM group_table WHERE id = 0`).Scan(&body)
	})
	if err != nil {
		return groups.Table{}, fmt.Errorf("pgstore: table of the groups: %w", err)
	}
	return groups.DecodeTable(string(body))
}

// SetTable implements [groups.Engine].
func (g *Groups) SetTable(ctx context.Context, t groups.Table) error {
	if err := g.ready(ctx); err != nil {
		return err
	}
	if err := t.Check(); err != nil {
		return err
	}
	if g.db.readOnly {
		return ErrReadOnly
	}
	if err := g.makeGroups(ctx, t); err != nil {
		return fmt.Errorf("pgstore: replace the table of the groups: %w", err)
	}
	err := g.change(ctx, func(ctx context.Context, tx pgx.Tx, unanswered bool) error {
		var version int64
		var body []byte
		if err := tx.QueryRow(ctx, `SELECT version, body FROM group_table WHERE id = 0 FOR UPDATE`).Scan(&version, &body); err != nil {
			return err
		}
		switch {
		case unanswered && version == t.Version && string(body) == t.Encode():
			return errDone
		case version+1 != t.Version:
			return fmt.Errorf("version %d after %d: %w", t.Version, version, groups.ErrTaken)
		}
		if _, err := tx.Exec(ctx, `UPDATE group_table SET version = $1, body = $2 WHERE id = 0`, t.Version, []byte(t.Encode())); err != nil {
			return err
		}
		return setGroups(ctx, tx, t)
	})
	if err != nil {
		return fmt.Errorf("pgstore: replace the table of the groups: %w", err)
	}
	return nil
}

// groupCrawl, groupLinks and groupHosts belong to the engine: Close does nothing.
type groupCrawl struct{ *crawlStore }

func (groupCrawl) Close() error { return nil }

type groupLinks struct{ *linkStore }

func (groupLinks) Close() error { return nil }

type groupHosts struct{ *hostStore }

func (groupHosts) Close() error { return nil }

var (
	_ crawldb.DueStore  = groupCrawl{}
	_ crawldb.BulkStore = groupCrawl{}
	_ crawldb.MarkStore = groupCrawl{}
	_ linkdb.Store      = groupLinks{}
	_ hostdb.Store      = groupHosts{}
)

// Open implements [groups.Engine].
func (g *Groups) Open(ctx context.Context, l groups.Lease) (groups.Stores, error) {
	if err := g.ready(ctx); err != nil {
		return groups.Stores{}, err
	}
	p, err := g.pool(ctx, l.Group)
	if err != nil {
		return groups.Stores{}, fmt.Errorf("pgstore: open group %d: %w", l.Group, err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	db := g.leases[l]
	if db == nil {
		maps.DeleteFunc(g.leases, func(old groups.Lease, _ *DB) bool { return old.Group == l.Group && old.Epoch < l.Epoch })
		db = &DB{name: p.name, place: p.place, readOnly: p.readOnly, patience: p.patience, log: p.log, leaseTime: p.leaseTime, pool: p.pool, opening: l.Epoch}
		db.makeStores()
		db.hosts = hostStore{view: newView(g.db, hostdb.ErrClosed), details: g.db.hosts.details, fence: &fence{g.of(l.Group, "crawl_group"), l.Epoch}}
		g.leases[l] = db
	}
	return groups.Stores{Crawl: groupCrawl{&db.crawl}, Links: groupLinks{&db.links}, Segments: &db.segments, Hosts: groupHosts{&db.hosts}}, nil
}

// fence is the row that every change made with a lease checks.
type fence struct {
	table string
	epoch int64
}

// guard makes a statement that changes nothing once the lease has ended. The statement has a
// condition.
func (f *fence) guard(query string, args []any) (string, []any) {
	condition := fmt.Sprintf(` WHERE EXISTS (SELECT 1 FROM %s WHERE id = 0 AND opening = $%d FOR SHARE) AND `, f.table, len(args)+1)
	return strings.Replace(query, ` WHERE `, condition, 1), append(args, f.epoch)
}

// check returns ErrFenced if the lease has ended.
func (f *fence) check(ctx context.Context, db *DB) error {
	var opening int64
	err := db.pool.QueryRow(ctx, `SELECT opening FROM `+f.table+` WHERE id = 0`).Scan(&opening)
	if err == nil && opening != f.epoch {
		err = ErrFenced
	}
	return err
}

// Marks implements [groups.Engine].
func (g *Groups) Marks(ctx context.Context, names []groups.MarkName) ([]string, error) {
	if err := g.ready(ctx); err != nil {
		return nil, err
	}
	values := make([]string, len(names))
	if len(names) == 0 {
		return values, nil
	}
	byGroup := map[int][][]byte{}
	for _, n := range names {
		byGroup[n.Group] = append(byGroup[n.Group], []byte(n.Name))
	}
	var parts []string
	var args []any
	for _, group := range slices.Sorted(maps.Keys(byGroup)) {
		table := g.of(group, "mark")
		if group == groups.Outside {
			table = g.of(0, "outside_mark")
		}
		args = append(args, byGroup[group])
		parts = append(parts, fmt.Sprintf(`SELECT %d::integer, name, value FROM %s WHERE name = ANY ($%d::bytea[])`, group, table, len(args)))
	}
	found := map[groups.MarkName]string{}
	err := g.db.retry(ctx, func(ctx context.Context) error {
		rows, err := g.db.pool.Query(ctx, strings.Join(parts, " UNION ALL "), args...)
		if err != nil {
			return err
		}
		var group int
		var name, value []byte
		_, err = pgx.ForEachRow(rows, []any{&group, &name, &value}, func() error {
			found[groups.MarkName{Group: group, Name: string(name)}] = string(value)
			return nil
		})
		return err
	})
	if isMissing(err) {
		err = groups.ErrNoGroup
	}
	if err != nil {
		return nil, fmt.Errorf("pgstore: marks of groups: %w", err)
	}
	for i, n := range names {
		values[i] = found[n]
	}
	return values, nil
}

// isMissing reports whether a table or schema does not exist.
func isMissing(err error) bool {
	var server *pgconn.PgError
	return errors.As(err, &server) && (server.Code == "42P01" || server.Code == "3F000")
}

// Post implements [groups.Engine].
func (g *Groups) Post(ctx context.Context, group int, row string) error {
	if row == "" {
		return errors.New("pgstore: post: an empty row")
	}
	sent := int64(0) // the number of the row of an attempt
	err := g.change(ctx, func(ctx context.Context, tx pgx.Tx, unanswered bool) error {
		b, folded, err := g.bounds(ctx, tx, group)
		if err != nil {
			return err
		}
		if unanswered && sent < b.Next {
			var stored []byte
			err := tx.QueryRow(ctx, `SELECT value FROM outside_mark WHERE name = $1`, []byte(groups.RowMark(group, sent))).Scan(&stored)
			switch {
			case err == nil && string(stored) == row:
				return errDone
			case errors.Is(err, pgx.ErrNoRows):
				return errors.New("it is not known whether the row was posted")
			case err != nil:
				return err
			}
		}
		var old [][]byte
		for _, mark := range b.CutFolded(group, folded) {
			old = append(old, []byte(mark))
		}
		sent = b.Next
		b.Next++
		if _, err := tx.Exec(ctx, `INSERT INTO outside_mark (name, value) VALUES ($1, $2)`, []byte(groups.RowMark(group, sent)), []byte(row)); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM outside_mark WHERE name = ANY ($1::bytea[])`, old); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `UPDATE outside_mark SET value = $2 WHERE name = $1`, []byte(groups.OutboxMark(group)), []byte(b.String()))
		return err
	})
	if err != nil {
		return fmt.Errorf("pgstore: post a row for group %d: %w", group, err)
	}
	return nil
}

// bounds returns those of the rows that were posted for a group, which it locks, and the number of the
// next row to be folded.
func (g *Groups) bounds(ctx context.Context, tx pgx.Tx, group int) (b groups.Bounds, folded int64, err error) {
	var exists bool
	if err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM group_lease WHERE id = $1)`, group).Scan(&exists); err != nil || !exists {
		if err == nil {
			err = fmt.Errorf("%w: %d", groups.ErrNoGroup, group)
		}
		return b, 0, err
	}
	name := []byte(groups.OutboxMark(group))
	if _, err := tx.Exec(ctx, `INSERT INTO outside_mark (name, value) VALUES ($1, '1 1') ON CONFLICT (name) DO NOTHING`, name); err != nil {
		return b, 0, err
	}
	var value, inbox []byte
	if err := tx.QueryRow(ctx, `SELECT value FROM outside_mark WHERE name = $1 FOR UPDATE`, name).Scan(&value); err != nil {
		return b, 0, err
	}
	if b, err = groups.ParseBounds(string(value)); err != nil {
		return b, 0, err
	}
	err = tx.QueryRow(ctx, `SELECT value FROM `+g.of(group, "mark")+` WHERE name = $1`, []byte(groups.InboxMark(groups.Outside))).Scan(&inbox)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return b, 0, err
	}
	folded, err = groups.ParseInbox(string(inbox))
	return b, folded, err
}

// Close implements [groups.Engine].
func (g *Groups) Close() error {
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return nil
	}
	g.closed = true
	g.mu.Unlock()
	for _, db := range g.leases {
		db.crawl.end()
		db.links.end()
		db.hosts.end()
		db.segments.end()
	}
	ctx, cancel := context.WithTimeout(context.Background(), closePatience)
	defer cancel()
	if g.db.readOnly {
		g.release()
		return nil
	}
	// The last worker has left in order.
	_, err := g.db.pool.Exec(ctx, `UPDATE host_state SET clean = true WHERE id = 0 AND NOT clean AND NOT EXISTS (SELECT 1 FROM worker)`)
	g.release()
	if err != nil {
		return fmt.Errorf("pgstore: close groups: %w", err)
	}
	return nil
}

// release ends the connections.
func (g *Groups) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, p := range g.pools {
		p.release()
	}
	g.db.release()
}
