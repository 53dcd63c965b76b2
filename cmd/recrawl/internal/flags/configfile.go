package flags

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"
	"go.yaml.in/yaml/v3"
)

// ConfigName is the configuration file of a crawl, in its directory.
const ConfigName = "recrawl.yaml"

// ConfigFormat explains the format of a configuration file.
const ConfigFormat = `A configuration file is YAML. Its keys are the names of flags, without dashes, and
hold for every verb that has the flag; below the name of a verb they hold for that
verb. The flags of the command line override the file, and it overrides what the
crawl remembers. An unknown key is an error. Names of files are relative to the
current directory, as on the command line.

  agent: mybot
  contact: https://example.com/bot
  delay: 2s
  allow-network: [10.1.0.0/16, 10.2.0.0/16]
  crawl:
    rounds: 3
    url-rules: rules.txt

The flags of crawl may stand at the top; those that only other verbs have stand
below the name of their verb.`

func config() cli.Flag {
	return &cli.StringFlag{Name: "config", Usage: "read flags from this YAML `FILE`, instead of recrawl.yaml in the directory of the crawl; empty for none: see recrawl config --help"}
}

// Setting is the value of a flag in a configuration file.
type Setting struct {
	Name   string
	Values []string // several for a flag that may be repeated
	File   string
	Line   int
}

func (s *Setting) errorf(format string, args ...any) error {
	return Usagef("%s:%d: %w", s.File, s.Line, fmt.Errorf(format, args...))
}

// AddConfigFiles makes every verb with a directory take from a configuration file the
// flags that the command line does not give.
func AddConfigFiles(root *cli.Command) {
	for _, verb := range root.Commands {
		if flagOf(verb, "d") == nil || verb.Hidden {
			continue
		}
		verb.Flags = append(verb.Flags, config())
		if flagOf(verb, SegmentsName) == nil && verb.Name != "verify" && verb.Name != "salvage" { // which read the directory only
			verb.Flags = append(verb.Flags, segments())
		}
		do := verb.Action
		verb.Action = func(ctx context.Context, c *cli.Command) error {
			set, err := ApplyConfig(root, c)
			if err != nil {
				return err
			}
			return namingFile(do(ctx, c), set)
		}
	}
}

// ApplyConfig sets the flags of a verb that the command line does not give as the
// configuration file says, and returns them. It returns none if there is no file.
func ApplyConfig(root, c *cli.Command) ([]Setting, error) {
	file := c.String("config")
	if info, err := os.Stat(c.String("d")); !c.IsSet("config") && err == nil && info.IsDir() {
		file = filepath.Join(c.String("d"), ConfigName)
	}
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if !c.IsSet("config") && errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, Usagef("-config: %w", err)
	}
	all, err := parseConfig(root, file, text)
	if err != nil {
		return nil, err
	}
	var set []Setting
	apply := func(s Setting) error {
		if c.IsSet(s.Name) {
			return nil
		}
		for _, value := range s.Values {
			if err := c.Set(s.Name, value); err != nil {
				return s.errorf("%s: %q is not a value of this flag", s.Name, value)
			}
		}
		set = append(set, s)
		return nil
	}
	for _, s := range all[c.Name] { // what is said of the verb comes first
		if err := apply(s); err != nil {
			return nil, err
		}
	}
	for _, s := range all[everyVerb] {
		if f := flagOf(c, s.Name); f == nil || !sameFlag(f, flagOf(root.Command("crawl"), s.Name)) {
			continue
		}
		if err := apply(s); err != nil {
			return nil, err
		}
	}
	return set, nil
}

// namingFile adds to an error about a flag the place in the file where it was set.
func namingFile(err error, set []Setting) error {
	var usage UsageError
	if !errors.As(err, &usage) {
		return err
	}
	for _, s := range set {
		if rest, ok := strings.CutPrefix(usage.Error(), "-"+s.Name); ok && rest != "" && strings.ContainsAny(rest[:1], ": ") {
			return Usagef("%w (set by %s:%d)", err, s.File, s.Line)
		}
	}
	return err
}

// everyVerb is the section of the settings that stand at the top of a file.
const everyVerb = ""

// parseConfig returns the settings of a file by verb.
func parseConfig(root *cli.Command, file string, text []byte) (map[string][]Setting, error) {
	var doc, more yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, nil // nothing but comments
	} else if err != nil {
		return nil, Usagef("%s: %w", file, err)
	}
	if err := d.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, Usagef("%s: more than one document", file)
	}
	all := map[string][]Setting{}
	err := eachPair(file, doc.Content[0], func(key Setting, value *yaml.Node) error {
		if value.Kind != yaml.MappingNode {
			return addSetting(all, everyVerb, root.Command("crawl"), key, value)
		}
		verb := root.Command(key.Name)
		if verb == nil || verb.Hidden || flagOf(verb, "config") == nil {
			return key.errorf("%q is not a verb with a configuration%s", key.Name, SuggestVerbs(root, key.Name))
		}
		return eachPair(file, value, func(key Setting, value *yaml.Node) error {
			return addSetting(all, verb.Name, verb, key, value)
		})
	})
	return all, err
}

// addSetting adds the value of a flag of a verb to a section.
func addSetting(all map[string][]Setting, section string, verb *cli.Command, s Setting, value *yaml.Node) error {
	f := flagOf(verb, s.Name)
	switch v, ok := f.(cli.VisibleFlag); {
	case s.Name == "config", f != nil && (!ok || !v.IsVisible()):
		return s.errorf("%s has no effect here", s.Name)
	case f == nil && section == everyVerb:
		return s.errorf("unknown key %q%s", s.Name, cmp.Or(SuggestFlags(verb, s.Name), "; if it is a flag of another verb, put it below the name of that verb"))
	case f == nil:
		return s.errorf("unknown key %q: %s has no such flag%s", s.Name, verb.Name, SuggestFlags(verb, s.Name))
	}
	items := []*yaml.Node{value}
	if value.Kind == yaml.SequenceNode {
		if d, ok := f.(cli.DocGenerationMultiValueFlag); !ok || !d.IsMultiValueFlag() {
			return s.errorf("%s takes one value", s.Name)
		}
		items = value.Content
	}
	for _, item := range items {
		if item.Kind != yaml.ScalarNode || item.Tag == "!!null" {
			return s.errorf("%s has no value", s.Name)
		}
		s.Values = append(s.Values, item.Value)
	}
	all[section] = append(all[section], s)
	return nil
}

// eachPair calls do for each key of a mapping, and refuses what is none.
func eachPair(file string, mapping *yaml.Node, do func(key Setting, value *yaml.Node) error) error {
	if mapping.Kind != yaml.MappingNode {
		return Usagef("%s:%d: want lines such as agent: mybot", file, mapping.Line)
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		key, value := mapping.Content[i], mapping.Content[i+1]
		s := Setting{Name: key.Value, File: file, Line: key.Line}
		if seen[s.Name] {
			return s.errorf("%s is set twice", s.Name)
		}
		seen[s.Name] = true
		if value.Kind == yaml.AliasNode {
			value = value.Alias
		}
		if err := do(s, value); err != nil {
			return err
		}
	}
	return nil
}

// flagOf returns the flag of a verb with a name; nil if there is none.
func flagOf(verb *cli.Command, name string) cli.Flag {
	for _, f := range verb.Flags {
		if slices.Contains(f.Names(), name) {
			return f
		}
	}
	return nil
}

// sameFlag reports whether two flags with the same name mean the same: the first is shown in
// the help of its verb, and in the same words.
func sameFlag(f, g cli.Flag) bool {
	v, ok := f.(cli.VisibleFlag)
	x, ok1 := f.(cli.DocGenerationFlag)
	y, ok2 := g.(cli.DocGenerationFlag)
	return ok && ok1 && ok2 && v.IsVisible() && x.GetUsage() == y.GetUsage()
}
