package pgstore

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// retry calls f until it succeeds, fails for good, or the patience of the store is used up.
func (db *DB) retry(ctx context.Context, f func(context.Context) error) error {
	var began time.Time
	for wait := time.Millisecond; ; wait = min(2*wait, time.Second) {
		err := f(ctx)
		if err == nil || ctx.Err() != nil || !transient(err) {
			return err
		}
		conflict := isConflict(err)
		if began.IsZero() {
			began = time.Now()
		}
		if !conflict && time.Since(began) >= db.patience {
			return err
		}
		db.log.Warn("pgstore: trying again", "error", err, "conflict", conflict)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// transient reports whether the same statements may succeed later.
func transient(err error) bool {
	var server *pgconn.PgError
	if errors.As(err, &server) {
		switch server.Code {
		case "57P01", "57P02", "57P03", "53300", "25006", "40003":
			// The server is stopping, has crashed or is starting, has no connection to
			// spare, is a standby that has not been promoted yet, or does not know the outcome.
			return true
		}
		return strings.HasPrefix(server.Code, "08") || isConflict(err)
	}
	var network net.Error
	return pgconn.SafeToRetry(err) || errors.Is(err, pgconn.ErrConnClosed) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) || errors.As(err, &network)
}

// isConflict reports whether the server asks that a transaction be repeated: it could not be
// serialized, or was part of a deadlock.
func isConflict(err error) bool {
	var server *pgconn.PgError
	return errors.As(err, &server) && (server.Code == "40001" || server.Code == "40P01")
}

// isUnanswered reports whether a commit that returned the error may have taken place.
func isUnanswered(err error) bool {
	if err == nil || errors.Is(err, pgx.ErrTxCommitRollback) || pgconn.SafeToRetry(err) || isConflict(err) {
		return false
	}
	return !errors.As(err, new(*pgconn.PgError)) || transient(err)
}
