package verbs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/recrawl/recrawl/cmd/recrawl/internal/control"
	"github.com/recrawl/recrawl/cmd/recrawl/internal/flags"
	"github.com/recrawl/recrawl/httpapi/feed"
)

// webhookFlags are the flags of changes that post events.
func webhookFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "webhook", Usage: "post each event to `URL`, signed as of standardwebhooks.com, and print nothing"},
		&cli.StringFlag{Name: "secret-file", Usage: "the secrets that sign, one a line of `FILE`: whsec_ and 24 to 64 bytes in base64"},
		&cli.StringFlag{Name: "dead-letters", Usage: "keep what the receiver does not accept in `OUTDIR` (default: beside the crawl, DIR.dead-letters/NAME)"},
		&cli.BoolFlag{Name: "dead", Usage: "list what the receiver of the consumer did not accept"},
		&cli.BoolFlag{Name: "resend", Usage: "with -webhook: post again what the receiver did not accept, and nothing else"},
	}
}

// checkWebhook returns an error for flags that do not go together.
func checkWebhook(c *cli.Command) error {
	hook, dead := c.String("webhook") != "", c.Bool("dead")
	switch {
	case (hook || dead) && (c.Bool("list") || c.Bool("drop")):
		return flags.Usagef("-list and -drop take neither -webhook nor -dead")
	case hook && dead:
		return flags.Usagef("-webhook and -dead exclude each other")
	case c.Bool("resend") && (!hook || c.Bool("follow")):
		return flags.Usagef("-resend takes -webhook, and not -follow")
	case hook != (c.String("secret-file") != ""):
		return flags.Usagef("-webhook and -secret-file go together")
	case c.String("dead-letters") != "" && !hook && !dead:
		return flags.Usagef("-dead-letters takes -webhook or -dead")
	case (hook || dead) && c.String("dead-letters") == "" && flags.IsURL(c.String("d")):
		return flags.Usagef("-dead-letters OUTDIR is required with a crawl in a database")
	}
	return nil
}

func deadLetters(c *cli.Command) *feed.Letters {
	dir := c.String("dead-letters")
	if dir == "" {
		dir = filepath.Join(filepath.Clean(c.String("d"))+".dead-letters", c.String("consumer"))
	}
	return feed.OpenLetters(dir)
}

func (a *app) printDeadLetters(c *cli.Command) error {
	all, err := deadLetters(c).All()
	for i := range all {
		if err := a.printLine(&all[i]); err != nil {
			return err
		}
	}
	return errors.Join(err, a.printed())
}

// newWebhook makes the webhook of the flags.
func (a *app) newWebhook(c *cli.Command, letters *feed.Letters) (*feed.Webhook, error) {
	text, err := os.ReadFile(c.String("secret-file"))
	if err != nil {
		return nil, flags.Usagef("-secret-file: %w", err)
	}
	secrets, err := feed.ParseSecrets(text)
	if err != nil {
		return nil, flags.Usagef("-secret-file: %w", err)
	}
	level := slog.LevelError
	if c.Bool("v") {
		level = slog.LevelInfo
	}
	return &feed.Webhook{
		URL: c.String("webhook"), Secrets: secrets, Dead: letters.Add,
		Logger: slog.New(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: level})),
	}, nil
}

// postChanges posts the events of a consumer, or those that are dead.
func (f *feedOfCrawl) postChanges(ctx context.Context, q control.FeedRequest) error {
	letters := deadLetters(f.c)
	w, err := f.a.newWebhook(f.c, letters)
	if err != nil {
		return err
	}
	if f.c.Bool("resend") {
		sent, refused, err := letters.Resend(ctx, w)
		fmt.Fprintf(f.a.err, "recrawl: %d accepted, %d refused again\n", sent, refused)
		return err
	}
	p := posting{feed: f, q: q, done: make(chan struct{}, 1)}
	stream, err := p.register(ctx)
	if err != nil {
		return err
	}
	err = w.Deliver(ctx, stream, p.messages, p.acknowledge)
	keep, done := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer done()
	if e := p.sendAck(keep); err == nil {
		err = e
	}
	return err
}

// posting reads the events of a consumer by requests, as many at a time as a reply has.
type posting struct {
	feed *feedOfCrawl
	done chan struct{} // says that acknowledged has moved

	mu           sync.Mutex // held during a request
	q            control.FeedRequest
	acknowledged string // by the receiver
	sent         string // the last position acknowledged to the crawl, at sentAt
	sentAt       time.Time
}

// register makes the consumer, if there is none, and returns the name of its stream.
func (p *posting) register(ctx context.Context) (string, error) {
	q := p.q
	q.AckOnly = true
	if _, err := p.feed.do(ctx, q); err != nil {
		return "", err
	}
	r, err := p.feed.do(ctx, control.FeedRequest{List: true})
	for _, c := range r.Consumers {
		if c.Name == q.Consumer {
			return feed.Stream(c.Name, c.Registered), nil
		}
	}
	return q.Consumer, err
}

// ackInterval is the least time between two acknowledgements to the crawl while the events of a reply are
// being posted.
const ackInterval = 2 * time.Second

// acknowledge notes how far the receiver has accepted events.
func (p *posting) acknowledge(ctx context.Context, position string) error {
	p.mu.Lock()
	p.acknowledged = position
	due := time.Since(p.sentAt) >= ackInterval
	p.mu.Unlock()
	select {
	case p.done <- struct{}{}:
	default:
	}
	if due {
		return p.sendAck(ctx)
	}
	return nil
}

// sendAck acknowledges to the crawl the events that the receiver has accepted.
func (p *posting) sendAck(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.acknowledged == p.sent {
		return nil
	}
	q := p.q
	q.AckOnly, q.Ack = true, p.acknowledged
	_, err := p.feed.do(ctx, q)
	if err == nil {
		p.sent, p.sentAt = p.acknowledged, time.Now()
	}
	return err
}

// next requests the events that are not acknowledged.
func (p *posting) next(ctx context.Context) (r control.FeedReply, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := p.q
	if q.Ack = p.acknowledged; q.Ack == p.sent {
		q.Ack = ""
	}
	if r, err = p.feed.do(ctx, q); err == nil {
		p.sent, p.sentAt = p.acknowledged, time.Now()
	}
	return r, err
}

// messages yields the events. Those of one reply are accepted before the next is requested.
func (p *posting) messages(ctx context.Context) iter.Seq2[feed.Message, error] {
	return func(yield func(feed.Message, error) bool) {
		for {
			r, err := p.next(ctx)
			for i := 0; err == nil && i < len(r.Lines); i++ {
				var m feed.Message
				if m, err = messageOf(r.Lines[i]); err == nil && !yield(m, nil) {
					return
				}
			}
			switch {
			case err != nil:
			case r.Last != "":
				err = p.wait(ctx, r.Last)
			case !p.feed.c.Bool("follow"):
				return
			default:
				err = p.feed.wait(ctx)
			}
			if err != nil {
				yield(feed.Message{}, err)
				return
			}
		}
	}
}

// wait waits until an event is accepted.
func (p *posting) wait(ctx context.Context, position string) error {
	for {
		p.mu.Lock()
		reached := p.acknowledged == position
		p.mu.Unlock()
		if reached {
			return nil
		}
		select {
		case <-p.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func messageOf(line json.RawMessage) (feed.Message, error) {
	var c feed.Change
	if err := json.Unmarshal(line, &c); err != nil {
		return feed.Message{}, fmt.Errorf("an event of the change feed: %w", err)
	}
	return feed.Message{Position: c.Position, URL: c.URL, Kind: c.Kind, Time: c.Time, Data: line}, nil
}
