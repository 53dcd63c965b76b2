// Package nutchconf turns the configuration directory of an Apache Nutch
// installation into options. [Read] reads nutch-site.xml over the defaults of Nutch
// 1.23. [Conf.Options] maps every property that has a counterpart, reads the rule
// files that they name, and says why any other property that was set has no effect.
//
// The options decide as Nutch does: NutchCompat is set in every policy that has it,
// unless Conf.Corrected asks for the corrected rules. [Properties] is the table of
// all properties; docs/nutch-properties.md presents it.
//
// It runs no crawl and reads no Hadoop configuration beyond Nutch's files. A mistake is an error that
// names file, line and property: an invalid number, a rule that cannot be parsed, a missing rule
// file. Nutch ignores some of these mistakes, and crawls pages that were not wanted.
package nutchconf

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The files of a configuration.
const (
	defaultFile = "nutch-default.xml"
	siteFile    = "nutch-site.xml"
)

// Conf is a configuration of Nutch. It may not be changed while it is in use.
type Conf struct {
	// Corrected asks Options for the corrected rules instead of Nutch's, where a
	// policy has both. Numbers, limits and rule files still come from the
	// configuration.
	Corrected bool

	dir    string
	values map[string]value
	names  []string // the properties that were set, in order
}

// value is the value of a property.
type value struct {
	text  string
	file  string // where it was set; empty for Nutch's own default
	line  int
	final bool
}

// New returns Nutch's defaults, without any configuration file. Rule files are read
// from dir.
func New(dir string) *Conf {
	c := &Conf{dir: dir, values: map[string]value{}}
	for g := range groups {
		for i := range g.rows {
			if p := &g.rows[i]; p.Default != "" {
				c.values[p.Name] = value{text: p.Default}
			}
		}
	}
	return c
}

// Read reads the configuration in a directory: nutch-default.xml and then nutch-site.xml.
// At least one of them must exist.
//
// As in Hadoop, a property with an empty value counts as not set, a final one cannot
// be set again later, the last of several values of a property counts, and xi:include
// reads another file, which is looked for in the directory and then beside the file
// that names it.
func Read(dir string) (*Conf, error) {
	c := New(dir)
	found := false
	for _, name := range []string{defaultFile, siteFile} {
		settings, err := c.readFile(filepath.Join(dir, name), nil, new(int))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("nutchconf: %w", err)
		}
		found = true
		if name == defaultFile {
			clear(c.values) // the file has the defaults itself
		}
		for _, s := range settings {
			c.take(name, s)
		}
	}
	if !found {
		return nil, fmt.Errorf("nutchconf: no %s in %s: %w", siteFile, dir, fs.ErrNotExist)
	}
	return c, nil
}

// maxIncludes bounds the number of files that a configuration includes.
const maxIncludes = 100

// readFile reads a configuration file, and the files that it includes, which it counts.
// The files that led to it are in from. An error is fs.ErrNotExist only if the file
// itself does not exist.
func (c *Conf) readFile(path string, from []string, included *int) ([]setting, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	from = append(from[:len(from):len(from)], path)
	settings, err := readSettings(f, func(href string) ([]setting, error) {
		name, ok := strings.CutPrefix(href, "file:")
		if ok && strings.HasPrefix(name, "//") {
			name = name[2:]
		}
		switch {
		case name == "":
			return nil, errors.New("no href")
		case strings.Contains(name, "://"):
			return nil, fmt.Errorf("%s is not a file", href)
		}
		// As in Hadoop, a name is that of a file in the configuration directory, or else
		// of one beside the including file.
		to := c.path(name)
		if !exists(to) && !filepath.IsAbs(name) {
			to = filepath.Join(filepath.Dir(path), name)
		}
		if slices.Contains(from, to) {
			return nil, fmt.Errorf("%s includes itself", to)
		}
		if *included++; *included > maxIncludes {
			return nil, fmt.Errorf("more than %d included files", maxIncludes)
		}
		return c.readFile(to, from, included)
	})
	if err != nil {
		if l := (*lineError)(nil); errors.As(err, &l) {
			return nil, fmt.Errorf("%s:%d: %w", path, l.line, l.err)
		}
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for i := range settings {
		if settings[i].file == "" {
			settings[i].file = path
		}
	}
	return settings, nil
}

// take applies one property of a file.
func (c *Conf) take(name string, s setting) {
	old, known := c.values[s.name]
	if known && old.final {
		return
	}
	v := value{s.value, s.file, s.line, s.final}
	if name == defaultFile {
		if p := row(s.name); p == nil || slices.Equal(strings.Fields(p.Default), strings.Fields(s.value)) {
			v.file = "" // the default, or a property of another part or version of Nutch
		}
	}
	if s.value == "" {
		// Hadoop ignores it except for the mark.
		if s.final {
			old.final = true
			c.values[s.name] = old
		}
		if name == defaultFile {
			return
		}
	} else {
		c.values[s.name] = v
	}
	if v.file != "" && !slices.Contains(c.names, s.name) {
		c.names = append(c.names, s.name)
	}
}

// Set sets a property, like -D on Nutch's command line, even one that is final in a
// file. An empty text changes nothing.
func (c *Conf) Set(name, text string) {
	name = strings.TrimSpace(name)
	if v, ok := c.values[name]; ok && v.final {
		v.final = false
		c.values[name] = v
	}
	c.take(siteFile, setting{name: name, value: text, file: "-D"})
}

// Get returns the value of a property with its variables replaced: the one that
// was set, or Nutch's default. Ok is false if it has neither. Environment variables
// and Java system properties are not replaced.
func (c *Conf) Get(name string) (text string, ok bool, err error) {
	v, ok := c.values[name]
	if !ok || v.text == "" {
		if p := row(name); p != nil {
			if code := p.code(); code != "" {
				return code, true, nil
			}
		}
		return "", false, nil
	}
	text, err = expand(v.text, func(name string) (string, bool) {
		v, ok := c.values[name]
		return v.text, ok && v.text != ""
	})
	if err != nil {
		return "", false, c.errorf(name, "%w", err)
	}
	return text, true, nil
}

// set reports whether the property was given a value.
func (c *Conf) set(name string) bool {
	v, ok := c.values[name]
	return ok && v.text != "" && v.file != ""
}

// errorf returns an error that says where a property was set.
func (c *Conf) errorf(name, format string, args ...any) error {
	return fmt.Errorf("nutchconf: %s: "+format, append([]any{c.place(name)}, args...)...)
}

// place says where a property was set, for errors and notes.
func (c *Conf) place(name string) string {
	v := c.values[name]
	switch {
	case v.file == "":
		return name + " (not set)"
	case v.line == 0:
		return v.file + " " + name
	}
	return fmt.Sprintf("%s:%d: %s", v.file, v.line, name)
}

// Note is a property that does not have the effect one may expect.
type Note struct {
	// Property was set to Value, in Line of File.
	Property, Value string
	File            string
	Line            int
	// Unknown says that Nutch has no such property: a typo, or a property of another
	// program.
	Unknown bool
	// Text says what differs, or why there is no effect.
	Text string
}

// String returns the note as one line.
func (n Note) String() string {
	at := ""
	switch {
	case n.Line > 0:
		at = fmt.Sprintf("%s:%d: ", n.File, n.Line)
	case n.File != "":
		at = n.File + " "
	}
	return at + n.Property + ": " + n.Text
}
