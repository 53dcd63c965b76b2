package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/recrawl/recrawl"
)

func TestService(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	base := "http://" + listener.Addr().String()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, w := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := run(ctx, w, listener, nil)
		w.Close()
		ended <- err
	}()

	// The crawl reports every page, and then waits for more.
	lines := bufio.NewScanner(r)
	await := func(n int) {
		for range n {
			if !lines.Scan() {
				t.Fatalf("the service ended: %v", <-ended)
			}
		}
	}
	await(10)
	resp, err := http.PostForm(base+"/seeds", url.Values{"url": {"http://news.example.test/?new"}})
	if err != nil {
		t.Fatal(err)
	}
	answer, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if string(answer) != "1 new\n" {
		t.Errorf("answer %q", answer)
	}
	await(1)
	if got, want := lines.Text(), "gone http://news.example.test/?new"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}

	resp, err = http.PostForm(base+"/seeds", url.Values{"url": {"news.example.test"}})
	if err != nil {
		t.Fatal(err)
	}
	answer, _ = io.ReadAll(resp.Body)
	resp.Body.Close()
	if want := "inject: \"news.example.test\": urlfilter: not a URL to crawl: no scheme\n"; resp.StatusCode != http.StatusBadRequest || string(answer) != want {
		t.Errorf("%s, %q, want %q", resp.Status, answer, want)
	}

	resp, err = http.Get(base + "/status")
	if err != nil {
		t.Fatal(err)
	}
	var status recrawl.Status
	if err := json.NewDecoder(resp.Body).Decode(&status); err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if status.Visited() != 11 {
		t.Errorf("%d visits in %+v, want 11", status.Visited(), status)
	}

	resp, err = http.Get(base + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	metrics, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if !strings.Contains(string(metrics), "\nrecrawl_visits_total{outcome=\"success\"} 10\n") {
		t.Errorf("metrics:\n%s", metrics)
	}

	// It ends when asked to, without an error.
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := http.Get(base + "/status"); err == nil {
		t.Error("it still answers")
	}
}
