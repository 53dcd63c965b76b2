package pgstore

import (
	"context"
	"time"
)

// leaseTime is how long a crawl stays locked after the last sign of life of the process that
// has it open. It is measured by the clock of the process that waits for it, and no two clocks
// are compared.
const leaseTime = 5 * time.Second

// acquire makes this DB the one that may change the crawl. If another process has it open, its
// error is ErrLocked, and it comes at the next sign of life of that process; if there is none
// within the time of a lease, that process is fenced.
func (db *DB) acquire(ctx context.Context) error {
	var seen int64
	for began := time.Now(); ; {
		held, beat, err := db.lease(ctx)
		if err != nil {
			return err
		}
		if seen == 0 {
			seen = beat
		}
		if held && beat != seen {
			return ErrLocked
		}
		if !held || time.Since(began) >= db.leaseTime {
			taken, err := db.takeLease(ctx, beat)
			if taken || err != nil {
				return err
			}
			seen, began = 0, time.Now() // another process was faster
			continue
		}
		select {
		case <-time.After(db.leaseTime / 20):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (db *DB) lease(ctx context.Context) (held bool, beat int64, err error) {
	err = db.retry(ctx, func(ctx context.Context) error {
		return db.pool.QueryRow(ctx, `SELECT held, beat FROM crawl_lease WHERE id = 0`).Scan(&held, &beat)
	})
	return held, beat, err
}

// takeLease takes the lease if there was no sign of life since beat. It waits for a change that
// another DB is committing, so what this DB then reads stays.
func (db *DB) takeLease(ctx context.Context, beat int64) (taken bool, err error) {
	tag, err := db.pool.Exec(ctx, `UPDATE crawl_lease SET held = true, beat = beat + 1 WHERE id = 0 AND beat = $1`, beat)
	if err != nil || tag.RowsAffected() == 0 {
		return false, err
	}
	return true, db.pool.QueryRow(ctx, `UPDATE crawl_group SET opening = opening + 1 WHERE id = 0 RETURNING opening`).Scan(&db.opening)
}

// keepLease gives signs of life until the context is done.
func (db *DB) keepLease(ctx context.Context) {
	tick := time.NewTicker(db.leaseTime / 5)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		tag, err := db.pool.Exec(ctx, `UPDATE crawl_lease SET beat = beat + 1 WHERE id = 0 AND EXISTS (SELECT 1 FROM crawl_group WHERE id = 0 AND opening = $1)`, db.opening)
		switch {
		case err != nil && ctx.Err() == nil:
			db.log.Warn("pgstore: no sign of life could be given", "error", err)
		case err == nil && tag.RowsAffected() == 0:
			db.log.Error("pgstore: the crawl was opened by another process")
			return
		}
	}
}

// releaseLease lets the next process open the crawl at once.
func (db *DB) releaseLease() error {
	ctx, cancel := context.WithTimeout(context.Background(), closePatience)
	defer cancel()
	return db.retry(ctx, func(ctx context.Context) error {
		_, err := db.pool.Exec(ctx, `UPDATE crawl_lease SET held = false, beat = beat + 1 WHERE id = 0 AND EXISTS (SELECT 1 FROM crawl_group WHERE id = 0 AND opening = $1)`, db.opening)
		return err
	})
}
