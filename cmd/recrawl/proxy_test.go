package main_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/recrawl/recrawl/protocol/webtest"
)

// tunnels is a proxy that connects to loopback only; asked counts what it was
// asked for.
func tunnels(t *testing.T, asked *atomic.Int64) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				in := bufio.NewReader(c)
				r, err := http.ReadRequest(in)
				if err != nil || r.Method != http.MethodConnect || !strings.HasPrefix(r.Host, "127.0.0.1:") {
					io.WriteString(c, "HTTP/1.1 403 Forbidden\r\n\r\n")
					return
				}
				to, err := net.Dial("tcp", r.Host)
				if err != nil {
					return
				}
				defer to.Close()
				asked.Add(1)
				io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
				go io.Copy(to, in)
				io.Copy(c, to)
			}()
		}
	}()
	return "http://" + l.Addr().String()
}

func TestCrawlThroughAProxy(t *testing.T) {
	t.Parallel()
	s := serve(t, &webtest.Web{Hosts: 1, PagesPerHost: 4, Calm: true})
	var asked atomic.Int64
	out := ok(t, s.crawl("-proxy", tunnels(t, &asked), s.web.Seeds()[0])...)
	if !strings.Contains(out, "success       4") || asked.Load() == 0 {
		t.Errorf("the proxy was asked %d times:\n%s", asked.Load(), out)
	}
	// One that is not there is no fault of the pages.
	s = serve(t, &webtest.Web{Hosts: 1, PagesPerHost: 4, Calm: true})
	if r := recrawl(t, s.crawl("-proxy", "http://127.0.0.1:1", s.web.Seeds()[0])...); r.code != 1 || !strings.Contains(r.err, "proxy") {
		t.Errorf("a proxy that is not there: %+v", r)
	}
	if all := records(t, s.dir); all[s.web.Seeds()[0]].Status != "db_unfetched" {
		t.Errorf("the crawl db has %v", all)
	}
}
