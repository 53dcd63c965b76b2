package flags

import (
	"fmt"
	"io"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl/protocol/httpproto"
)

// requestFlags returns the flags that say how requests are made, and to whom.
func requestFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "contact", Category: NetworkGroup, Usage: "who is responsible for the crawler: the `ADDRESS` of a page or a mailbox, sent with every request"},
		&cli.StringFlag{Name: "logins", Category: NetworkGroup, Usage: "send the logins in `FILE`, each to its exact origin. A line is ORIGIN basic USER:PASSWORD, ORIGIN bearer TOKEN or ORIGIN cookie NAME=VALUE; # starts a comment line"},
		&cli.BoolFlag{Name: "http1", Category: NetworkGroup, Usage: "use HTTP/1.1 even with servers that offer HTTP/2"},
		&cli.BoolFlag{Name: "cookies", Category: NetworkGroup, Usage: "keep cookies while the verb runs, and send each back to the exact origin that set it"},
		&cli.StringSliceFlag{Name: "allow-network", Category: NetworkGroup, Usage: "also connect to the addresses in `PREFIX`, such as 10.1.0.0/16. May be repeated"},
		&cli.StringSliceFlag{Name: "deny-network", Category: NetworkGroup, Usage: "connect to no address in `PREFIX`, whatever else allows it. May be repeated"},
		&cli.StringSliceFlag{Name: "allow-port", Category: NetworkGroup, Usage: "also allow port `N`, although it belongs to another protocol, such as 25. May be repeated"},
	}
}

// applyRequests applies the flags of requesting to options.
func applyRequests(c *cli.Command, o *httpproto.Options, warn io.Writer) error {
	if c.IsSet("contact") && c.String("conf") == "" {
		property, err := contactProperty(c.String("contact"))
		if err != nil {
			return err
		}
		if property == "http.agent.email" {
			o.AgentEmail, o.From = c.String("contact"), c.String("contact")
		} else {
			o.AgentURL = c.String("contact")
		}
	}
	if c.IsSet("logins") {
		logins, cookies, err := readLogins(c.String("logins"), warn)
		if err != nil {
			return err
		}
		o.Logins, o.Cookies = append(o.Logins, logins...), append(o.Cookies, cookies...)
	}
	if c.Bool("http1") {
		o.HTTP1 = true
	}
	if c.Bool("cookies") {
		o.Jar = &httpproto.Jar{}
	}
	for flag, to := range map[string]*[]netip.Prefix{"allow-network": &o.Guard.Allow, "deny-network": &o.Guard.Deny} {
		for _, s := range c.StringSlice(flag) {
			p, err := network(s)
			if err != nil {
				return Usagef("-%s: %q is not a network such as 10.1.0.0/16 or fd00::/8", flag, s)
			}
			*to = append(*to, p)
		}
	}
	for _, s := range c.StringSlice("allow-port") {
		n, err := strconv.ParseUint(s, 10, 16)
		if err != nil || n == 0 {
			return Usagef("-allow-port: %q is not within 1 to 65535", s)
		}
		o.AllowPorts = append(o.AllowPorts, uint16(n))
	}
	return nil
}

// network reads a prefix, or a single address as one.
func network(s string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(s); err == nil && a.Zone() == "" {
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	return netip.ParsePrefix(s)
}

// contactProperty returns the Nutch property for a contact: the page about the crawler,
// or the mailbox of its operator.
func contactProperty(s string) (string, error) {
	u, err := url.Parse(s)
	switch at := strings.Count(s, "@"); {
	case err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "":
		return "http.agent.url", nil
	case at == 1 && !strings.ContainsAny(s, " <>()/:;,\"") && s[0] != '@' && s[len(s)-1] != '@':
		return "http.agent.email", nil
	}
	return "", Usagef("-contact: %q is neither the address of a page, such as https://example.com/bot, nor that of a mailbox", s)
}

// warnAnonymous warns that requests name no contact, unless -connect-to leads them to servers of
// one's own.
func warnAnonymous(c *cli.Command, cl *httpproto.Client, w io.Writer) {
	if cl.Anonymous() && len(c.StringSlice("connect-to")) == 0 {
		fmt.Fprintln(w, "recrawl: requests name no page and no mailbox to contact; -contact sets one")
	}
}
