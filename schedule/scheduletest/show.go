package scheduletest

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/recrawl/recrawl/crawldb"
)

// fields returns the fields of a struct that are not zero. Messages have a record or more,
// and are to be read.
func fields(v any) string {
	var all []string
	for f, value := range reflect.ValueOf(v).Fields() {
		if !value.IsZero() {
			all = append(all, f.Name+" "+show(value.Interface()))
		}
	}
	return strings.Join(all, ", ")
}

// differences names the fields in which a record is not the one that was wanted.
func differences(got, want crawldb.Datum) string {
	var all []string
	w := reflect.ValueOf(want)
	for f, value := range reflect.ValueOf(got).Fields() {
		a, b := value.Interface(), w.FieldByIndex(f.Index).Interface()
		if !reflect.DeepEqual(a, b) {
			all = append(all, fmt.Sprintf("%s is %s, not %s", f.Name, show(a), show(b)))
		}
	}
	return strings.Join(all, ", ")
}

func show(v any) string {
	switch v := v.(type) {
	case time.Time:
		return v.Format(time.RFC3339Nano)
	case string:
		return fmt.Sprintf("%q", v)
	case []byte:
		return fmt.Sprintf("%x", v)
	case crawldb.Meta:
		var pairs []string
		for name, value := range v.All() {
			pairs = append(pairs, fmt.Sprintf("%s=%q", name, value))
		}
		return "[" + strings.Join(pairs, " ") + "]"
	}
	return fmt.Sprint(v)
}
