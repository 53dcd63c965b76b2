// Package expression compiles the expressions by which a crawl selects records
// and sets limits for hosts. (Nutch: generate.expr, generate.max.count.expr,
// generate.fetch.delay.expr, and the -expr of readdb and readhostdb.)
//
// The language is the side-effect-free part of JEXL, Nutch's expression language,
// so that expressions written for Nutch work as they are:
//
//	values       12  0x1f  1.5  'text'  "text"  true  false  null
//	             2016-03-20T00:00:00Z, which is milliseconds since 1970
//	names        url  score  Content_Type  avg._rs_
//	comparison   == != < > <= >=, or eq ne lt gt le ge
//	             =~ !~  matches a regular expression as a whole, or is in a list:
//	                    status =~ ['db_gone', 'db_orphan']
//	             =^ !^  begins with    =$ !$  ends with
//	logic        && || !, or and or not;  c ? a : b;  a ?: b;  a ?? b
//	arithmetic   + - * / %, or div mod; of two integers / and % give an integer
//	functions    size(x)  empty(x)
//	methods      of a text: startsWith endsWith contains matches equals
//	             equalsIgnoreCase toLowerCase toUpperCase trim concat replace
//	             substring indexOf lastIndexOf compareTo isEmpty length size
//
// Everything else, such as new, assignments, loops and other methods, is an
// [Error] when the expression is compiled; so is a regular expression that is
// not a constant or that RE2 does not support. An expression that does not
// compile never counts as one that accepts everything.
//
// The names of a record are url, status (such as "db_fetched"), fetchTime and
// modifiedTime (milliseconds since 1970; 0 if never), retries, interval (seconds),
// score and signature (hexadecimal, or null). Any other name is metadata: the key
// of that name, or the key that becomes that name when each '-' is replaced by
// '_'. Metadata are texts, and are converted where a number is needed.
//
// The names of a host are unfetched, fetched, notModified, redirTemp, redirPerm,
// redirs, gone, ok (fetched and notModified), numRecords, dnsFailures,
// connectionFailures, score, host (its name), homepage and num.overdue; any other
// name is one of the hostdb.Host's Fields, spelled as for metadata.
//
// A missing name is null. Anything computed from null is null; a comparison
// with null is false, and its opposite true, except that null equals null; as a
// condition null is false. A name that differs from a known one only in case is
// an error, since it is a typing mistake.
//
// An expression cannot loop, call out, or retain anything: the time it takes is
// bounded by its length and that of the record.
package expression

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/vm"

	"github.com/recrawl/recrawl/crawldb"
	"github.com/recrawl/recrawl/hostdb"
)

// Error says why an expression does not compile, and where.
type Error struct {
	// Source is the expression, Offset the byte at which the problem begins.
	Source string
	Offset int
	Reason string
}

// Error names the expression, the column and the reason.
func (e *Error) Error() string {
	src, at := e.Source, min(max(e.Offset, 0), len(e.Source))
	if len(src) > 200 { // what stands around the trouble
		from := max(at-100, 0)
		to := min(from+200, len(src))
		src = src[from:to]
		if from > 0 {
			src = "..." + src
		}
		if to < len(e.Source) {
			src += "..."
		}
	}
	return fmt.Sprintf("expression: %q, column %d: %s", src, e.Offset+1, e.Reason)
}

// ErrValue is matched by every failure to evaluate an expression: the value for
// this record or host is not of the required kind.
var ErrValue = errors.New("expression: no value")

// Options say how to compile. The functions of the package use the zero value.
type Options struct {
	// NutchCompat makes the whole expression fail on a missing name, unless that is
	// the left side of ?: or ?? or the condition of c ? a : b; and on a null
	// signature except in == != =~ !~. As a condition, a text is then true unless it
	// is empty or "false". A number without a fraction, such as fetched / 2, is then
	// not a value for HostNumber. An expression that does not compile is still an
	// error, where Nutch selects everything.
	NutchCompat bool
	// Location is the time zone of date literals; nil means UTC, as the Z in
	// them says. Nutch reads them in the zone of its machine.
	Location *time.Location
}

// RecordFilter compiles a condition on records of the crawl db. The function returns an
// error matching ErrValue if a record yields anything but true or false: such a
// record is not selected. It may be called from many goroutines at once.
func RecordFilter(src string) (func(*crawldb.Datum) (bool, error), error) {
	return Options{}.RecordFilter(src)
}

// HostFilter compiles a condition on hosts; see [RecordFilter].
func HostFilter(src string) (func(*hostdb.Host) (bool, error), error) {
	return Options{}.HostFilter(src)
}

// HostNumber compiles a number for each host, such as a limit or a delay. The
// function returns an error matching ErrValue if a host yields no number, for
// example because one of its fields is not known yet: field == null tests for
// that, and ?? provides a default. It may be called from many goroutines at once.
func HostNumber(src string) (func(*hostdb.Host) (float64, error), error) {
	return Options{}.HostNumber(src)
}

// RecordFilter is [RecordFilter] with these options.
func (o Options) RecordFilter(src string) (func(*crawldb.Datum) (bool, error), error) {
	return condition(o, src, recordNames())
}

// HostFilter is [HostFilter] with these options.
func (o Options) HostFilter(src string) (func(*hostdb.Host) (bool, error), error) {
	return condition(o, src, hostNames())
}

// HostNumber is [HostNumber] with these options.
func (o Options) HostNumber(src string) (func(*hostdb.Host) (float64, error), error) {
	p, err := compile(o, src, hostNames())
	if err != nil {
		return nil, err
	}
	if p.kind == boolean || p.kind == str {
		return nil, &Error{src, 0, "gives " + p.kind.String() + " where a number is needed"}
	}
	return func(h *hostdb.Host) (float64, error) {
		v, err := p.run(h)
		if err != nil {
			return 0, err
		}
		f, ok := number(v)
		if _, whole := v.(float64); !ok || o.NutchCompat && !whole || f != f {
			return 0, fmt.Errorf("%w: %q gives %s where a number is needed", ErrValue, src, describe(v))
		}
		return f, nil
	}, nil
}

func condition[T any](o Options, src string, ns names[T]) (func(T) (bool, error), error) {
	p, err := compile(o, src, ns)
	if err != nil {
		return nil, err
	}
	if p.kind == num || p.kind == str || p.kind == null {
		return nil, &Error{src, 0, "gives " + p.kind.String() + " where true or false is needed"}
	}
	return func(in T) (bool, error) {
		v, err := p.run(in)
		if err != nil {
			return false, err
		}
		ok, is := v.(bool)
		if !is {
			return false, fmt.Errorf("%w: %q gives %s where true or false is needed", ErrValue, src, describe(v))
		}
		return ok, nil
	}, nil
}

// program is a compiled expression over values of type T.
type program[T any] struct {
	src  string
	kind kind
	code *vm.Program
	refs []ref[T]
	pool sync.Pool // of *state
}

// ref is a name that an expression uses: v0, v1 and so on in the code.
type ref[T any] struct {
	slot string
	get  func(T) any
}

// state is what one evaluation needs.
type state struct {
	vm  vm.VM
	env map[string]any
}

// memory bounds what an expression may allocate, in values; without loops none
// comes near.
const memory = 1 << 16

func compile[T any](o Options, src string, ns names[T]) (*program[T], error) {
	p := &program[T]{src: src}
	t := translator{src: src, o: o, slots: map[string]string{}}
	t.lookup = func(name string) (k kind, known bool, alike string) {
		v, known := ns.fixed[name]
		return v.kind, known, caseOf(name, ns.fixed, known)
	}
	out, err := t.translate()
	if err != nil {
		return nil, err
	}
	p.kind = out.kind
	env := map[string]any{}
	for _, name := range t.order {
		v, known := ns.fixed[name]
		if !known {
			v.get = func(in T) any { return ns.other(in, name) }
		}
		slot := t.slots[name]
		p.refs = append(p.refs, ref[T]{slot, v.get})
		env[slot] = v.kind.sample()
	}
	for i := range t.consts {
		env[constant(i)] = num.sample()
	}
	options := append(functions(t.regexps), expr.Env(environment(env)), expr.DisableAllBuiltins(), expr.MaxNodes(maxNodes))
	if p.code, err = expr.Compile(out.code, options...); err != nil {
		// What the translator accepts should compile; if it does not, it is still an
		// error. Its other lines show the translation.
		reason, _, _ := strings.Cut(err.Error(), "\n")
		return nil, &Error{src, 0, "cannot be compiled: " + reason}
	}
	p.pool.New = func() any {
		s := &state{env: make(map[string]any, len(env)), vm: vm.VM{MemoryBudget: memory}}
		for i, c := range t.consts {
			s.env[constant(i)] = c
		}
		return s
	}
	return p, nil
}

// run evaluates the expression.
func (p *program[T]) run(in T) (any, error) {
	s := p.pool.Get().(*state)
	defer p.pool.Put(s)
	for _, r := range p.refs {
		s.env[r.slot] = r.get(in)
	}
	v, err := s.vm.Run(p.code, s.env)
	if err != nil {
		var f *failure
		if errors.As(err, &f) {
			err = f
		}
		return nil, fmt.Errorf("%w: %q: %w", ErrValue, p.src, err)
	}
	return v, nil
}

// milliseconds is a time as Java has it; 0 if it is zero.
func milliseconds(t time.Time) any {
	if t.IsZero() {
		return int64(0)
	}
	return t.UnixMilli()
}

// decimal widens a score to the number one reads in its decimal form, so that a
// score of 0.1 equals 0.1, as in JEXL.
func decimal(f float32) any {
	if w := float64(f); w == float64(int64(w)) {
		return w
	}
	d, _ := strconv.ParseFloat(strconv.FormatFloat(float64(f), 'g', -1, 32), 64)
	return d
}
