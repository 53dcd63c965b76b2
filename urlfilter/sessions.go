package urlfilter

import "strings"

// SessionIDs drops session ids from a URL: what a server adds to each link to tell
// one visitor from another, so that each visit makes a new site of the same pages.
// They are dropped from the query and from parameters of the path
// (";jsessionid=..."). A path segment is never dropped.
//
// What counts as one, whatever the case of the name:
//
//   - jsessionid, phpsessid, aspsessionid..., sessionid, session_id, sessid,
//     oscsid, zenid, xtcsid, cftoken with a value of 8 letters and digits or more;
//   - cfid beside a cftoken;
//   - sid, s, session and session-id with a value of 20 letters and digits or
//     more, some of them digits.
//
// Nutch's stock regex-normalize.xml drops whatever is called sid, sessionid or
// phpsessid, with all that follows it.
type SessionIDs struct{}

// Normalize returns the URL without session ids. The scope makes no difference.
func (SessionIDs) Normalize(_ Scope, url string) (string, error) {
	if !strings.ContainsAny(url, "?;&") {
		return url, nil
	}
	rest, fragment, hasFragment := strings.Cut(url, "#")
	head, query, _ := strings.Cut(rest, "?")
	changed := false
	if i := strings.IndexByte(head, ';'); i >= 0 {
		var b strings.Builder
		b.WriteString(head[:i])
		for tail := head[i:]; tail != ""; {
			end := 1 + strings.IndexAny(tail[1:], ";/")
			if end == 0 {
				end = len(tail)
			}
			if tail[0] == ';' && isSession(tail[1:end], "") {
				changed = true
			} else {
				b.WriteString(tail[:end])
			}
			tail = tail[end:]
		}
		head = b.String()
	}
	if kept := dropSessions(query); len(kept) < len(query) {
		query, changed = kept, true
	}
	if !changed {
		return url, nil
	}
	if query != "" {
		head += "?" + query
	}
	if hasFragment {
		head += "#" + fragment
	}
	return head, nil
}

// dropSessions returns a query without session ids.
func dropSessions(query string) string {
	some := false
	for p := range strings.SplitSeq(query, "&") {
		some = some || isSession(p, query)
	}
	if !some {
		return query
	}
	var kept strings.Builder
	first, dropped := true, false // a query that begins with empty parameters keeps them, up to what is dropped
	for p := range strings.SplitSeq(query, "&") {
		if isSession(p, query) {
			dropped = true
			continue
		}
		if kept.Len() > 0 || !first && !dropped {
			kept.WriteByte('&')
		}
		kept.WriteString(p)
		first = false
	}
	return kept.String()
}

// isSession reports whether a parameter, "name=value", is a session id; all is
// the query it is in.
func isSession(param, all string) bool {
	name, value, ok := strings.Cut(param, "=")
	if !ok {
		return false
	}
	if len(name) > 24 {
		return false
	}
	var buf [24]byte
	lower := buf[:0]
	for i := range len(name) {
		c := name[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		lower = append(lower, c)
	}
	switch string(lower) {
	case "jsessionid", "phpsessid", "sessionid", "session_id", "sessid", "oscsid", "zenid", "xtcsid", "cftoken":
		return isToken(value, 8, false)
	case "cfid":
		return strings.Contains(strings.ToLower(all), "cftoken=") && isToken(value, 1, false)
	case "sid", "s", "session", "session-id":
		return isToken(value, 20, true)
	}
	const asp = "aspsessionid"
	return len(name) >= len(asp) && strings.EqualFold(name[:len(asp)], asp) && isToken(value, 8, false)
}

// isToken reports whether a value looks random: at least so many characters, all of
// them letters, digits or a few marks, with a digit among them if digits is set.
func isToken(s string, least int, digits bool) bool {
	if len(s) < least {
		return false
	}
	some := false
	for i := range len(s) {
		switch c := s[i]; {
		case '0' <= c && c <= '9':
			some = true
		case 'a' <= c|0x20 && c|0x20 <= 'z', c == '-', c == '_', c == '.', c == '!', c == '~', c == '*', c == ':', c == '%':
		default:
			return false
		}
	}
	return some || !digits
}

// Explain says which rule changes the URL.
func (n SessionIDs) Explain(url string) string {
	if out, _ := n.Normalize(AnyScope, url); out != url {
		return "session ids are dropped"
	}
	return ""
}

// String names the normalizer.
func (SessionIDs) String() string { return "session id normalizer" }
