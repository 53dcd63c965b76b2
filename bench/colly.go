package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gocolly/colly/v2"
	"golang.org/x/sync/errgroup"
)

// collyCrawl does with colly what can be compared: it obeys robots.txt, visits
// every page once, follows links and redirects, and takes title and text of each
// page. It keeps nothing, knows no Crawl-delay, and asks a host as many times at
// once as it likes.
func collyCrawl(ctx context.Context, j job, r *result, m *meter) error {
	roots, err := j.roots()
	if err != nil {
		return err
	}
	c := colly.NewCollector(
		colly.Async(true),
		colly.UserAgent(agent),
		colly.AllowedDomains(j.Hosts...),
		colly.MaxRequests(uint32(j.Max)),
		colly.StdlibContext(ctx),
	)
	c.IgnoreRobotsTxt = false
	if err := c.Limit(&colly.LimitRule{DomainGlob: "*", Parallelism: j.Workers}); err != nil {
		return err
	}
	// http.DefaultTransport but for where it connects.
	transport := &http.Transport{
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			to, err := j.connectTo(addr)
			if err != nil {
				return nil, err
			}
			return new(net.Dialer).DialContext(ctx, network, to)
		},
		TLSClientConfig:     tlsConfig(roots),
		ForceAttemptHTTP2:   true,
		MaxIdleConns:        j.Idle,
		IdleConnTimeout:     90 * time.Second,
		TLSHandshakeTimeout: 10 * time.Second,
	}
	c.WithTransport(transport)

	var pages, size, titles, text atomic.Int64
	c.OnResponse(func(resp *colly.Response) {
		if resp.StatusCode == http.StatusOK {
			pages.Add(1)
			size.Add(int64(len(resp.Body)))
		}
	})
	c.OnHTML("a[href]", func(e *colly.HTMLElement) {
		// Colly takes a page for another with each fragment, and would ask for it
		// that often.
		link, _, _ := strings.Cut(e.Attr("href"), "#")
		if link != "" {
			_ = e.Request.Visit(link) // most have been visited, or leave the sites
		}
	})
	c.OnHTML("title", func(e *colly.HTMLElement) { titles.Add(int64(len(e.Text))) })
	c.OnHTML("body", func(e *colly.HTMLElement) { text.Add(int64(len(e.Text))) })
	if err := m.start(); err != nil {
		return err
	}
	// All at once: the first would use up a limit of pages.
	var seeds errgroup.Group
	for _, seed := range j.Seeds {
		seeds.Go(func() error {
			var known *colly.AlreadyVisitedError // by a link of another seed
			err := c.Visit(seed)
			if errors.As(err, &known) || errors.Is(err, colly.ErrMaxRequests) {
				return nil
			}
			return err
		})
	}
	err = seeds.Wait()
	c.Wait()
	if err != nil {
		return err
	}
	transport.CloseIdleConnections()
	if err := m.stop(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	r.Pages, r.Bytes = int(pages.Load()), size.Load()
	if titles.Load() == 0 || text.Load() == 0 {
		return errNoText
	}
	return nil
}

func tlsConfig(roots *x509.CertPool) *tls.Config { return &tls.Config{RootCAs: roots} }

// connectTo returns where to connect for what a URL says.
func (s *site) connectTo(addr string) (string, error) {
	_, port, err := net.SplitHostPort(addr)
	switch {
	case err != nil:
		return "", err
	case port == "80" && s.HTTP != "":
		return s.HTTP, nil
	case port == "443" && s.HTTPS != "":
		return s.HTTPS, nil
	}
	return "", fmt.Errorf("%s is outside of the sites", addr)
}

// roots are the authorities to trust; nil for those of the system.
func (s *site) roots() (*x509.CertPool, error) {
	if s.CACert == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(s.CACert)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s: no certificate in it", s.CACert)
	}
	return pool, nil
}
