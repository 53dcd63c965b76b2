package pebblestore

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/recrawl/recrawl/crawldb"
)

// A store that is open, or was killed, has no seal, and its manifest does not say which logs
// there are. So an empty file beside them has their numbers in its name, the newest first. It
// is made when a log was made and has a durable name, before anything is written to the log;
// and a log is removed after the manifest says that it is not needed. So a log that is named
// and needed is there. The name is not synced: after a power failure it may be an older one,
// or none.
const (
	logsPrefix = "LOGS-"
	mostLogs   = 16 // are named: more than are needed at a time, see maxMemTables
)

// nameLogs is called when the engine has made a log.
func (d *DB) nameLogs(made pebble.WALCreateInfo) {
	if made.Err != nil || d.fence.failure() != nil {
		return
	}
	names, err := d.fence.List(d.path)
	if err != nil {
		d.fence.fail(err)
		return
	}
	logs := logsOf(names)
	name := strings.TrimSuffix(logsPrefix, "-")
	for _, n := range logs[:min(len(logs), mostLogs)] {
		name += fmt.Sprintf("-%06d", n)
	}
	if err := makeEmpty(d.fence, d.fence.PathJoin(d.path, name)); err != nil {
		d.fence.fail(err)
	}
	for _, old := range names {
		if strings.HasPrefix(old, logsPrefix) && old != name {
			_ = d.fence.Remove(d.fence.PathJoin(d.path, old)) // the newest counts
		}
	}
}

// logsOf returns the numbers of the logs among files, descending.
func logsOf(names []string) (logs []uint32) {
	for _, name := range names {
		if n := logNumber(name); n > 0 {
			logs = append(logs, n)
		}
	}
	slices.SortFunc(logs, func(a, b uint32) int { return cmp.Compare(b, a) })
	return logs
}

// namedLogs returns the numbers that the newest such name has, descending.
func namedLogs(names []string) (logs []uint32) {
	for _, name := range names {
		text, ok := strings.CutPrefix(name, logsPrefix)
		if !ok {
			continue
		}
		var own []uint32
		for part := range strings.SplitSeq(text, "-") {
			own = append(own, logNumber(part+".log"))
		}
		if len(logs) == 0 || own[0] > logs[0] {
			logs = own
		}
	}
	return logs
}

var errNoLog = errors.New("it is missing, with what was written to it")

// missingLogs returns damage for each log that is named and needed, but not there.
func missingLogs(under vfs.FS, path string) (damage []error, err error) {
	names, err := under.List(path)
	if err != nil {
		return nil, err
	}
	there := logsOf(names)
	gone := slices.DeleteFunc(namedLogs(names), func(n uint32) bool { return n == 0 || slices.Contains(there, n) })
	if len(gone) == 0 { // as nearly always: the manifest need not be read
		return nil, nil
	}
	if manifest := currentManifest(names); manifest != "" {
		// A damaged one, which is reported anyway, may not say that it needs none of these.
		if _, err := checkManifest(under, under.PathJoin(path, manifest), names); err != nil {
			return nil, err
		}
	}
	least, err := leastLog(under, path)
	if err != nil {
		return nil, err
	}
	for _, n := range gone {
		if uint64(n) >= least {
			name := under.PathJoin(path, fmt.Sprintf("%06d.log", n))
			damage = append(damage, fmt.Errorf("%w: %w", ErrDamaged, &crawldb.CorruptError{File: name, Offset: -1, Err: errNoLog}))
		}
	}
	return damage, nil
}
