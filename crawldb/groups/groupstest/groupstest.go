// Package groupstest tests implementations of [groups.Engine] against the rules of its contract.
// Call [Run] from a test of the engine:
//
//	func TestEngine(t *testing.T) {
//		groupstest.Run(t, groupstest.Harness{
//			Open: func(t groups.Table) (groups.Engine, error) { return mystore.Open(dsn, t) },
//		})
//	}
//
// The stores of a group are tested by the kits of their own contracts. No kit proves durability.
package groupstest

import (
	"context"
	"testing"
	"time"

	"github.com/recrawl/recrawl/crawldb/groups"
	"github.com/recrawl/recrawl/internal/kit"
)

// Harness makes the engines to test. Open is required.
type Harness struct {
	// Open returns an engine with a new crawl that is divided by the table, another crawl on each
	// call. The kit closes it.
	Open func(first groups.Table) (groups.Engine, error)

	// Again opens the crawl of e as another process would, while e is in use. If it is nil, the
	// workers of the rules share one engine.
	Again func(e groups.Engine) (groups.Engine, error)

	// Patience is the time limit of calls that must not wait; zero means 30 seconds.
	Patience time.Duration
}

// Run checks each rule in a subtest of its name.
func Run(t *testing.T, h Harness) { h.kit().Run(t) }

// Check is [Run] without a test: it returns nil, or an error for each broken rule, joined.
func Check(ctx context.Context, h Harness) error { return h.kit().Check(ctx) }

func (h Harness) kit() kit.Kit[*check] {
	return kit.Kit[*check]{Rules: rules(), Start: func(c *kit.Check) *check {
		c.Patience = h.Patience
		return &check{c, h}
	}}
}

type rule = kit.Rule[*check]

// check is the run of one rule.
type check struct {
	*kit.Check
	h Harness
}

func rules() []rule {
	return []rule{
		{Name: "a free group is acquired once", Check: freeGroupIsAcquiredOnce},
		{Name: "exactly one of many rivals acquires a group", Check: oneOfManyRivalsAcquires},
		{Name: "a worker that is not known acquires nothing", Check: unknownWorkerAcquiresNothing},
		{Name: "there is no group beyond the table", Check: noGroupBeyondTable},
		{Name: "each lease has a greater epoch", Check: eachLeaseHasGreaterEpoch},
		{Name: "a renewal counts, and returns the leases that are held", Check: renewalReturnsHeldLeases},
		{Name: "a renewal after a release does not return the group", Check: renewalAfterRelease},
		{Name: "a worker that has renewed is not expelled", Check: renewedWorkerIsNotExpelled},
		{Name: "the groups of an expelled worker are free", Check: groupsOfExpelledWorkerAreFree},
		{Name: "an expelled worker that renews holds nothing", Check: expelledWorkerHoldsNothing},
		{Name: "a lease is released once", Check: leaseIsReleasedOnce},
		{Name: "a renewal does not wait for an update", Check: renewalDoesNotWaitForUpdate},
		{Name: "a done context changes nothing", Check: doneContextChangesNothing},
		{Name: "the stores of a lease can be written", Check: storesOfLeaseCanBeWritten},
		{Name: "a fenced Update changes nothing", Check: fencedUpdateChangesNothing},
		{Name: "a fenced UpdateAll changes nothing", Check: fencedUpdateAllChangesNothing},
		{Name: "a fenced Merge changes nothing", Check: fencedMergeChangesNothing},
		{Name: "a fenced Update of a host changes nothing", Check: fencedHostUpdateChangesNothing},
		{Name: "fenced segments change nothing", Check: fencedSegmentsChangeNothing},
		{Name: "the next owner writes where the last one has left a part", Check: nextOwnerWritesPart},
		{Name: "an old lease of the same worker is fenced", Check: oldLeaseOfSameWorkerIsFenced},
		{Name: "a released lease is fenced", Check: releasedLeaseIsFenced},
		{Name: "an update that a takeover meets is done before it or not at all", Check: updateMeetsTakeover},
		{Name: "records, links, segments and marks belong to a group", Check: contentsBelongToGroup},
		{Name: "hosts belong to all groups", Check: hostsBelongToAllGroups},
		{Name: "Marks reads all groups without a lease", Check: marksReadsAllGroups},
		{Name: "posted rows are numbered in order", Check: postedRowsAreNumbered},
		{Name: "rows that many post are all there", Check: rowsThatManyPostAreThere},
		{Name: "posted rows that are not folded are kept", Check: unfoldedRowsAreKept},
		{Name: "the table is the one that was set last", Check: tableIsLastSet},
		{Name: "a table of another version is refused", Check: tableOfOtherVersionIsRefused},
		{Name: "a bad table is refused", Check: badTableIsRefused},
		{Name: "Close may be repeated", Check: closeMayBeRepeated},
	}
}
