// Package linkdbtest tests implementations of [linkdb.Store] against the rules
// of its contract. Call [Run] from a test of the engine:
//
//	func TestLinks(t *testing.T) {
//		linkdbtest.Run(t, linkdbtest.Harness{
//			Open: func() (linkdb.Store, error) { return mystore.Open(t.TempDir()) },
//		})
//	}
//
// No kit proves durability: Harness.Crash shows only that nothing waits for
// Close.
package linkdbtest

import (
	"context"
	"testing"
	"time"

	"github.com/recrawl/recrawl/internal/kit"
	"github.com/recrawl/recrawl/linkdb"
)

// Harness makes the stores to test. Open is required. If another field is nil, the
// rules that need it are skipped.
type Harness struct {
	// Open returns a new, empty store, another one on each call. The kit closes it.
	Open func() (linkdb.Store, error)

	// Reopen opens s again, which the kit has closed, and returns it.
	Reopen func(s linkdb.Store) (linkdb.Store, error)

	// Crash ends the use of s without closing it, as if the process had been
	// killed, and returns a store with what is left.
	Crash func(s linkdb.Store) (linkdb.Store, error)

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
		return &check{kit.NewStores(c, kit.Harness[linkdb.Store]{
			Open: h.Open, Close: linkdb.Store.Close, Reopen: h.Reopen, Crash: h.Crash, Patience: h.Patience,
		}), h}
	}}
}

type rule = kit.Rule[*check]

// check is the run of one rule.
type check struct {
	*kit.Stores[linkdb.Store]
	h Harness
}

func rules() []rule {
	return []rule{
		{Name: "a page without inlinks is no error", Check: pageWithoutInlinksIsNoError},
		{Name: "any string can be a URL or an anchor", Check: anyStringCanBeURLOrAnchor},
		{Name: "a page may have many inlinks, and a merge many pages", Check: pageMayHaveManyInlinks},
		{Name: "the caller owns what it gets", Check: callerOwnsWhatItGets},
		{Name: "the store neither keeps nor changes what it gets", Check: storeNeitherKeepsNorChangesWhatItGets},
		{Name: "an empty store yields nothing", Check: emptyStoreYieldsNothing},
		{Name: "pages are in key order", Check: pagesAreInKeyOrder},
		{Name: "a range has its first key but not its last", Check: rangeHasFirstKeyButNotLast},
		{Name: "a scan stops when the loop breaks", Check: scanStopsWhenLoopBreaks},
		{Name: "a scan can be run again", Check: scanCanBeRunAgain},
		{Name: "the loop may write", Check: loopMayWrite},
		{Name: "inlinks are distinct and in order", Check: inlinksAreDistinctAndInOrder},
		{Name: "merging again changes nothing", Check: mergingAgainChangesNothing},
		{Name: "the order of merges does not matter", Check: orderOfMergesDoesNotMatter},
		{Name: "a limit keeps the first inlinks", Check: limitKeepsFirstInlinks},
		{Name: "an entry without inlinks makes no page", Check: entryWithoutInlinksMakesNoPage},
		{Name: "entries out of order are ErrOrder and change nothing", Check: entriesOutOfOrderAreErrOrder},
		{Name: "overlapping merges lose nothing", Check: overlappingMergesLoseNothing},
		{Name: "a done context changes nothing", Check: doneContextChangesNothing},
		{Name: "a closed store is ErrClosed", Check: closedStoreIsErrClosed},
		{Name: "stores are independent", Check: storesAreIndependent},
		{Name: "everything is there after Reopen", Check: everythingIsThereAfterReopen},
		{Name: "a crash keeps every Merge that returned", Check: crashKeepsEveryMergeThatReturned},
		{Name: "random steps agree with a map", Check: randomStepsAgreeWithMap},
	}
}
