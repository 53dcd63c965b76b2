package crawldb

import "context"

// GetAll reads the records of some URLs in one step, nil for a URL that has none. The URLs must be
// strictly ascending in key order ([Compare]).
func GetAll(ctx context.Context, s Store, urls []string) ([]*Datum, error) {
	if len(urls) == 0 {
		return nil, nil
	}
	records := make([]*Datum, len(urls))
	err := s.Update(ctx, Batch{URLs: urls, Next: func(i int, old *Datum) (*Datum, error) {
		records[i] = nil
		if old != nil {
			d := *old
			records[i] = &d
		}
		return old, nil
	}})
	return records, err
}
