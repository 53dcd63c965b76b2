package javaregex

import (
	"strings"
	"testing"

	"github.com/recrawl/recrawl/internal/testlevel"
)

func TestErrorsQuoteLongPatternsInPart(t *testing.T) {
	long := strings.Repeat("äbc", testlevel.Pick(2_000, 40_000))
	for _, pattern := range []string{"(" + long, long + ")", "[z-a]" + long, "[" + long, "(?=x)" + long, `\p{` + long + "}", long + "\xff", strings.Repeat("(a{900})", testlevel.Pick(1_000, 20_000))} {
		if _, err := Compile(pattern); err != nil && len(err.Error()) > 500 {
			t.Errorf("an error of %d bytes: %.300s", len(err.Error()), err)
		}
		if _, err := CompileAutomaton(pattern); err != nil && len(err.Error()) > 500 {
			t.Errorf("an error of %d bytes: %.300s", len(err.Error()), err)
		}
	}
}
