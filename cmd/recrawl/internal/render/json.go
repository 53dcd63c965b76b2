package render

import (
	"encoding/json"
	"io"
	"time"
)

// JSON writes one object, indented.
func JSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// NonNil returns what JSON has as a list even if it is empty: null is nothing to iterate over.
func NonNil[T any](all []T) []T {
	if all == nil {
		return []T{}
	}
	return all
}

// JSONLine writes one object on one line.
func JSONLine(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

func TimeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
