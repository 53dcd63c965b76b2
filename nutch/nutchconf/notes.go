package nutchconf

import (
	"cmp"
	"slices"
	"strings"
)

// unread returns notes about the files that Nutch reads although no property names them.
func (b *builder) unread() (notes []Note) {
	for _, name := range []string{"parse.plugin.file", "indexer.indexwriters.file"} {
		p := row(name)
		if path := b.path(p.Default); !b.set(name) && exists(path) {
			notes = append(notes, Note{Property: name, Value: p.Default, File: path, Text: "this file is not read: " + p.why()})
		}
	}
	return notes
}

// rest notes the properties that no option was made of.
func (b *builder) rest() {
	for _, name := range b.names {
		if b.asked[name] || !b.set(name) && b.values[name].file == "" {
			continue
		}
		v := b.values[name]
		p := row(name)
		switch {
		case v.text == "":
			// For Hadoop it is not set.
		case p == nil && !b.variable(name):
			b.unknown(name)
		case p == nil:
		case strings.Contains(p.Name, "<") && p.Support != NotHonoured:
			n := b.noteOf(name, "unknown: Nutch has no such scope")
			n.Unknown = true
			b.notes = append(b.notes, n)
		case p.Support == NotHonoured && !p.only(v.text):
			text := "not honoured: " + p.why()
			if p.Flag != "" {
				text += "; the flag is " + p.Flag
			}
			b.note(name, text)
		}
	}
	slices.SortStableFunc(b.notes, func(x, y Note) int {
		return cmp.Compare(slices.Index(b.names, x.Property), slices.Index(b.names, y.Property))
	})
}

// variable reports whether the value of another property refers to this one.
func (b *builder) variable(name string) bool {
	for of, v := range b.values {
		if of != name && strings.Contains(v.text, "${"+name+"}") {
			return true
		}
	}
	return false
}

// unknown notes a property that Nutch does not have.
func (b *builder) unknown(name string) {
	n := b.noteOf(name, "")
	for _, f := range foreign {
		if strings.HasPrefix(name, f.prefix) {
			n.Text = "not honoured: " + f.why
			b.notes = append(b.notes, n)
			return
		}
	}
	n.Unknown, n.Text = true, "unknown: Nutch has no such property"
	if now, ok := renamed[name]; ok {
		n.Text = "unknown: it is now called " + now
	} else if like := nearest(name); like != "" {
		n.Text += "; did you mean " + like + "?"
	}
	b.notes = append(b.notes, n)
}

// compatOnly notes that a property has an effect only under Nutch's rules, unless its
// value is what the corrected rules do anyway.
func (b *builder) compatOnly(name string, agree bool) {
	if b.Corrected && !agree {
		b.note(name, "not honoured by the corrected rules: "+row(name).why())
	}
}
