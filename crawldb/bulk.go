package crawldb

import (
	"context"
	"iter"
)

// BulkStore is the capability of a Store to apply many batches together at a
// lower cost than one by one: to load what others have collected, or to change
// most of what it holds. Use it through [UpdateAll].
type BulkStore interface {
	Store

	// UpdateAll does what Update does for each batch in turn, and then what Sync
	// does; so each Next sees the results of the batches before. All that Store
	// promises for Update holds for each batch. Beyond that:
	//
	// After an error, a done context or a crash the store holds the results of the
	// batches up to some batch, with the marks of that one, and nothing of later
	// ones. The marks tell which batch that is.
	//
	// Once the sequence is asked for a batch, the functions of the one before are
	// no longer called, and their memory may be reused. Only when UpdateAll
	// returns is it known that a batch was applied.
	//
	// The sequence, like Next, must not use the store, except that it may call
	// Mark, which returns what the batches applied so far have left; their own
	// marks say which those are. Other Updates may have to wait for it, so it should
	// not block.
	//
	// Batches may come in any order; they cost least if each begins after the end
	// of the one before. An error from the sequence ends the call, which returns
	// it wrapped.
	UpdateAll(ctx context.Context, batches iter.Seq2[Batch, error]) error
}

// UpdateAll applies many batches, as [BulkStore] says. It uses the UpdateAll of the
// store if that is a BulkStore, or wraps one and has a method Unwrap() Store: a
// wrapper whose Update does more than pass the batch on must have either its own
// UpdateAll or no such method. Any other Store is given one batch after the other.
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
