package hostile_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/fetch"
	"github.com/recrawl/recrawl/protocol"
	"github.com/recrawl/recrawl/protocol/httpproto"
	"github.com/recrawl/recrawl/protocol/webtest"
	"github.com/recrawl/recrawl/stores/memstore"
)

const (
	fewFiles  = 64
	manyHosts = 200
)

// poor is the address that a process with few open files is to crawl.
var poor = flag.String("poor", "", "crawl the web at this address with few open files, and print what came of it")

func manyHostsWeb() *webtest.Web {
	return &webtest.Web{Hosts: manyHosts, PagesPerHost: 2, LinksPerPage: 2, WordsPerPage: 20, Calm: true}
}

// crawlPoorly is what the other process does.
func crawlPoorly(addr string) error {
	if err := limitFiles(fewFiles); err != nil {
		return err
	}
	to, err := httpproto.ParseConnectTo("::" + addr)
	if err != nil {
		return err
	}
	var db memstore.DB
	c, err := recrawl.New(recrawl.Stores{Crawl: db.Crawl(), Hosts: db.Hosts(), Links: db.Links(), Segments: db.Segments()}, recrawl.Options{
		Agent: "recrawl-hostile", HTTP: httpproto.Options{ConnectTo: []httpproto.ConnectTo{to}},
		Fetch: fetch.Options{Politeness: fetch.Politeness{Delay: time.Millisecond}, Threads: 32},
	})
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.Inject(context.Background(), slices.Collect(manyHostsWeb().URLs())...); err != nil {
		return err
	}
	r, err := c.Run(context.Background())
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(r.Visits)
}

// w8 crawls more hosts than a process may have open files, each of which would
// keep a connection.
func w8(t *testing.T) {
	s, err := webtest.Serve(manyHostsWeb())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-poor="+s.Addr)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var visits map[protocol.Code]int
	if err := json.Unmarshal(out, &visits); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if want := fmt.Sprint(map[protocol.Code]int{protocol.Success: 2 * manyHosts}); fmt.Sprint(visits) != want {
		t.Errorf("%v, want %s", visits, want)
	}
}
