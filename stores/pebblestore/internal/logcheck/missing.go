package logcheck

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/damage"
	"github.com/recrawl/recrawl/stores/pebblestore/internal/storedir"
)

// A store that is open, or was killed, has no seal, and its manifest does not say which logs
// there are. So an empty file beside them has their numbers in its name, the newest first. It
// is made when a log was made and has a durable name, before anything is written to the log;
// and a log is removed after the manifest says that it is not needed. So a log that is named
// and needed is there. The name is not synced: after a power failure it may be an older one,
// or none.
const (
	LogsPrefix   = "LOGS-"
	maxNamedLogs = 16 // are named: more than are needed at a time, as few memtables wait to be flushed
)

// NameLogs makes the file that names the logs of the database in path. It is to be called when
// the engine has made a log.
func NameLogs(fs vfs.FS, path string) error {
	names, err := fs.List(path)
	if err != nil {
		return err
	}
	logs := logsOf(names)
	name := strings.TrimSuffix(LogsPrefix, "-")
	for _, n := range logs[:min(len(logs), maxNamedLogs)] {
		name += fmt.Sprintf("-%06d", n)
	}
	err = storedir.MakeEmpty(fs, fs.PathJoin(path, name))
	for _, old := range names {
		if strings.HasPrefix(old, LogsPrefix) && old != name {
			_ = fs.Remove(fs.PathJoin(path, old)) // the newest counts
		}
	}
	return err
}

// logsOf returns the numbers of the logs among files, descending.
func logsOf(names []string) (logs []uint32) {
	for _, name := range names {
		if n := LogNumber(name); n > 0 {
			logs = append(logs, n)
		}
	}
	slices.SortFunc(logs, func(a, b uint32) int { return cmp.Compare(b, a) })
	return logs
}

// namedLogs returns the numbers that the newest such name has, descending.
func namedLogs(names []string) (logs []uint32) {
	for _, name := range names {
		text, ok := strings.CutPrefix(name, LogsPrefix)
		if !ok {
			continue
		}
		var own []uint32
		for part := range strings.SplitSeq(text, "-") {
			own = append(own, LogNumber(part+".log"))
		}
		if len(logs) == 0 || own[0] > logs[0] {
			logs = own
		}
	}
	return logs
}

var ErrNoLog = errors.New("it is missing, with what was written to it")

// MissingLogs returns damage for each log that is named and needed, but not there.
func MissingLogs(under vfs.FS, path string) (missing []error, err error) {
	names, err := under.List(path)
	if err != nil {
		return nil, err
	}
	there := logsOf(names)
	gone := slices.DeleteFunc(namedLogs(names), func(n uint32) bool { return n == 0 || slices.Contains(there, n) })
	if len(gone) == 0 { // as nearly always: the manifest need not be read
		return nil, nil
	}
	if manifest := CurrentManifest(names); manifest != "" {
		// A damaged one, which is reported anyway, may not say that it needs none of these.
		if _, err := CheckManifest(under, under.PathJoin(path, manifest), names); err != nil {
			return nil, err
		}
	}
	least, err := LeastLog(under, path)
	if err != nil {
		return nil, err
	}
	for _, n := range gone {
		if uint64(n) >= least {
			name := under.PathJoin(path, fmt.Sprintf("%06d.log", n))
			missing = append(missing, damage.At(name, -1, ErrNoLog))
		}
	}
	return missing, nil
}
