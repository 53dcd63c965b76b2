package sitemap_test

import (
	"testing"

	"github.com/recrawl/recrawl/parse/sitemap"
)

func TestScope(t *testing.T) {
	const at = "https://example.com/catalog/sitemap.xml?page=2/3"
	for _, c := range []struct {
		sitemap string
		listing []string
		url     string
		child   bool
		want    bool
	}{
		// The examples of sitemaps.org.
		{"http://example.com/catalog/sitemap.xml", nil, "http://example.com/catalog/show?item=23", false, true},
		{"http://example.com/catalog/sitemap.xml", nil, "http://example.com/catalog/show?item=233&user=3453", false, true},
		{"http://example.com/catalog/sitemap.xml", nil, "http://example.com/image/show?item=23", false, false},
		{"http://example.com/catalog/sitemap.xml", nil, "https://example.com/catalog/page1.php", false, false},
		{"http://www.example.com:100/sitemap.xml", nil, "http://www.example.com:100/x", false, true},
		{"http://www.example.com:100/sitemap.xml", nil, "http://www.example.com/x", false, false},
		{"http://www.example.com/sitemap.xml", nil, "http://subdomain.example.com/x", false, false},
		{"http://www.sitemaphost.com/sitemap-host1.xml", []string{"http://www.host1.com/robots.txt"}, "http://www.host1.com/x", false, true},
		{"http://www.sitemaphost.com/sitemap-host1.xml", []string{"http://www.host1.com/robots.txt"}, "http://www.host2.com/x", false, false},
		// The directory.
		{at, nil, "https://example.com/catalog/", false, true},
		{at, nil, "https://example.com/catalog", false, false},
		{at, nil, "https://example.com/catalogue/x", false, false},
		{at, nil, "https://example.com/catalog/../x", false, false},
		{at, nil, "https://example.com/catalog/%2e%2E/x", false, false},
		{at, nil, "https://example.com/catalog/..%2fx", false, false},
		{at, nil, `https://example.com/catalog/..\x`, false, false},
		{at, nil, "https://example.com/catalog/..", false, false},
		{at, nil, "https://example.com/a/../catalog/x/.", false, true},
		{at, nil, "https://example.com/c%61talog/x", false, true},
		{at, nil, "https://example.com/", false, false},
		{at, []string{"https://example.com/robots.txt"}, "https://example.com/", false, true},
		{"https://example.com/wp-sitemap.xml", nil, "https://example.com", false, true},
		{"https://example.com", nil, "https://example.com/a/b", false, true},
		{"https://example.com/café/s.xml", nil, "https://example.com/caf%C3%A9/x", false, true},
		// The site.
		{at, nil, "HTTPS://EXAMPLE.com:443/catalog/x", false, true},
		{at, nil, "https://example.com:8443/catalog/x", false, false},
		{"https://istanbul.example/s.xml", nil, "https://ISTANBUL.example/x", false, true},
		{"https://istanbul.example/s.xml", nil, "https://İstanbul.example/x", false, false},
		{at, nil, "https://example.com.evil.net/catalog/x", false, false},
		{at, nil, "https://example.com@evil.net/catalog/x", false, false},
		{at, nil, `https://evil.net\@example.com/catalog/x`, false, false},
		{at, nil, "https://evil.net#@example.com/catalog/x", false, false},
		{at, nil, "https:example.com/catalog/x", false, false},
		{at, nil, "//example.com/catalog/x", false, false},
		{at, nil, "/catalog/x", false, false},
		{at, nil, "", false, false},
		{at, nil, "https://example.com/catalog/%zz", false, false},
		{at, nil, "https://example.com/catalog/\n", false, false},
		// Other sitemaps: of the same site, anywhere.
		{at, nil, "https://example.com/other.xml", true, true},
		{at, nil, "http://example.com/other.xml", true, false},
		{at, nil, "https://example.net/catalog/other.xml", true, false},
		{"https://cdn.net/a/index.xml", []string{"https://example.com/robots.txt"}, "https://cdn.net/b/s.xml", true, true},
		{"https://cdn.net/a/index.xml", []string{"https://example.com/robots.txt"}, "https://example.com/s.xml", true, true},
		{"file:///a/s.xml", nil, "file:///a/b", false, true},
		{"file:///a/s.xml", nil, "file:///b", false, false},
	} {
		s, err := sitemap.NewScope(c.sitemap, c.listing...)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Contains(sitemap.Entry{URL: c.url, Sitemap: c.child}); got != c.want {
			t.Errorf("%s (listed by %v) may speak of %s: %v", c.sitemap, c.listing, c.url, got)
		}
	}
	for _, bad := range []string{"", "/sitemap.xml", "sitemap", "http:x", "http://%zz/"} {
		if _, err := sitemap.NewScope(bad); err == nil {
			t.Errorf("scope of %q", bad)
		}
		if _, err := sitemap.NewScope(at, bad); err == nil {
			t.Errorf("listed by %q", bad)
		}
	}
	if (sitemap.Scope{}).Contains(sitemap.Entry{URL: "https://example.com/"}) {
		t.Error("the zero Scope contains something")
	}
}
