// Package hostdbtest tests implementations of [hostdb.Store] against the rules
// of its contract. Call [Run] from a test of the engine:
//
//	func TestHosts(t *testing.T) {
//		hostdbtest.Run(t, hostdbtest.Harness{
//			Open: func() (hostdb.Store, error) { return mystore.Open(t.TempDir()) },
//		})
//	}
//
// No kit proves durability: Harness.Crash shows only that nothing waits for
// Close. The rules about a crash read the real clock, as the stores do.
package hostdbtest

import (
	"context"
	"testing"
	"time"

	"github.com/recrawl/recrawl/hostdb"
	"github.com/recrawl/recrawl/internal/kit"
)

// Harness makes the stores to test. Open is required. If another field is nil, the
// rules that need it are skipped.
type Harness struct {
	// Open returns a new, empty store, another one on each call. The kit closes it.
	Open func() (hostdb.Store, error)

	// Reopen opens s again, which the kit has closed, and returns it.
	Reopen func(s hostdb.Store) (hostdb.Store, error)

	// Crash ends the use of s without closing it, as if the process had been
	// killed, and returns a store with what is left.
	Crash func(s hostdb.Store) (hostdb.Store, error)

	// Patience is the time limit of calls that must not wait for the caller; zero
	// means 30 seconds. A store that exceeds it is abandoned, and not closed.
	Patience time.Duration

	// Seed is the seed of the random checks; zero is a seed like any other. Messages
	// name the seed and the step.
	Seed uint64
}

// Run checks each rule in a subtest of its name.
func Run(t *testing.T, h Harness) { h.kit().Run(t) }

// Check is [Run] without a test: it returns nil, or an error for each broken rule, joined:
// rule "its name" is broken, and how. Rules that the harness cannot test are skipped.
func Check(ctx context.Context, h Harness) error { return h.kit().Check(ctx) }

func (h Harness) kit() kit.Kit[*check] {
	return kit.Kit[*check]{Rules: rules(), Start: func(c *kit.Check) *check {
		return &check{kit.NewStores(c, kit.Harness[hostdb.Store]{
			Open: h.Open, Close: hostdb.Store.Close, Reopen: h.Reopen, Crash: h.Crash, Patience: h.Patience,
		}), h}
	}}
}

type rule = kit.Rule[*check]

// check is the run of one rule.
type check struct {
	*kit.Stores[hostdb.Store]
	h Harness
}

func rules() []rule {
	return []rule{
		{Name: "a missing host is ErrNotFound", Check: missingHostIsErrNotFound},
		{Name: "every field is kept", Check: everyFieldIsKept},
		{Name: "any string is a name", Check: anyStringIsName},
		{Name: "a record replaces the whole record before it", Check: recordReplacesWholeRecord},
		{Name: "the caller owns what it gets", Check: callerOwnsWhatItGets},
		{Name: "the store keeps nothing that it gets", Check: storeKeepsNothingThatItGets},
		{Name: "an empty store yields nothing", Check: emptyStoreYieldsNothing},
		{Name: "a scan is in the order of the names", Check: scanIsInOrderOfNames},
		{Name: "a scan stops when the loop breaks", Check: scanStopsWhenLoopBreaks},
		{Name: "a scan can be run again", Check: scanCanBeRunAgain},
		{Name: "the loop may write", Check: loopMayWrite},
		{Name: "next gets the stored record", Check: nextGetsStoredRecord},
		{Name: "what next returns is kept", Check: whatNextReturnsIsKept},
		{Name: "nil deletes a record, old leaves it alone", Check: nilDeletesRecord},
		{Name: "a record is stored under the name of the update", Check: recordIsStoredUnderNameOfUpdate},
		{Name: "an error from next changes nothing", Check: errorFromNextChangesNothing},
		{Name: "a done context changes nothing", Check: doneContextChangesNothing},
		{Name: "a closed store is ErrClosed", Check: closedStoreIsErrClosed},
		{Name: "stores are independent", Check: storesAreIndependent},
		{Name: "everything is there after Reopen", Check: everythingIsThereAfterReopen},
		{Name: "random steps agree with a map", Check: randomStepsAgreeWithMap},
		{Name: "exactly one of many rivals gets a grant", Check: oneOfManyRivalsTakesGrant},
		{Name: "overlapping updates lose nothing", Check: overlappingUpdatesLoseNothing},
		{Name: "a reader sees whole records", Check: readerSeesWholeRecords},
		{Name: "a crash keeps what was synced", Check: crashKeepsWhatWasSynced},
		{Name: "a host asked before a crash counts as asked at opening", Check: hostAskedBeforeCrashCountsAsAsked},
		{Name: "a host not asked before a crash stays as it was", Check: hostNotAskedBeforeCrashStaysAsItWas},
		{Name: "a crash lets no host be asked sooner", Check: crashLetsNoHostBeAskedSooner},
		{Name: "an orderly Close changes no host", Check: orderlyCloseChangesNoHost},
		{Name: "Close syncs", Check: closeSyncs},
	}
}
