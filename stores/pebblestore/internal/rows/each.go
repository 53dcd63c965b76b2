package rows

import "github.com/cockroachdb/pebble/v2"

// CheckEvery is the number of rows after which a long call should check whether it is to end.
const CheckEvery = 256

// Each calls f with each row that an iterator visits, and check after every [CheckEvery]; an error of
// either ends it. Errors of the engine are passed through wrap, which returns nil for nil.
func Each(it *pebble.Iterator, check func() error, wrap func(error) error, f func(key, value []byte) error) error {
	n := 0
	for ok := it.First(); ok; ok = it.Next() {
		if n++; n%CheckEvery == 0 {
			if err := check(); err != nil {
				return err
			}
		}
		value, err := it.ValueAndErr()
		if err != nil {
			return wrap(err)
		}
		if err := f(it.Key(), value); err != nil {
			return err
		}
	}
	return wrap(it.Error())
}
