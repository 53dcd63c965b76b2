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

// TimeOrNil returns a time that JSON can hold: see [JSONTime]; nil for the zero time.
func TimeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = JSONTime(t)
	return &t
}

// JSONTime returns the nearest time in the years 1 to 9999, which RFC 3339 can write.
func JSONTime(t time.Time) time.Time {
	first, last := time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
	switch {
	case t.Before(first):
		return first
	case t.After(last):
		return last
	}
	return t
}
