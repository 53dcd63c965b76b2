package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl"
	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/signature"
	"github.com/recrawl/recrawl/stores/pebblestore"
)

// kept is what a crawl remembers of the flags, because a verb run without them would
// undo the work of another: an update with a different schedule changes every interval,
// one with different scoring the order of everything. It is a mark of the crawl db; a
// crawl without it has the defaults.
type kept struct {
	Schedule string `json:"schedule,omitempty"`
	Budget   string `json:"budget,omitempty"`
	Scoring  string `json:"scoring,omitempty"`
	// Signature is the one by which pages were last compared. No flag chooses it: it is
	// here so that a change can be reported.
	Signature string `json:"signature,omitempty"`
}

const keptJob = "command/kept"

// byConf as the value of a flag makes the crawl forget the value it keeps.
const byConf = "conf"

// keptOf returns what a crawl remembers. An unreadable mark is an error, not an empty
// one: nobody could say what an update would do then.
func keptOf(ctx context.Context, db *pebblestore.DB) (k kept, err error) {
	mark, err := db.Crawl().Mark(ctx, keptJob)
	if err != nil || mark == "" {
		return k, err
	}
	if err := json.Unmarshal([]byte(mark), &k); err != nil {
		return k, fmt.Errorf("the flags that the crawl keeps cannot be read: %w", err)
	}
	return k, nil
}

func (k kept) keep(ctx context.Context, db *pebblestore.DB) error {
	b, err := json.Marshal(k)
	if err == nil {
		err = db.Crawl().Update(ctx, crawldb.Batch{Marks: crawldb.Mark(keptJob, string(b))})
	}
	if err == nil {
		err = db.Crawl().Sync(ctx)
	}
	return err
}

// with returns k as the flags that were given change it.
func (k kept) with(c *cli.Command) kept {
	if c.Name == "schedule" {
		return k // there, -budget means something else
	}
	switch v := c.String("schedule"); v {
	case "":
	case byConf:
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
		if k.Scoring = c.String("scoring"); k.Scoring == byConf {
			k.Scoring = ""
		}
	}
	return k
}

// flags formats k as flags; empty if there are none.
func (k kept) flags() string {
	var flags []string
	for _, f := range [][2]string{{"-schedule", k.Schedule}, {"-budget", k.Budget}, {"-scoring", k.Scoring}} {
		if f[1] != "" {
			flags = append(flags, f[0]+" "+f[1])
		}
	}
	return strings.Join(flags, " ")
}

// checkKept refuses invalid flags before anything is opened or created.
func checkKept(c *cli.Command) error {
	k := kept{}.with(c)
	if c.IsSet("scoring") && c.String("scoring") != byConf {
		if _, err := scoringOf(c.String("scoring")); err != nil {
			return err
		}
	}
	if k.Budget != "" && k.Schedule == "" && c.String("schedule") == "" {
		if _, err := os.Stat(c.String("d")); err == nil || !errors.Is(err, fs.ErrNotExist) {
			k.Schedule = "learned" // the crawl may keep it
		}
	}
	return scheduled(k, &recrawl.Options{})
}

// decide sets the policies that the crawl keeps, as the flags change them, and stores
// the change if the verb does more than look. A change is reported.
func (s *session) decide(ctx context.Context, a *app, c *cli.Command, o *recrawl.Options) error {
	old, err := keptOf(ctx, s.db)
	if err != nil {
		return err
	}
	k := old.with(c)
	if err := k.apply(o); err != nil {
		return err
	}
	if c.Category == looking {
		return nil
	}
	if slices.Contains([]string{"crawl", "fetch", "parse"}, c.Name) {
		k.Signature = (signature.TextMD5{}).Name()
		if o.Signature != nil {
			k.Signature = o.Signature.Name()
		}
	}
	if k == old {
		return nil
	}
	switch now, was := k.flags(), old.flags(); {
	case now == was:
	case was == "":
		fmt.Fprintf(a.err, "recrawl: this crawl keeps %s from now on\n", now)
	default:
		fmt.Fprintf(a.err, "recrawl: this crawl keeps %s from now on; it kept %s\n", cmp.Or(now, "no flags"), was)
	}
	if old.Signature != "" && (k.Schedule != old.Schedule || k.Budget != old.Budget) { // it was crawled
		fmt.Fprintln(a.err, "recrawl: each page that was visited is due when it was, and by the new schedule or budget from its next visit on")
	}
	if old.Signature != "" && k.Signature != old.Signature {
		fmt.Fprintf(a.err, "recrawl: pages are now compared by %s, before by %s: each will seem to have changed once\n", k.Signature, old.Signature)
	}
	return k.keep(ctx, s.db)
}

// apply sets the policies.
func (k kept) apply(o *recrawl.Options) error {
	if k.Scoring != "" {
		filter, err := scoringOf(k.Scoring)
		if err != nil {
			return err
		}
		o.Scoring = filter
		o.Update.Sweep.Orphans = orphans(filter)
	}
	return scheduled(k, o)
}
