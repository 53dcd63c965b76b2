package flags

import (
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/parse"
	"github.com/recrawl/recrawl/parse/extract"
	"github.com/recrawl/recrawl/parse/extract/fields"
	"github.com/recrawl/recrawl/parse/htmlparse"
	"github.com/recrawl/recrawl/signature"
)

// Extraction returns the flags that say what is read of pages beside text and links, and what of it counts as
// a change. A crawl remembers them.
func Extraction() []cli.Flag {
	return []cli.Flag{
		FieldsFlag("extract the fields that the YAML `FILE` describes from each page. The crawl remembers it until another, or an empty one, is given"),
		&cli.StringFlag{Name: "signature", Category: SelectionGroup, Usage: "compare pages by `WHAT`: text, words (of the text, frequent ones), bytes, main (headline and main content, without menus, adverts and dates), or field=NAME+NAME (of -fields; field: all of them). The crawl remembers it until another is given; conf: as -conf says (default: text)"},
	}
}

// FieldsFlag returns the flag -fields.
func FieldsFlag(usage string) cli.Flag {
	return &cli.StringFlag{Name: "fields", Category: SelectionGroup, Usage: usage}
}

// withExtraction returns k as the flags of Extraction change it.
func (k SavedFlags) withExtraction(c *cli.Command) SavedFlags {
	if c.IsSet("fields") {
		if k.Fields = c.String("fields"); k.Fields != "" {
			if abs, err := filepath.Abs(k.Fields); err == nil {
				k.Fields = abs // the next verb may run elsewhere
			}
		}
	}
	if c.IsSet("signature") {
		if k.Compare = c.String("signature"); k.Compare == fromConf {
			k.Compare = ""
		}
	}
	return k
}

// PageParser returns the parser of the options; if there is none, the one that recrawl.New chooses.
func PageParser(o *recrawl.Options) parse.Parser {
	if o.Parser != nil {
		return o.Parser
	}
	return htmlparse.Mux(&htmlparse.Parser{Agent: o.Agent, Timeout: o.Fetch.Parsing.Timeout})
}

// ApplyExtraction sets the parser and the signature of a crawl.
func (k SavedFlags) ApplyExtraction(o *recrawl.Options) error {
	var rules *fields.Rules
	if k.Fields != "" {
		var err error
		if rules, err = fields.Load(k.Fields); err != nil {
			return Usagef("-fields: %w", err)
		}
		o.Parser = fields.Parser{Rules: rules, Parser: PageParser(o)}
	}
	if k.Compare == "" {
		return nil
	}
	s, err := ParseSignature(k.Compare, rules)
	if err != nil {
		return err
	}
	o.Signature = s
	return nil
}

// ParseSignature makes the signature that -signature names. rules may be nil.
func ParseSignature(name string, rules *fields.Rules) (signature.Signature, error) {
	switch name {
	case "text":
		return signature.TextMD5{}, nil
	case "words":
		return signature.TextProfile{}, nil
	case "bytes":
		return signature.MD5{}, nil
	case "main":
		return extract.MainContent{}, nil
	}
	kind, list, given := strings.Cut(name, "=")
	if kind != "field" || given && list == "" {
		return nil, Usagef("-signature: %q is not one of text, words, bytes, main, field and field=NAME+NAME", name)
	}
	if rules == nil {
		return nil, Usagef("-signature %s needs -fields FILE", name)
	}
	s := fields.Signature{}
	if given {
		s.Names = strings.Split(list, "+")
	}
	for _, n := range s.Names {
		if !rules.Has(n) {
			return nil, Usagef("-signature: no rule of -fields has a field %q; they have %s", n, strings.Join(rules.Names(), ", "))
		}
	}
	return s, nil
}
