package crawldb

import (
	"context"
	"iter"
)

// BulkStore is the capability of a Store that applies many batches together for
// less than each by itself: to load what others have collected, or to change most
// of what it holds. Use it through [UpdateAll].
type BulkStore interface {
	Store

	// UpdateAll does what Update does, with each batch in its turn, and then what
	// Sync does; so what each Next is given is what the batches before have left.
	// All that Store promises of Update holds of each batch. Beyond that:
	//
	// After an error, a done context or a crash the store holds what the batches up
	// to one of them have made of it, with the mark of that one, and nothing of a
	// later one. Which one it is, a mark tells.
	//
	// When the sequence is asked for a batch, the functions of the one before are
	// not called any more, and their memory may be used again. That the batch was
	// applied is not known before UpdateAll returns.
	//
	// The sequence, like Next, must not use the store, but that it may ask for
	// Progress: it is told what the batches that were applied have left, and their
	// own marks say which these are. Other Updates may wait as long as it runs, so it
	// should wait for nobody.
	//
	// Batches may come in any order; they cost least if each begins behind the end
	// of the one before. An error of the sequence ends the call, which returns it
	// wrapped.
	UpdateAll(ctx context.Context, batches iter.Seq2[Batch, error]) error
}

// UpdateAll applies many batches, as [BulkStore] says. It leaves them to the store
// if that is one, or wraps one and says so by a method Unwrap() Store: a wrapper
// whose Update does more than to pass the batch on must have either an UpdateAll
// of its own or no such method. Any other Store is given one batch after the other.
func UpdateAll(ctx context.Context, s Store, batches iter.Seq2[Batch, error]) error {
	if b, ok := as[BulkStore](s); ok {
		return b.UpdateAll(ctx, batches)
	}
	for b, err := range batches {
		if err == nil {
			err = s.Update(ctx, b)
		}
		if err != nil {
			return err
		}
	}
	return s.Sync(ctx)
}

// as returns the T that s is or wraps, if there is one.
func as[T Store](s Store) (T, bool) {
	for s != nil {
		if t, ok := s.(T); ok {
			return t, true
		}
		u, ok := s.(interface{ Unwrap() Store })
		if !ok {
			break
		}
		s = u.Unwrap()
	}
	var none T
	return none, false
}
