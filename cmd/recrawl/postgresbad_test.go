//go:build servers

package main_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/recrawl/recrawl/protocol/webtest"
	"github.com/recrawl/recrawl/stores/pgstore/pgtest"
)

// A database that cannot be used is a clear error with exit code 1, and what is in it stays.
func TestBadDatabaseIsAClearError(t *testing.T) {
	server := pgtest.Start(t, "fsync = off")
	dsn := pgtest.DSNAt(server.Address(), "bad")
	ok(t, "inject", "-d", dsn, "http://site.example/")
	want := ok(t, "readdb", "-d", dsn, "-dump", "-format", "json")
	admin, err := pgx.Connect(t.Context(), strings.Split(server.DSN("x"), " crawl=")[0])
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(context.Background())
	run := func(statement string) {
		t.Helper()
		if _, err := admin.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	refused := func(what, dsn string, code int, texts ...string) {
		t.Helper()
		for _, verb := range [][]string{{"inject", "http://other.example/"}, {"readdb", "-stats"}} {
			r := recrawl(t, append(verb, "-d", dsn)...)
			if r.code != code {
				t.Errorf("%s: %s: exit %d, want %d: %s", what, verb[0], r.code, code, r.err)
			}
			for _, text := range texts {
				if !strings.Contains(r.err, text) {
					t.Errorf("%s: %s says %q, want %q", what, verb[0], r.err, text)
				}
			}
		}
	}
	refused("wrong port", "postgres://recrawl@127.0.0.1:1/postgres?crawl=bad", 1, "127.0.0.1")
	refused("wrong database", strings.Replace(dsn, "/postgres?", "/nothing?", 1), 1, `"nothing"`)
	refused("wrong parameter", dsn+"&sslmode=perhaps", 1, "sslmode")

	run(`UPDATE bad.schema_version SET version = 99, reader = 99`)
	refused("newer schema", dsn, 1, "version 99", "this one knows")
	run(`UPDATE bad.schema_version SET version = 2, reader = 1`)

	run(`CREATE ROLE reader LOGIN; CREATE ROLE stranger LOGIN; GRANT USAGE ON SCHEMA bad TO reader; GRANT SELECT ON ALL TABLES IN SCHEMA bad TO reader`)
	refused("no rights", strings.Replace(dsn, "recrawl@", "stranger@", 1), 1, "permission denied")
	reading := strings.Replace(dsn, "recrawl@", "reader@", 1)
	ok(t, "readdb", "-d", reading, "-stats")
	if r := recrawl(t, "inject", "-d", reading, "http://other.example/"); r.code != 1 || !strings.Contains(r.err, "permission denied") {
		t.Errorf("inject by a reader: exit %d, %s", r.code, r.err)
	}

	// The crawl is in use.
	s := serveInto(t, dsn, &webtest.Web{Hosts: 1, PagesPerHost: 20, CrawlDelay: time.Second})
	c := exec.Command(program, s.crawl(s.web.Seeds()...)...)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		var held bool
		if err := admin.QueryRow(t.Context(), `SELECT held FROM bad.crawl_lease`).Scan(&held); err != nil || held || time.Since(began) > 20*time.Second {
			break
		}
	}
	if r := recrawl(t, "inject", "-d", dsn, "http://other.example/"); r.code != 1 || !strings.Contains(r.err, "open in another process") {
		t.Errorf("inject during a crawl: exit %d, %s", r.code, r.err)
	}
	c.Process.Kill()
	c.Wait()
	got := ok(t, "readdb", "-d", dsn, "-dump", "-format", "json")
	if first := `"url":"http://site.example/"`; !strings.Contains(got, first) || !strings.Contains(want, first) || strings.Contains(got, "other.example") {
		t.Errorf("the crawl has\n%s", got)
	}
}

// A server whose disk is full is an error; when there is room again, the crawl goes on and has what an
// undisturbed one has.
func TestFullDiskOfServerLosesNothing(t *testing.T) {
	if os.Getuid() != 0 {
		t.Fatal("mounting a small file system needs root")
	}
	dir, err := os.MkdirTemp("", "small") // which the server can reach
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=24m,mode=0777", "tmpfs", dir).CombinedOutput(); err != nil {
		t.Fatalf("mount: %v\n%s", err, out)
	}
	t.Cleanup(func() { exec.Command("umount", "-l", dir).Run() })
	if out, err := exec.Command("chown", "postgres", dir).CombinedOutput(); err != nil {
		t.Fatalf("chown: %v\n%s", err, out)
	}
	server := pgtest.Start(t, "fsync = off")
	admin, err := pgx.Connect(t.Context(), strings.Split(server.DSN("x"), " crawl=")[0])
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(context.Background())
	if _, err := admin.Exec(t.Context(), `CREATE TABLESPACE small LOCATION '`+dir+`'`); err != nil {
		t.Fatal(err)
	}
	web := func() *webtest.Web { return &webtest.Web{Hosts: 2, PagesPerHost: 60, Calm: true} }
	undisturbed := serve(t, web())
	ok(t, undisturbed.crawl(undisturbed.web.Seeds()...)...)
	s := serveInto(t, pgtest.DSNAt(server.Address(), "full"), web())
	ok(t, "inject", "-d", s.dir, s.web.Seeds()[0])
	for _, table := range []string{"page", "block", "part", "link", "mark"} {
		if _, err := admin.Exec(t.Context(), `ALTER TABLE "full".`+table+` SET TABLESPACE small`); err != nil {
			t.Fatal(err)
		}
	}
	full := dir + "/full"
	fill := exec.Command("dd", "if=/dev/zero", "of="+full, "bs=4k")
	fill.Run() // until there is no room
	r := recrawl(t, s.crawl(s.web.Seeds()...)...)
	if r.code != 1 || !strings.Contains(r.err, "No space left on device") {
		t.Errorf("with a full disk: exit %d, %s", r.code, r.err)
	}
	if err := os.Remove(full); err != nil {
		t.Fatal(err)
	}
	ok(t, s.crawl(s.web.Seeds()...)...)
	same(t, "after the disk was full", dump(t, s.dir), dump(t, undisturbed.dir))
}
