// Package segmenttest tests implementations of [segment.Store] against the
// rules of its contract, and of [segment.BlockWriter]. Call [Run] from a test of
// the engine:
//
//	func TestSegments(t *testing.T) {
//		segmenttest.Run(t, segmenttest.Harness{
//			Open: func() (segment.Store, error) { return mystore.Open(t.TempDir()) },
//		})
//	}
//
// No kit proves durability: Harness.Crash shows only that nothing waits for the
// end of a writer. That a Sync reaches the disk is for the engine to test below
// itself.
package segmenttest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/recrawl/recrawl/internal/kit"
	"github.com/recrawl/recrawl/segment"
)

// Harness makes the stores to test. Open is required. If another field is nil, the
// rules that need it are skipped.
type Harness struct {
	// Open returns a new, empty store, another one on each call.
	Open func() (segment.Store, error)

	// Close ends the use of a store. It is called once for each store that was
	// not given to Crash; nil if there is nothing to do.
	Close func(s segment.Store) error

	// Reopen opens s again, which the kit has closed, and returns it.
	Reopen func(s segment.Store) (segment.Store, error)

	// Crash ends the use of s without closing it or its writers, as if the
	// process had been killed, and returns a store with what is left.
	Crash func(s segment.Store) (segment.Store, error)

	// Tear cuts the last n bytes, or all if there are fewer, off what s has stored
	// of a part that is not committed and has no writer, as a power failure might.
	Tear func(s segment.Store, segment, part string, n int) error

	// Damage changes one byte of what s has stored of a committed part: byte at,
	// modulo the number of bytes.
	Damage func(s segment.Store, segment, part string, at int) error

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
		run := &check{h: h}
		stores := kit.Harness[segment.Store]{Open: h.Open, Close: run.closeStore, Reopen: h.Reopen, Patience: h.Patience}
		if h.Crash != nil {
			stores.Crash = run.crashStore
		}
		run.Stores = kit.NewStores(c, stores)
		return run
	}}
}

type rule = kit.Rule[*check]

// check is the run of one rule.
type check struct {
	*kit.Stores[segment.Store]
	h       Harness
	writers []segment.BlockWriter
}

// closeStore closes the writers before the store.
func (c *check) closeStore(s segment.Store) error {
	for _, w := range c.writers {
		if err := w.Close(); err != nil {
			return fmt.Errorf("writer: %w", err)
		}
	}
	if c.writers = nil; c.h.Close == nil {
		return nil
	}
	return c.h.Close(s)
}

// crashStore leaves the writers as they are.
func (c *check) crashStore(s segment.Store) (segment.Store, error) {
	c.writers = nil
	return c.h.Crash(s)
}

func rules() []rule {
	return []rule{
		{Name: "blocks are read as they were appended", Check: blocksAreReadAsTheyWereAppended},
		{Name: "a part may have no blocks", Check: partMayHaveNoBlocks},
		{Name: "Read begins with the requested block", Check: readBeginsWithRequestedBlock},
		{Name: "a part that is being written can be read", Check: partThatIsBeingWrittenCanBeRead},
		{Name: "Stat returns the size", Check: statReturnsSize},
		{Name: "a missing part is ErrNotFound", Check: missingPartIsErrNotFound},
		{Name: "the caller owns what it gets", Check: callerOwnsWhatItGets},
		{Name: "the store keeps no memory of its caller", Check: storeKeepsNoMemoryOfItsCaller},
		{Name: "a loop may break, and may use the store", Check: loopMayBreak},
		{Name: "an invalid name is ErrName", Check: invalidNameIsErrName},
		{Name: "every valid name can be used", Check: everyValidNameCanBeUsed},
		{Name: "List is in order of names", Check: listIsInOrderOfNames},
		{Name: "Append keeps the blocks it is told to", Check: appendKeepsBlocksItIsToldTo},
		{Name: "Append that would keep too many blocks is ErrNotFound and changes nothing", Check: appendThatKeepsTooManyIsErrNotFound},
		{Name: "a part has one writer", Check: partHasOneWriter},
		{Name: "a committed part is complete", Check: committedPartIsComplete},
		{Name: "a closed writer leaves the part open", Check: closedWriterLeavesPartOpen},
		{Name: "a writer after Close or Commit is ErrClosed", Check: writerAfterCloseOrCommitIsErrClosed},
		{Name: "Sync has no visible effect", Check: syncHasNoVisibleEffect},
		{Name: "Remove deletes a segment with all its parts, and no other", Check: removeDeletesSegmentWithAllItsParts},
		{Name: "Remove of a missing segment does nothing", Check: removeOfMissingSegmentDoesNothing},
		{Name: "Remove is ErrBusy while a part is being written", Check: removeIsErrBusyWhilePartIsBeingWritten},
		{Name: "a done context changes nothing", Check: doneContextChangesNothing},
		{Name: "a loop ends when its context does", Check: loopEndsWhenItsContextDoes},
		{Name: "one of several concurrent Appends wins", Check: oneOfSeveralConcurrentAppendsWins},
		{Name: "a reader sees whole blocks in order while a writer writes", Check: readerSeesWholeBlocksInOrder},
		{Name: "Remove during reads does no harm", Check: removeDuringReadsDoesNoHarm},
		{Name: "Reopen finds everything", Check: reopenFindsEverything},
		{Name: "a crash keeps what was synced or committed, and a prefix of the rest", Check: crashKeepsWhatWasSynced},
		{Name: "after a crash there are no writers and no removed segments", Check: noWritersAfterCrash},
		{Name: "a torn block was never written", Check: tornBlockWasNeverWritten},
		{Name: "damage in a committed part is a CorruptError", Check: damageInCommittedPartIsCorruptError},
		{Name: "any sequence of calls agrees with the model", Check: anySequenceOfCallsAgreesWithModel},
	}
}
