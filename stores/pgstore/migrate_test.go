//go:build servers

package pgstore

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/recrawl/recrawl/stores/pgstore/pgtest"
)

// nextVersions adds two versions to the present ones: the first can be used by the package of
// today, the second cannot.
func nextVersions() []migration {
	n := len(migrations())
	return append(migrations(),
		migration{reader: n, statements: `ALTER TABLE page ADD COLUMN slot smallint`},
		migration{reader: n + 1, statements: `CREATE TABLE outbox (id bigint PRIMARY KEY); ALTER TABLE page ALTER COLUMN slot SET DEFAULT 0`})
}

// A crawl of the version after is used as it is, one of the version before is migrated, or is
// read as it is.
func TestNeighbouringVersionsAreUsed(t *testing.T) {
	server := pgtest.Start(t, "fsync = off")
	dsn := server.DSN("versions")
	use := func(steps []migration, o Options) error {
		t.Helper()
		db, err := open(t.Context(), dsn, o, steps)
		if err != nil {
			return err
		}
		if !o.ReadOnly {
			if err := count(t.Context(), db.Crawl(), "http://example.com/"); err != nil {
				t.Error(err)
			}
		}
		counted(t, db.Crawl(), "http://example.com/")
		return db.Close()
	}
	n := len(migrations())
	for i, step := range []struct {
		steps []migration
		o     Options
		want  error
	}{
		{migrations(), Options{ReadOnly: true}, ErrNoCrawl},
		{migrations(), Options{}, nil},
		{nextVersions(), Options{ReadOnly: true}, nil}, // not migrated
		{nextVersions()[:n+1], Options{}, nil},
		{migrations(), Options{}, nil}, // one version behind
		{migrations(), Options{ReadOnly: true}, nil},
		{nextVersions(), Options{}, nil},
		{migrations(), Options{}, ErrVersion}, // two versions behind
		{migrations(), Options{ReadOnly: true}, ErrVersion},
		{nextVersions()[:n+1], Options{}, nil},
	} {
		if err := use(step.steps, step.o); !errors.Is(err, step.want) {
			t.Errorf("step %d: error is %v, want %v", i, err, step.want)
		}
	}
}

// A migration that fails changes nothing.
func TestFailedMigrationChangesNothing(t *testing.T) {
	server := pgtest.Start(t, "fsync = off")
	dsn := server.DSN("failing")
	openTest(t, dsn).Close()
	bad := append(migrations(), migration{reader: 1, statements: `CREATE TABLE extra (id bigint); SELECT nothing FROM nowhere`})
	for range 2 {
		if _, err := open(t.Context(), dsn, Options{}, bad); err == nil || !strings.Contains(err.Error(), "migrate") {
			t.Fatalf("error is %v", err)
		}
	}
	db := openTest(t, dsn)
	var n int
	if err := db.pool.QueryRow(t.Context(), `SELECT count(*) FROM information_schema.tables WHERE table_name = 'extra'`).Scan(&n); err != nil || n != 0 {
		t.Errorf("%d tables are left, %v", n, err)
	}
}

// Processes that make or migrate a crawl at once agree on one.
func TestCrawlIsMadeOnce(t *testing.T) {
	server := pgtest.Start(t, "fsync = off")
	for _, steps := range [][]migration{migrations(), nextVersions()} {
		var group sync.WaitGroup
		for range 6 {
			group.Go(func() {
				db, err := open(t.Context(), server.DSN("together"), Options{}, steps)
				if errors.Is(err, ErrLocked) {
					return // another one was faster
				}
				if err != nil {
					t.Error(err)
					return
				}
				if err := db.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
	}
}

// What cannot be opened is refused with an error that says why, and left as it is.
func TestWrongDatabaseIsRefused(t *testing.T) {
	server := pgtest.Start(t, "fsync = off")
	db := openTest(t, server.DSN("here"))
	if _, err := db.pool.Exec(t.Context(), `CREATE SCHEMA foreign_one; CREATE TABLE foreign_one.t (id bigint)`); err != nil {
		t.Fatal(err)
	}
	good := server.DSN("x")
	for name, test := range map[string]struct {
		dsn  string
		want error
		text string
	}{
		"tables of something else": {server.DSN("foreign_one"), ErrNotStore, "foreign_one"},
		"a bad name":               {server.DSN("Not-A-Name"), nil, "Not-A-Name"},
		"no such database":         {strings.Replace(good, "dbname=postgres", "dbname=nothing", 1), nil, "nothing"},
		"no such user":             {strings.Replace(good, "user=recrawl", "user=stranger", 1), nil, "stranger"},
		"no server":                {"postgres://recrawl@127.0.0.1:1/postgres", nil, "127.0.0.1"},
		"not a connection string":  {"postgres://%", nil, "parse"},
	} {
		db, err := Open(t.Context(), test.dsn, Options{})
		if err == nil {
			db.Close()
		}
		if err == nil || test.want != nil && !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.text) {
			t.Errorf("%s: error is %v", name, err)
		}
	}
	if _, err := db.pool.Exec(t.Context(), `CREATE ROLE weak LOGIN`); err != nil {
		t.Fatal(err)
	}
	weak := strings.Replace(server.DSN("other"), "user=recrawl", "user=weak", 1)
	if _, err := Open(t.Context(), weak, Options{}); err == nil || !strings.Contains(err.Error(), "permission denied") {
		t.Errorf("without rights: error is %v", err)
	}
}

// A read-only DB changes nothing, and the DB that has the crawl open for writing goes on.
func TestReadOnlyChangesNothing(t *testing.T) {
	server := pgtest.Start(t, "fsync = off")
	const url = "http://example.com/"
	writing := openTest(t, server.DSN("both"))
	if err := count(t.Context(), writing.Crawl(), url); err != nil {
		t.Fatal(err)
	}
	reading, err := Open(t.Context(), server.DSN("both"), Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer reading.Close()
	if err := count(t.Context(), reading.Crawl(), url); !errors.Is(err, ErrReadOnly) {
		t.Errorf("Update: %v", err)
	}
	if _, err := reading.Segments().Append(t.Context(), "seg", "part", 0); !errors.Is(err, ErrReadOnly) {
		t.Errorf("Append: %v", err)
	}
	if err := reading.Segments().Remove(t.Context(), "seg"); !errors.Is(err, ErrReadOnly) {
		t.Errorf("Remove: %v", err)
	}
	if err := count(t.Context(), writing.Crawl(), url); err != nil {
		t.Error(err)
	}
	if got := counted(t, reading.Crawl(), url); got != 2 {
		t.Errorf("%d updates are seen", got)
	}
}
