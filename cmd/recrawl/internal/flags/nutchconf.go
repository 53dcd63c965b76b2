package flags

import (
	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl/nutch/nutchconf"
)

func NutchConf() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "conf", Category: nutchConfGroup, Usage: "decide as Nutch does with the configuration in `DIR`: nutch-site.xml and the rule files it names. Flags override it. recrawl check conf lists the settings that have no effect"},
		&cli.BoolFlag{Name: "corrected", Category: nutchConfGroup, Usage: "with -conf: use its limits and rules, but correct Nutch's faults"},
	}
}

// ReadNutchConf reads the configuration that -conf names; nil without -conf.
func ReadNutchConf(c *cli.Command) (*nutchconf.Options, error) {
	dir := c.String("conf")
	switch {
	case dir == "" && c.IsSet("conf"):
		return nil, Usagef("-conf needs the name of a directory")
	case dir == "" && c.Bool("corrected"):
		return nil, Usagef("-corrected works only with -conf")
	case dir == "":
		return nil, nil
	}
	conf, err := nutchconf.Read(dir)
	if err != nil {
		return nil, err
	}
	conf.Corrected = c.Bool("corrected")
	if c.IsSet("agent") {
		conf.Set("http.agent.name", c.String("agent"))
	}
	if c.IsSet("contact") {
		property, err := contactProperty(c.String("contact"))
		if err != nil {
			return nil, err
		}
		conf.Set(property, c.String("contact"))
	}
	return conf.Options()
}
