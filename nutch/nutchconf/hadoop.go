package nutchconf

import (
	"bufio"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"strings"
)

// setting is one <property> of a configuration file.
type setting struct {
	name, value string
	final       bool
	file        string // it was read from; empty for the one being read
	line        int
}

// maxDepth bounds the nesting of elements in a configuration file. Hadoop reads nothing
// deeper than four.
const maxDepth = 16

// maxFile bounds a configuration file, in bytes.
const maxFile = 4 << 20

// readSettings reads a file in the form of Hadoop's configuration:
//
//	<configuration>
//	  <property><name>n</name><value>v</value><final>true</final></property>
//	</configuration>
//
// As in Hadoop, the three may be attributes of property instead, names are trimmed but
// values are not, and unknown elements are ignored. An xi:include stands for the
// properties of the file that include reads; if the file does not exist
// (fs.ErrNotExist), for those in its xi:fallback, without which that is an error.
func readSettings(r io.Reader, include func(href string) ([]setting, error)) ([]setting, error) {
	lines := &lineCounter{r: bufio.NewReader(io.LimitReader(r, maxFile+1))}
	d := xml.NewDecoder(lines)
	d.CharsetReader = charset
	var (
		all   []setting
		path  []string // the open elements
		at    setting
		text  strings.Builder
		begun bool
		skip  int   // depth of an unneeded fallback; zero outside of one
		gone  error // set if the file of the open include does not exist
	)
	fail := func(err error) error {
		line, _ := d.InputPos()
		if s := (*xml.SyntaxError)(nil); errors.As(err, &s) {
			line, err = s.Line, errors.New(s.Msg)
		}
		return &lineError{line, err}
	}
	for {
		tok, err := d.Token()
		if lines.n > maxFile {
			return nil, fail(fmt.Errorf("the file is longer than %d MiB", maxFile>>20))
		}
		if err == io.EOF {
			if !begun {
				return nil, fail(errors.New("no <configuration>"))
			}
			return all, nil
		}
		if err != nil {
			return nil, fail(err)
		}
		switch t := tok.(type) {
		case xml.StartElement:
			name := t.Name.Local
			switch {
			case len(path) == 0 && name != "configuration":
				return nil, fail(fmt.Errorf("the file begins with <%s>, not with <configuration>", name))
			case len(path) == maxDepth:
				return nil, fail(errors.New("elements are nested too deeply"))
			}
			begun = true
			path = append(path, name)
			text.Reset()
			switch {
			case skip > 0:
			case name == "include":
				some, err := include(attr(t, "href"))
				if err != nil && !errors.Is(err, fs.ErrNotExist) {
					return nil, fail(fmt.Errorf("xi:include: %w", err))
				}
				all, gone = append(all, some...), err
			case name == "fallback":
				if gone == nil {
					skip = len(path)
				}
				gone = nil
			}
			if name == "property" {
				line, _ := d.InputPos()
				at = setting{name: attr(t, "name"), value: attr(t, "value"), final: attr(t, "final") == "true", line: line}
			}
		case xml.Directive:
			if err := entities(d, t); err != nil {
				return nil, fail(err)
			}
		case xml.CharData:
			text.Write(t)
		case xml.EndElement:
			inside := len(path) > 1 && path[len(path)-2] == "property"
			within := skip > 0
			if len(path) == skip {
				skip = 0
			}
			path = path[:len(path)-1]
			switch {
			case within:
			case t.Name.Local == "include" && gone != nil:
				return nil, fail(fmt.Errorf("xi:include without fallback: %v", gone))
			case inside && t.Name.Local == "name":
				at.name = text.String()
			case inside && t.Name.Local == "value":
				at.value = text.String()
			case inside && t.Name.Local == "final":
				at.final = text.String() == "true"
			case t.Name.Local == "property":
				if at.name = strings.TrimSpace(at.name); at.name == "" {
					return nil, &lineError{at.line, errors.New("a <property> has no <name>")}
				}
				all = append(all, at)
			}
			text.Reset()
		}
	}
}

// maxEntities bounds the entities that a DOCTYPE declares, in bytes, so that they cannot
// make a file much larger.
const maxEntities = 256

// entities reads the entities that a DOCTYPE declares, as in <!ENTITY name "text">.
// Their values are plain text. Entities in other files are unknown.
func entities(d *xml.Decoder, doctype []byte) error {
	total := 0
	for _, m := range regexp.MustCompile(`<!ENTITY\s+([\w.:-]+)\s+(?:"([^"%&<]*)"|'([^'%&<]*)')\s*>`).FindAllSubmatch(doctype, -1) {
		if d.Entity == nil {
			d.Entity = map[string]string{}
		}
		if total += len(m[2]) + len(m[3]); total > maxEntities {
			return fmt.Errorf("the entities are longer than %d bytes", maxEntities)
		}
		d.Entity[string(m[1])] = string(m[2]) + string(m[3])
	}
	return nil
}

// attr returns the value of an attribute; empty if there is none.
func attr(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// lineError is an error in one line of a file.
type lineError struct {
	line int
	err  error
}

func (e *lineError) Error() string { return fmt.Sprintf("line %d: %v", e.line, e.err) }
func (e *lineError) Unwrap() error { return e.err }

// lineCounter counts the bytes that pass.
type lineCounter struct {
	r *bufio.Reader
	n int64
}

func (c *lineCounter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

func (c *lineCounter) ReadByte() (byte, error) {
	b, err := c.r.ReadByte()
	if err == nil {
		c.n++
	}
	return b, err
}

// charset reads the encodings other than UTF-8 that such files have.
func charset(label string, r io.Reader) (io.Reader, error) {
	switch strings.ToLower(label) {
	case "utf8", "us-ascii", "ascii":
		return r, nil
	case "iso-8859-1", "latin1":
		return &latin1{r: bufio.NewReader(r)}, nil
	}
	return nil, fmt.Errorf("the encoding %q is not supported; write the file in UTF-8", label)
}

// latin1 turns ISO 8859-1 into UTF-8.
type latin1 struct {
	r    *bufio.Reader
	rest byte // the second byte of a character; zero if there is none
}

func (l *latin1) Read(p []byte) (int, error) {
	for n := range p {
		if l.rest != 0 {
			p[n], l.rest = l.rest, 0
			continue
		}
		b, err := l.r.ReadByte()
		if err != nil {
			return n, err
		}
		if b < 0x80 {
			p[n] = b
			continue
		}
		p[n], l.rest = 0xC0|b>>6, 0x80|b&0x3F
	}
	return len(p), nil
}

// maxExpansions is the number of variables that Hadoop replaces in one value.
const maxExpansions = 20

// expand replaces each ${name} in a value by the value of that property, and in the
// result again. Like Hadoop it stops at a name that get does not know, and leaves it in
// place. Too many variables are an error: most likely there is a cycle.
func expand(value string, get func(name string) (string, bool)) (string, error) {
	for range maxExpansions + 1 {
		begin, end := variable(value)
		if end == 0 {
			return value, nil
		}
		v, ok := get(value[begin+2 : end-1])
		if !ok {
			return value, nil
		}
		if len(value)+len(v) > maxFile {
			break
		}
		value = value[:begin] + v + value[end:]
	}
	return "", fmt.Errorf("more than %d variables to replace; do they refer to each other?", maxExpansions)
}

// variable returns the place of the first ${name}; if there is none, end is zero. A name
// is not empty and has no '}', '$' or blank.
func variable(s string) (begin, end int) {
	for i := 0; i+3 < len(s); i++ {
		if s[i] != '$' || s[i+1] != '{' {
			continue
		}
		j := i + 2
		for j < len(s) && s[j] != '}' && s[j] != '$' && s[j] != ' ' {
			j++
		}
		if j > i+2 && j < len(s) && s[j] == '}' {
			return i, j + 1
		}
	}
	return 0, 0
}
