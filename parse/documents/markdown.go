package documents

import (
	"net/url"
	"path"
	"strings"
)

const typeMarkdown = "text/markdown"

// isLLMsTxt reports whether a URL is that of a site's directory for language models (llmstxt.org), which is
// Markdown, and which servers send as plain text.
func isLLMsTxt(address string) bool {
	u, err := url.Parse(address)
	return err == nil && (path.Base(u.Path) == "llms.txt" || path.Base(u.Path) == "llms-full.txt")
}

// readMarkdown reads the title, the text as it is, and the links.
func (d *document) readMarkdown() error {
	text := string(d.content.Body)
	for line := range strings.Lines(text) {
		if title, ok := strings.CutPrefix(line, "# "); ok {
			d.parsed.Title = title[:min(len(title), 1000)]
			break
		}
	}
	d.markdownLinks(text)
	return d.add(text)
}

// markdownLinks adds the targets of [text](target "title") and <target>.
func (d *document) markdownLinks(text string) {
	for at := 0; ; {
		i := strings.IndexAny(text[at:], "]<")
		if i < 0 || d.ctx.Err() != nil {
			return
		}
		at += i + 1
		rest := text[at:min(len(text), at+maxURL)]
		if text[at-1] == '<' {
			if target, _, ok := strings.Cut(rest, ">"); ok && strings.Contains(target, "://") && !strings.ContainsAny(target, " \n\"") {
				d.link(target, "")
			}
			continue
		}
		target, ok := inParentheses(rest)
		if !ok {
			continue
		}
		target, title, titled := strings.Cut(strings.TrimSpace(target), " ")
		if title = strings.TrimSpace(title); titled && !strings.HasPrefix(title, `"`) && !strings.HasPrefix(title, "'") {
			continue
		}
		d.link(strings.Trim(target, "<>"), anchorBefore(text[max(0, at-500):at-1]))
	}
}

// inParentheses returns the text between the parenthesis that s begins with and the one that closes it.
func inParentheses(s string) (text string, ok bool) {
	if !strings.HasPrefix(s, "(") {
		return "", false
	}
	open := 0
	for i := range len(s) {
		switch s[i] {
		case '(':
			open++
		case ')':
			if open--; open == 0 {
				return s[1:i], true
			}
		}
	}
	return "", false
}

// anchorBefore returns what stands behind the last bracket of a text.
func anchorBefore(text string) string { return text[strings.LastIndexByte(text, '[')+1:] }
