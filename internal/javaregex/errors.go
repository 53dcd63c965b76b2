package javaregex

import (
	"errors"
	"fmt"
	"regexp/syntax"
	"strings"
)

// quotedBytes is how much of a pattern an error quotes.
const quotedBytes = 100

// patternError names the pattern in an error about it.
func patternError(pattern string, err error) error {
	if e := (*syntax.Error)(nil); errors.As(err, &e) && len(e.Expr) > quotedBytes {
		err = &syntax.Error{Code: e.Code, Expr: clip(e.Expr)}
	}
	return fmt.Errorf("pattern %#q: %w", clip(pattern), err)
}

// clip shortens text that an error quotes.
func clip(s string) string {
	if len(s) <= quotedBytes {
		return s
	}
	return strings.ToValidUTF8(s[:quotedBytes], "") + "…"
}
