package dueindex

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/codec"
)

// The tallies follow whatever happens to records, and what the engine does with them.
func TestTalliesFollowRecords(t *testing.T) {
	db, urls := tourStore(t, 2000)
	r := rand.New(rand.NewPCG(3, 3))
	now := epoch
	for round := range 6 {
		var some []string
		for _, u := range urls {
			if r.IntN(3) == 0 {
				some = append(some, u)
			}
		}
		err := db.tryUpdate(t.Context(), crawldb.Batch{URLs: some, Next: func(_ int, old *crawldb.Datum) (*crawldb.Datum, error) {
			d := crawldb.Datum{Status: crawldb.Unfetched, FetchTime: now.Add(time.Duration(r.IntN(9)-4) * time.Hour), Priority: r.Float32()}
			switch r.IntN(6) {
			case 0:
				return nil, nil
			case 1:
				d.LeasedUntil = now.Add(5 * time.Hour)
			}
			return &d, nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Hour)
		if err := db.Prepare(t.Context(), now); err != nil {
			t.Fatal(err)
		}
		if round%2 == 1 {
			if err := db.db.Compact(t.Context(), []byte{0}, []byte{0xff}, false); err != nil {
				t.Fatal(err)
			}
		}
		if err := db.checkError(t); err != nil {
			t.Fatal(err)
		}
	}
	db.Rebuild() // built anew
	if err := db.Prepare(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	if err := db.checkError(t); err != nil {
		t.Fatal(err)
	}
}

func TestCheckFindsWrongTallies(t *testing.T) {
	one := codec.Tally{{Level: levelOf(1), N: 1}}
	for _, test := range []struct {
		name, group string
		value       []byte
	}{
		{"of no host", "com,example)", one.Append(nil)},
		{"one too many", "example,a)", codec.Tally{{Level: levelOf(1), N: 2}}.Append(nil)},
		{"of another level", "example,a)", codec.Tally{{Level: levelOf(9), N: 1}}.Append(nil)},
		{"damaged", "example,a)", []byte{0xff}},
		{"none", "example,a)", nil},
	} {
		db := newStore(t)
		db.put(t, "http://a.example/1", func(*crawldb.Datum) *crawldb.Datum {
			return &crawldb.Datum{Status: crawldb.Unfetched, FetchTime: epoch, Priority: 1}
		})
		if err := db.Prepare(t.Context(), epoch.Add(2*time.Hour)); err != nil {
			t.Fatal(err)
		}
		if err := db.checkError(t); err != nil {
			t.Fatal(err)
		}
		if err := db.db.Set(codec.TallyTable.Key(test.group), test.value, pebble.NoSync); err != nil {
			t.Fatal(err)
		}
		if err := db.checkError(t); !errors.Is(err, errTestDamage) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}
