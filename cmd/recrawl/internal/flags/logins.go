package flags

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"github.com/recrawl/recrawl/protocol/httpproto"
)

// readLogins reads a file of logins and cookies. Its errors name file and line, but
// quote nothing from it.
func readLogins(file string, warn io.Writer) ([]httpproto.Login, []httpproto.Cookie, error) {
	if file == "" {
		return nil, nil, Usagef("-logins needs the name of a file")
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, Usagef("-logins: %w", err)
	}
	if info, err := os.Stat(file); err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		fmt.Fprintf(warn, "recrawl: other users can read the secrets in %s: its mode is %04o\n", file, info.Mode().Perm())
	}
	// Making a client from the lines so far finds what is wrong with the last one.
	o := httpproto.Options{Agent: "logins"}
	s := bufio.NewScanner(bytes.NewReader(bytes.TrimPrefix(text, []byte("\ufeff"))))
	for n := 1; s.Scan(); n++ {
		line := strings.TrimSpace(s.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		origin, rest := cutField(line)
		kind, secret := cutField(rest)
		err := errors.New("want ORIGIN basic USER:PASSWORD, ORIGIN bearer TOKEN or ORIGIN cookie NAME=VALUE")
		user, password, pair := strings.Cut(secret, ":")
		switch kind = strings.ToLower(kind); {
		case kind == "basic" && pair:
			o.Logins, err = append(o.Logins, httpproto.Login{Origin: origin, User: user, Password: password}), nil
		case kind == "bearer" && secret != "":
			o.Logins, err = append(o.Logins, httpproto.Login{Origin: origin, Token: secret}), nil
		case kind == "cookie" && strings.Contains(secret, "="):
			o.Cookies, err = append(o.Cookies, httpproto.Cookie{Origin: origin, Value: secret}), nil
		}
		if err == nil {
			if _, wrong := httpproto.New(o); wrong != nil {
				err = errors.Unwrap(wrong)
			}
		}
		if err != nil {
			return nil, nil, Usagef("-logins: %s:%d: %w", file, n, err)
		}
	}
	if err := s.Err(); err != nil {
		return nil, nil, Usagef("-logins: %s: %w", file, err)
	}
	return o.Logins, o.Cookies, nil
}

// cutField cuts a line after its first word.
func cutField(s string) (word, rest string) {
	i := strings.IndexAny(s, " \t")
	if i < 0 {
		return s, ""
	}
	return s[:i], strings.TrimLeft(s[i:], " \t")
}
