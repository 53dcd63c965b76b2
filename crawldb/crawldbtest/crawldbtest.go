// Package crawldbtest tests implementations of [crawldb.Store] against the
// rules of its contract. Call [Run] from a test of the engine:
//
//	func TestCrawl(t *testing.T) {
//		crawldbtest.Run(t, crawldbtest.Harness{
//			Open: func() (crawldb.Store, error) { return mystore.Open(t.TempDir()) },
//		})
//	}
//
// The rules about [crawldb.DueStore] and [crawldb.BulkStore] are run through
// [crawldb.Due] and [crawldb.UpdateAll], once on the store as it is and once on a
// plain Store around it, which is scanned, and updated batch by batch.
//
// No kit proves durability: Harness.Crash shows only that nothing waits for
// Close. That a Sync reaches the disk is for the engine to test below itself.
package crawldbtest

import (
	"context"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/internal/kit"
	"github.com/recrawl/recrawl/internal/testlevel"
)

// Harness makes the stores to test. Open is required. If another field is nil, the
// rules that need it are skipped.
type Harness struct {
	// Open returns a new, empty store, another one on each call. The kit closes it.
	Open func() (crawldb.Store, error)

	// Reopen opens s again, which the kit has closed, and returns it.
	Reopen func(s crawldb.Store) (crawldb.Store, error)

	// Crash ends the use of s without closing it, as if the process had been
	// killed, and returns a store with what is left.
	Crash func(s crawldb.Store) (crawldb.Store, error)

	// LoseAnswer makes the answer to the next commit of s be lost: the connection breaks before the
	// commit reaches the database, or after it is applied. Nil for an engine that answers itself.
	LoseAnswer func(s crawldb.Store, applied bool)

	// Patience is the time limit of calls that must not wait for the caller; zero
	// means 30 seconds. A store that exceeds it is abandoned, and not closed.
	Patience time.Duration

	// Sequences is the number of sequences of random steps that are compared with a
	// map; zero means a few. After changes to an engine, run 10,000. A sequence that
	// fails is shortened and printed.
	Sequences int

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
		return &check{kit.NewStores(c, kit.Harness[crawldb.Store]{
			Open: h.Open, Close: crawldb.Store.Close, Reopen: h.Reopen, Crash: h.Crash, Patience: h.Patience,
		}), h}
	}}
}

type rule = kit.Rule[*check]

// check is the run of one rule.
type check struct {
	*kit.Stores[crawldb.Store]
	h Harness
}

func rules() []rule {
	all := []rule{
		{Name: "a missing record is ErrNotFound", Check: missingRecordIsErrNotFound},
		{Name: "every field is kept", Check: everyFieldIsKept},
		{Name: "any string is a URL", Check: anyStringIsURL},
		{Name: "a record replaces the whole record before it", Check: recordReplacesWholeRecord},
		{Name: "the caller owns what it gets", Check: callerOwnsWhatItGets},
		{Name: "the store keeps nothing that it gets", Check: storeKeepsNothingThatItGets},
		{Name: "an empty store yields nothing", Check: emptyStoreYieldsNothing},
		{Name: "a scan is in key order", Check: scanIsInKeyOrder},
		{Name: "a range has its first key but not its last", Check: rangeHasFirstKeyButNotLast},
		{Name: "hosts and domains are ranges", Check: hostsAndDomainsAreRanges},
		{Name: "a scan stops when the loop breaks", Check: scanStopsWhenLoopBreaks},
		{Name: "a scan can be run again", Check: scanCanBeRunAgain},
		{Name: "the loop may write", Check: loopMayWrite},
		{Name: "Next gets the stored record", Check: nextGetsStoredRecord},
		{Name: "nil deletes a record, old leaves it alone", Check: nilDeletesRecord},
		{Name: "a record is stored under the URL of the batch", Check: recordIsStoredUnderURLOfBatch},
		{Name: "a batch out of order is ErrOrder and changes nothing", Check: batchOutOfOrderIsErrOrder},
		{Name: "an error from Next changes nothing", Check: errorFromNextChangesNothing},
		{Name: "a batch may be empty or large", Check: batchMayBeEmptyOrLarge},
		{Name: "a mark is written with its batch", Check: markIsWrittenWithItsBatch},
		{Name: "marks are those after the last Next", Check: marksAreThoseAfterLastNext},
		{Name: "an empty value removes the mark", Check: emptyValueRemovesMark},
		{Name: "each name has its own mark", Check: eachNameHasItsOwnMark},
		{Name: "Marks lists every mark in order", Check: marksListsEveryMarkInOrder},
		{Name: "an ambiguous commit is applied once", Check: ambiguousCommitIsAppliedOnce},
		{Name: "a done context changes nothing", Check: doneContextChangesNothing},
		{Name: "a cancelled update changes all or nothing", Check: cancelledUpdateChangesAllOrNothing},
		{Name: "a scan heeds its context", Check: scanHeedsItsContext},
		{Name: "a closed store is ErrClosed", Check: closedStoreIsErrClosed},
		{Name: "Close waits for no one", Check: closeWaitsForNoOne},
		{Name: "stores are independent", Check: storesAreIndependent},
		{Name: "everything is there after Reopen", Check: everythingIsThereAfterReopen},
		{Name: "overlapping updates lose nothing", Check: overlappingUpdatesLoseNothing},
		{Name: "a reader sees whole records", Check: readerSeesWholeRecords},
		{Name: "a crash keeps what was synced", Check: crashKeepsWhatWasSynced},
		{Name: "a crash keeps whole updates, and none without those before it", Check: crashKeepsWholeUpdates},
		{Name: "Close syncs", Check: closeSyncs},
		{Name: "random steps agree with a map", Check: randomStepsAgreeWithMap},
	}
	for _, v := range []variants[dueFunc]{
		{"any sequence of steps agrees with a map", anySequenceOfStepsAgreesWithMap},
		{"Due yields everything that is due", dueOmitsNothing},
		{"Due calls nothing due that is not", dueIsDue},
		{"Due shows when the next record is due", dueNext},
		{"Due yields the best level first", dueBestFirst},
		{"Due ends at its limit", dueLimit},
		{"Due leaves out what is below MinPriority", dueMinPriority},
		{"Due omits no wanted host", dueWant},
		{"The loop of Due may write and break", dueWrites},
		{"Due follows every change", dueFollows},
		{"Due gives tokens that change no update", dueTokens},
		{"Due heeds its context", dueContext},
		{"Due follows a Reopen", dueReopened},
		{"Due follows a crash", dueCrashed},
	} {
		all = append(all, v.rules(crawldb.Due, "by scan", byScan)...)
	}
	for _, v := range []variants[bulkFunc]{
		{"UpdateAll leaves what single updates leave", bulkLeaves},
		{"UpdateAll gives Next what earlier batches wrote", bulkGives},
		{"UpdateAll is done with a batch when it asks for the next", bulkForgets},
		{"UpdateAll shows its sequence only marks of earlier batches", bulkTells},
		{"UpdateAll stops at an error, after a whole batch", bulkEnds},
		{"UpdateAll heeds its context", bulkContext},
		{"UpdateAll syncs", bulkSyncs},
		{"Due follows UpdateAll", bulkDue},
	} {
		all = append(all, v.rules(crawldb.UpdateAll, "one by one", oneByOne)...)
	}
	return all
}

// variants are rules about what a store may do in its own way: they are checked once on
// the store as it is, and once on its required methods alone.
type variants[F any] struct {
	name  string
	check func(*check, F)
}

func (v variants[F]) rules(own F, suffix string, required F) []rule {
	all := []rule{{Name: v.name, Check: func(c *check) { v.check(c, own) }}}
	if !testlevel.Race { // which is about concurrent calls
		all = append(all, rule{Name: v.name + ", " + suffix, Check: func(c *check) { v.check(c, required) }})
	}
	return all
}
