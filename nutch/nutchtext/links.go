package nutchtext

import "github.com/recrawl/recrawl/linkdb"

// AppendInlinks appends a page and its inlinks as in a dump of Nutch's link db:
// the URL, a tab and "Inlinks:", a line for each link, and an empty line. An
// inlink has no metadata here.
func AppendInlinks(b []byte, e *linkdb.Entry) []byte {
	b = append(append(b, e.URL...), "\tInlinks:\n"...)
	for i := range e.Inlinks {
		b = append(AppendInlink(append(b, ' '), &e.Inlinks[i]), '\n')
	}
	return append(b, '\n')
}

// AppendInlink appends one link, without the end of its line.
func AppendInlink(b []byte, l *linkdb.Inlink) []byte {
	b = append(append(b, "fromUrl: "...), l.From...)
	b = append(append(b, " anchor: "...), l.Anchor...)
	return append(b, " metadata: "...)
}
