package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/recrawl/recrawl/webtest"
)

// site is what there is to crawl.
type site struct {
	// HTTP and HTTPS are where all hosts are served; empty for not at all.
	HTTP, HTTPS string
	// CACert is the file of the authority of the HTTPS hosts.
	CACert string
	// Seeds is where a crawl starts, Hosts what it must not leave.
	Seeds, Hosts []string
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

// webSize is what the server child is told.
type webSize struct{ Hosts, Pages int }

// server is a synthetic web in a process of its own.
type server struct {
	site
	cmd   *exec.Cmd
	stdin io.WriteCloser
}

func startServer(ctx context.Context, hosts, pages int) (*server, error) {
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
	if err = json.NewEncoder(s.stdin).Encode(webSize{hosts, pages}); err == nil {
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
	web := &webtest.Web{Hosts: size.Hosts, PagesPerHost: size.Pages, Calm: true}
	s, err := webtest.Serve(web)
	if err != nil {
		return err
	}
	at := site{HTTP: s.Addr, Seeds: web.Seeds()}
	for h := range size.Hosts {
		at.Hosts = append(at.Hosts, web.Host(h))
	}
	if err := json.NewEncoder(out).Encode(at); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, r); err != nil {
		return err
	}
	return s.Close()
}
