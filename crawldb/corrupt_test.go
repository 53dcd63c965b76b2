package crawldb_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/recrawl/recrawl/crawldb"
)

// The message of damage says where to look.
func TestCorruptError(t *testing.T) {
	cause := errors.New("checksum")
	for want, e := range map[string]*crawldb.CorruptError{
		"a/b is damaged at 7: checksum":                                {File: "a/b", Offset: 7, Err: cause},
		"a/b is damaged at 0: checksum":                                {File: "a/b", Err: cause},
		"a/b is damaged: checksum":                                     {File: "a/b", Offset: -1, Err: cause},
		`the record of "http://a/\n" in a/b is damaged at 7: checksum`: {File: "a/b", Offset: 7, URL: "http://a/\n", Err: cause},
	} {
		err := fmt.Errorf("read: %w", e)
		var found *crawldb.CorruptError
		if e.Error() != want || !errors.Is(err, cause) || !errors.As(err, &found) || found != e {
			t.Errorf("%s, want %s", e, want)
		}
	}
}
