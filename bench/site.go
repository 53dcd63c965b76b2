package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/recrawl/recrawl/protocol/webtest"
)

// site is what there is to crawl.
type site struct {
	// HTTP and HTTPS are where all hosts are served; empty for not at all.
	HTTP, HTTPS string
	// CACert is the file of the authority of the HTTPS hosts.
	CACert string
	// Seeds is where a crawl starts, Hosts what it must not leave.
	Seeds, Hosts []string
	// List is every page there is to visit, for a contender that finds none by
	// itself; empty if that is not known.
	List []string
}

func readSeeds(file string) (seeds, hosts []string, err error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, err
	}
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		u, err := url.Parse(line)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", file, err)
		}
		seeds = append(seeds, line)
		if !slices.Contains(hosts, u.Hostname()) {
			hosts = append(hosts, u.Hostname())
		}
	}
	return seeds, hosts, nil
}

// webSize is the task of the server process: how many hosts there are, and how many
// pages each has. KB is how long a page is; zero stands for the pages of webtest.
type webSize struct{ Hosts, Pages, KB int }

// handler serves the web of that size; seeds, hosts and list are those of a crawl.
func (s webSize) handler() (h http.Handler, at site) {
	if s.KB == 0 {
		web := &webtest.Web{Hosts: s.Hosts, PagesPerHost: s.Pages, Calm: true}
		for h := range s.Hosts {
			at.Hosts = append(at.Hosts, web.Host(h))
		}
		at.Seeds, at.List = web.Seeds(), slices.Collect(web.URLs())
		return web, at
	}
	web := &pages{Hosts: s.Hosts, KB: s.KB}
	for h := range s.Hosts {
		at.Hosts = append(at.Hosts, web.host(h))
	}
	at.Seeds, at.List = web.list(s.Hosts), web.list(s.Hosts*s.Pages)
	return web, at
}

// server is a synthetic web in a process of its own.
type server struct {
	site
	cmd   *exec.Cmd
	stdin io.WriteCloser
}

func startServer(ctx context.Context, size webSize) (*server, error) {
	cmd, err := self(ctx, serverArg)
	if err != nil {
		return nil, err
	}
	s := &server{cmd: cmd}
	if s.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	if err = json.NewEncoder(s.stdin).Encode(size); err == nil {
		err = json.NewDecoder(out).Decode(&s.site)
	}
	if err != nil {
		s.stop()
		return nil, fmt.Errorf("server: %w", err)
	}
	return s, nil
}

// stop ends the server, which ends with its standard input.
func (s *server) stop() {
	s.stdin.Close()
	// How it ends is of no interest any more.
	_ = s.cmd.Wait()
}

// serve is the server child. Its log counts requests in memory only.
func serve(in io.Reader, out io.Writer) error {
	r := bufio.NewReader(in)
	line, err := r.ReadBytes('\n')
	if err != nil {
		return err
	}
	var size webSize
	if err := json.Unmarshal(line, &size); err != nil {
		return err
	}
	web, at := size.handler()
	s, err := webtest.Serve(web)
	if err != nil {
		return err
	}
	at.HTTP = s.Addr
	if err := json.NewEncoder(out).Encode(at); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, r); err != nil {
		return err
	}
	return s.Close()
}
