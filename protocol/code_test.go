package protocol_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/recrawl/recrawl/protocol"
)

func TestCodesHaveNames(t *testing.T) {
	seen := map[string]bool{}
	for c := protocol.Success; c <= protocol.Skipped; c++ {
		name := c.String()
		if seen[name] || strings.HasPrefix(name, "unknown") {
			t.Errorf("code %d is called %q", uint8(c), name)
		}
		seen[name] = true
	}
}

func TestCodeAsText(t *testing.T) {
	want := map[protocol.Code]int{protocol.Success: 1, protocol.Skipped: 2, 200: 3}
	b, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	if s := `{"skipped":2,"success":1,"unknown(200)":3}`; string(b) != s {
		t.Errorf("got %s, want %s", b, s)
	}
	var got map[protocol.Code]int
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	for c, n := range want {
		if got[c] != n {
			t.Errorf("%v: %d, want %d", c, got[c], n)
		}
	}
	if err := json.Unmarshal([]byte(`{"no such":1}`), &got); err == nil {
		t.Error("an unknown name is no error")
	}
}
