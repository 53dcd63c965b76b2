package flags

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/signature"
)

// SavedFlags is what a crawl remembers of the flags, because a verb run without them would
// undo the work of another: an update with a different schedule changes every interval,
// one with different scoring the order of everything. It is a mark of the crawl db; a
// crawl without it has the defaults.
type SavedFlags struct {
	Schedule string `json:"schedule,omitempty"`
	Budget   string `json:"budget,omitempty"`
	Scoring  string `json:"scoring,omitempty"`
	// Fields is the file of -fields, Compare the value of -signature.
	Fields  string `json:"fields,omitempty"`
	Compare string `json:"compare,omitempty"`
	// Signature is the one by which pages were last compared, so that a change can be
	// reported.
	Signature string `json:"signature,omitempty"`
	// Segments is the URL of the object store with the segments, without a secret; empty if
	// they are in the directory or database of the crawl.
	Segments string `json:"segments,omitempty"`
}

// savedFlagsMark is the mark of the crawl db that holds them; stores have it by this name.
const savedFlagsMark = "command/kept"

// fromConf as the value of a flag makes the crawl forget the saved value.
const fromConf = "conf"

// ReadSavedFlags returns what a crawl remembers. A mark that cannot be read is an error,
// since updates would change every interval without it.
func ReadSavedFlags(ctx context.Context, db crawldb.Store) (k SavedFlags, err error) {
	mark, err := db.Mark(ctx, savedFlagsMark)
	if err != nil || mark == "" {
		return k, err
	}
	if err := json.Unmarshal([]byte(mark), &k); err != nil {
		return k, fmt.Errorf("the flags that the crawl remembers cannot be read: %w", err)
	}
	return k, nil
}

// WithSegments returns the value of a mark with another place of the segments, if it is the mark
// of what a crawl remembers.
func WithSegments(name, value, place string) string {
	var k SavedFlags
	if name != savedFlagsMark || json.Unmarshal([]byte(value), &k) != nil {
		return value
	}
	k.Segments = place
	b, err := json.Marshal(k)
	if err != nil {
		return value
	}
	return string(b)
}

// Save makes the crawl remember k.
func (k SavedFlags) Save(ctx context.Context, db crawldb.Store) error {
	b, err := json.Marshal(k)
	if err == nil {
		err = db.Update(ctx, crawldb.Batch{Marks: crawldb.Mark(savedFlagsMark, string(b))})
	}
	if err == nil {
		err = db.Sync(ctx)
	}
	return err
}

// With returns k as the flags that were given change it.
func (k SavedFlags) With(c *cli.Command) SavedFlags {
	if c.Name == "schedule" {
		return k // there, -budget means something else
	}
	switch v := c.String("schedule"); v {
	case "":
	case fromConf:
		k.Schedule, k.Budget = "", ""
	case "learned":
		k.Schedule = v
	default:
		k.Schedule, k.Budget = v, ""
	}
	switch v := c.String("budget"); v {
	case "":
	case "0":
		k.Budget = ""
	default:
		k.Budget = v
	}
	if c.IsSet("scoring") {
		if k.Scoring = c.String("scoring"); k.Scoring == fromConf {
			k.Scoring = ""
		}
	}
	return k.withExtraction(c)
}

// String formats k as flags; empty if there are none.
func (k SavedFlags) String() string {
	var flags []string
	for _, f := range [][2]string{{"-schedule", k.Schedule}, {"-budget", k.Budget}, {"-scoring", k.Scoring}, {"-fields", k.Fields}, {"-signature", k.Compare}} {
		if f[1] != "" {
			flags = append(flags, f[0]+" "+f[1])
		}
	}
	return strings.Join(flags, " ")
}

// CheckSaved refuses invalid flags before anything is opened or created.
func CheckSaved(c *cli.Command) error {
	k := SavedFlags{}.With(c)
	if c.IsSet("scoring") && c.String("scoring") != fromConf {
		if _, err := ParseScoring(c.String("scoring")); err != nil {
			return err
		}
	}
	if k.Budget != "" && k.Schedule == "" && c.String("schedule") == "" {
		if mayHaveSaved(c) {
			k.Schedule = "learned" // the crawl may keep it
		}
	}
	if k.Fields != "" || !strings.HasPrefix(k.Compare, "field") || !mayHaveSaved(c) { // else the crawl may keep a file
		if err := k.ApplyExtraction(&recrawl.Options{}); err != nil {
			return err
		}
	}
	return setSchedule(k, &recrawl.Options{})
}

// mayHaveSaved reports whether there may be a crawl with saved flags. That of a database is not opened
// to find out.
func mayHaveSaved(c *cli.Command) bool {
	if IsURL(c.String("d")) {
		return true
	}
	_, err := os.Stat(c.String("d"))
	return !errors.Is(err, fs.ErrNotExist)
}

// ApplySaved sets the policies that the flags of a crawl choose, saved and given, and saves
// the given ones if the verb does more than look. A change is reported to warn.
func ApplySaved(ctx context.Context, db crawldb.Store, c *cli.Command, o *recrawl.Options, warn io.Writer) error {
	old, err := ReadSavedFlags(ctx, db)
	if err != nil {
		return err
	}
	k := old.With(c)
	if err := k.Apply(o); err != nil {
		return err
	}
	if c.Category == ReadVerbs {
		return nil
	}
	if slices.Contains([]string{"crawl", "fetch", "parse"}, c.Name) {
		if err := k.ApplyExtraction(o); err != nil {
			return err
		}
		k.Signature = (signature.TextMD5{}).Name()
		if o.Signature != nil {
			k.Signature = o.Signature.Name()
		}
	}
	if k == old {
		return nil
	}
	switch now, was := k.String(), old.String(); {
	case now == was:
	case was == "":
		fmt.Fprintf(warn, "recrawl: this crawl keeps %s from now on\n", now)
	default:
		fmt.Fprintf(warn, "recrawl: this crawl keeps %s from now on; it kept %s\n", cmp.Or(now, "no flags"), was)
	}
	if old.Signature != "" && (k.Schedule != old.Schedule || k.Budget != old.Budget) { // it was crawled
		fmt.Fprintln(warn, "recrawl: each page that was visited is due when it was, and by the new schedule or budget from its next visit on")
	}
	if old.Signature != "" && k.Signature != old.Signature {
		fmt.Fprintf(warn, "recrawl: pages are now compared by %s, before by %s: each will seem to have changed once\n", k.Signature, old.Signature)
	}
	return k.Save(ctx, db)
}

// Apply sets the policies.
func (k SavedFlags) Apply(o *recrawl.Options) error {
	if k.Scoring != "" {
		filter, err := ParseScoring(k.Scoring)
		if err != nil {
			return err
		}
		o.Scoring = filter
		o.Update.Sweep.Orphans = wantsOrphans(filter)
	}
	return setSchedule(k, o)
}
