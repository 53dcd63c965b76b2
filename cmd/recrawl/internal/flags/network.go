package flags

import (
	"crypto/x509"
	"io"
	"os"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl/protocol/httpproto"
)

// Network returns the flags of verbs that make requests.
func Network() []cli.Flag {
	return append([]cli.Flag{
		&cli.StringFlag{Name: "agent", Category: NetworkGroup, Usage: "the `NAME` of the crawler: letters, digits, '-' and '_'; sent with every request and looked up in robots.txt (required)"},
		&cli.DurationFlag{Name: "delay", Category: NetworkGroup, Usage: "pause for `TIME` between requests to a host, or longer if its robots.txt asks for it; 0 for none (default 5s)", Value: 5 * time.Second},
		&cli.IntFlag{Name: "threads", Category: NetworkGroup, Usage: "make at most `N` visits at once (0: 50)"},
		&cli.StringSliceFlag{Name: "connect-to", Category: NetworkGroup, Usage: "like curl's: `HOST:PORT:HOST2:PORT2` connects to HOST2:PORT2 instead of HOST:PORT. An empty HOST or PORT matches any, an empty HOST2 or PORT2 keeps it. May be repeated; connections that no entry maps are then refused"},
		&cli.StringFlag{Name: "cacert", Category: NetworkGroup, Usage: "trust the certificates in this PEM `FILE` instead of the system's"},
		&cli.StringFlag{Name: "proxy", Category: NetworkGroup, Usage: "connect through the HTTP proxy at this `URL`, such as http://localhost:3128; empty for none"},
		&cli.BoolFlag{Name: "allow-private", Category: NetworkGroup, Usage: "connect to loopback, private and link-local addresses too, but not to the metadata services of clouds"},
	}, requestFlags()...)
}

// NewClient makes the HTTP client that the flags describe.
func NewClient(c *cli.Command, o httpproto.Options, now func() time.Time, warn io.Writer) (*httpproto.Client, error) {
	if c.IsSet("agent") || o.Agent == "" {
		o.Agent = c.String("agent")
	}
	if c.IsSet("proxy") {
		o.Proxy = c.String("proxy")
	}
	o.Guard.AllowPrivate, o.Now = c.Bool("allow-private"), now
	if o.Agent == "" {
		or := ""
		if c.String("conf") != "" {
			or = ", or http.agent.name in the configuration"
		}
		return nil, Usagef("-agent NAME is required%s: servers must be able to identify the crawler", or)
	}
	for _, s := range c.StringSlice("connect-to") {
		ct, err := httpproto.ParseConnectTo(s)
		if err != nil {
			return nil, Usagef("-connect-to: %w", err)
		}
		o.ConnectTo = append(o.ConnectTo, ct)
	}
	if file := c.String("cacert"); file != "" {
		pem, err := os.ReadFile(file)
		if err != nil {
			return nil, Usagef("-cacert: %w", err)
		}
		o.RootCAs = x509.NewCertPool()
		o.InsecureSkipVerify = false
		if !o.RootCAs.AppendCertsFromPEM(pem) {
			return nil, Usagef("-cacert: no certificate in %s", file)
		}
	}
	if c.IsSet("agent") && strings.ContainsFunc(o.Agent, func(r rune) bool {
		return !('a' <= r|0x20 && r|0x20 <= 'z' || '0' <= r && r <= '9' || r == '-' || r == '_')
	}) {
		return nil, Usagef("-agent: %q is not a valid crawler name; use letters, digits, '-' and '_'", o.Agent)
	}
	if err := applyRequests(c, &o, warn); err != nil {
		return nil, err
	}
	cl, err := httpproto.New(o)
	if err != nil {
		return nil, UsageError{Err: err}
	}
	warnAnonymous(c, cl, warn)
	return cl, nil
}
