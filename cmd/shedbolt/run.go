package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/shedbolt/shedbolt/core"
)

const runHelp = `Run a command if, and only if, nobody else holds the lock.

Usage:
  shedbolt run --name NAME --at-most DURATION [flags] -- COMMAND [ARGUMENT...]

Flags:
%s
Durations are written like 90s, 10m, 1h30m, or in ISO 8601 like PT10M, P1DT2H.

Exit codes:
  the command's own, or 128 + N if signal N ended it
  0    the lock is held by somebody else (see --held-code)
  64   bad usage
  69   the store could not decide: the command did not run
  75   the lock was lost: the command was ended before it could overlap with another
       host's, or its record was gone when it ended
  126  the command can't be executed
  127  the command was not found

The command finds in its environment:
  SHEDBOLT_NAME      the lock's name
  SHEDBOLT_FENCE     a number that is larger for each later run, for resources that
                     can refuse an older one
  SHEDBOLT_TOKEN     the holder's identity in the store
  SHEDBOLT_DEADLINE  when it will be told to end (TERM), in UTC, on this host's clock

Environment:
  SHEDBOLT_STORE     the store, if --store is not given; it keeps passwords out of
                     the process list

Examples:
  shedbolt run --name backup --at-most 1h --at-least 5m -- /usr/local/bin/backup
  shedbolt run --name report --at-most PT10M --store postgres://app@db/app -- report --all
`

type runOptions struct {
	lock         core.Lock
	store        storeOptions
	storeTimeout time.Duration
	ensureSchema bool
	owner        string
	grace        time.Duration
	heldCode     int
	args         []string
}

// errHelp asks for the help text.
var errHelp = errors.New("help")

// parseRun reads the flags; its errors are usageErrors or errHelp.
func parseRun(args []string) (o runOptions, help string, err error) {
	flags := pflag.NewFlagSet("run", pflag.ContinueOnError)
	flags.SetInterspersed(false) // what follows the command belongs to it
	flags.SetOutput(io.Discard)
	flags.SortFlags = false
	name := flags.String("name", "", "name of the lock, the same on all hosts: 1 to 64 `characters`")
	atMost := flags.String("at-most", "", "the lock is free after this `duration` even if this host dies; the command is ended before")
	atLeast := flags.String("at-least", "0", "the lock stays held for this `duration` even if the command is quick")
	flags.StringVar(&o.store.url, "store", "", "store that all hosts share, as a `URL`: sqlite:FILE, postgres://..., mysql://... or redis://...; default: $SHEDBOLT_STORE, else a SQLite file in the state directory of this user, for one host")
	flags.StringVar(&o.store.table, "table", "", "`name` of the lock table, or schema.name (PostgreSQL; default shedlock)")
	flags.BoolVar(&o.ensureSchema, "ensure-schema", false, "create the table if it is missing")
	storeTimeout := flags.String("store-timeout", "10s", "give up if the store has not answered after this `duration`")
	flags.StringVar(&o.owner, "owner", "", "`label` by which others see who holds the lock (default host/pid)")
	grace := flags.String("grace", "", "`time` between TERM and KILL when the lock runs out (default 10s, at most a quarter of --at-most)")
	flags.IntVar(&o.heldCode, "held-code", 0, "exit `code` when somebody else holds the lock")
	flags.BoolVar(&o.store.dryRun, "dry-run", false, "say what would happen, change nothing")
	help = flags.FlagUsagesWrapped(90)

	if err := flags.Parse(args); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			return o, help, errHelp
		}
		return o, help, flagError(err)
	}
	if *name == "" {
		return o, help, usageError{"--name", "it is required"}
	}
	o.lock.Name = *name
	if err := core.CheckName(*name); err != nil {
		return o, help, usageError{"--name", strip(err)}
	}
	for _, d := range []struct {
		flag, text string
		into       *time.Duration
		zero       bool
	}{
		{"--at-most", *atMost, &o.lock.AtMostFor, false},
		{"--at-least", *atLeast, &o.lock.AtLeastFor, true},
		{"--store-timeout", *storeTimeout, &o.storeTimeout, false},
		{"--grace", *grace, &o.grace, true},
	} {
		if d.text == "" {
			if d.flag == "--grace" {
				o.grace = min(10*time.Second, o.lock.AtMostFor/4)
				continue
			}
			return o, help, usageError{d.flag, "it is required"}
		}
		if *d.into, err = core.ParseDuration(d.text); err != nil {
			return o, help, usageError{d.flag, strip(err)}
		}
		if *d.into == 0 && !d.zero {
			return o, help, usageError{d.flag, "it must be more than 0"}
		}
		if *d.into > core.MaxDuration {
			return o, help, usageError{d.flag, d.text + " is more than ten years"}
		}
	}
	if o.lock.AtLeastFor > o.lock.AtMostFor {
		return o, help, usageError{"--at-least", fmt.Sprintf("%v is longer than --at-most %v", o.lock.AtLeastFor, o.lock.AtMostFor)}
	}
	if o.grace >= o.lock.AtMostFor {
		return o, help, usageError{"--grace", fmt.Sprintf("%v leaves nothing of --at-most %v", o.grace, o.lock.AtMostFor)}
	}
	if o.heldCode < 0 || o.heldCode > 255 {
		return o, help, usageError{"--held-code", fmt.Sprintf("%d is not between 0 and 255", o.heldCode)}
	}
	if o.args = flags.Args(); len(o.args) == 0 {
		return o, help, usageError{"--", "the command is missing: shedbolt run [flags] -- COMMAND [ARGUMENT...]"}
	}
	if !flags.Changed("store") {
		o.store.url = os.Getenv("SHEDBOLT_STORE")
	} else if o.store.url == "" {
		return o, help, usageError{"--store", "it is empty"}
	}
	return o, help, nil
}

// strip takes the library's prefix off: the line has it already.
func strip(err error) string { return strings.TrimPrefix(err.Error(), "shedbolt: ") }

// flagError makes pflag's errors name the flag first.
func flagError(err error) error {
	if e, ok := errors.AsType[*pflag.NotExistError](err); ok {
		return usageError{"--" + e.GetSpecifiedName(), "unknown flag; see shedbolt run --help"}
	}
	if e, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		return usageError{"--" + e.GetSpecifiedName(), "it needs a value"}
	}
	if e, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return usageError{"--" + e.GetFlag().Name, fmt.Sprintf("%q is no %s", e.GetValue(), e.GetFlag().Value.Type())}
	}
	return usageError{"run", err.Error()}
}

func runCommand(args []string, stdout, stderr io.Writer) int {
	o, help, err := parseRun(args)
	if errors.Is(err, errHelp) {
		fmt.Fprintf(stdout, runHelp, help)
		return exitOK
	}
	if err != nil {
		complain(stderr, "%v", err)
		return exitUsage
	}
	return run(o, stdout, stderr)
}

// run does what the command line says and returns the exit code.
func run(o runOptions, stdout, stderr io.Writer) int {
	// Before the lock is taken, so that a mistyped command holds nothing.
	path, err := exec.LookPath(o.args[0])
	if err != nil && !errors.Is(err, exec.ErrDot) {
		complain(stderr, "%v", err)
		if errors.Is(err, fs.ErrPermission) {
			return exitCannot
		}
		return exitNotFound
	}

	signals := make(chan os.Signal, 8)
	signal.Notify(signals, forwarded...)
	defer signal.Stop(signals)

	// Until the command has started, a signal means: give up.
	ctx, giveUp := context.WithCancelCause(context.Background())
	defer giveUp(nil)
	started := make(chan struct{})
	relayed := make(chan os.Signal, 8)
	go func() {
		for s := range signals {
			select {
			case <-started:
				relayed <- s
			default:
				giveUp(interrupted{s})
			}
		}
	}()

	storeCtx, cancel := context.WithTimeout(ctx, o.storeTimeout)
	defer cancel()
	store, locker, err := prepare(storeCtx, o)
	if err != nil {
		return failure(err, o, stderr)
	}
	defer store.close()
	if o.store.dryRun {
		return dryRun(storeCtx, store, o, stdout, stderr)
	}

	lease, err := locker.TryLock(storeCtx, o.lock)
	if held, ok := errors.AsType[*core.HeldError](err); ok {
		complain(stderr, "skipped: %s", describe(held))
		return o.heldCode
	}
	if err != nil {
		return failure(err, o, stderr)
	}
	cancel()

	code, lost := supervise(ctx, lease, path, o, started, relayed, stderr)
	switch err := lease.Release(context.Background()); {
	case lost:
		code = exitLost
	case errors.Is(err, core.ErrLost):
		complain(stderr, "lost: while the command ran, its lock %q was freed, removed or taken over", o.lock.Name)
		code = exitLost
	case err != nil:
		complain(stderr, "warning: the lock stays held until its at-most time: %s", explain(err, o.store.url))
	}
	return code
}

// prepare opens the store and makes what may be missing.
func prepare(ctx context.Context, o runOptions) (*openStore, *core.Locker, error) {
	store, err := open(ctx, o.store)
	if err != nil {
		return nil, nil, err
	}
	if store.absent {
		return store, nil, nil
	}
	var opts []core.Option
	if o.owner != "" {
		opts = append(opts, core.WithOwner(o.owner))
	}
	locker, err := core.New(store.provider, opts...)
	if err != nil {
		store.close()
		return nil, nil, usageError{"--owner", strip(err)}
	}
	maker, hasSchema := store.provider.(schemaMaker)
	if hasSchema && !o.store.dryRun && (store.embedded || o.ensureSchema) {
		if err := maker.EnsureSchema(ctx); err != nil {
			store.close()
			return nil, nil, fmt.Errorf("create the table: %w", err)
		}
	}
	return store, locker, nil
}

// interrupted is why the attempt ends when a signal comes before the command.
type interrupted struct{ signal os.Signal }

func (i interrupted) Error() string { return "interrupted by " + i.signal.String() }

// failure reports an error that kept the command from running.
func failure(err error, o runOptions, stderr io.Writer) int {
	if usage, ok := errors.AsType[usageError](err); ok {
		complain(stderr, "%v", usage)
		return exitUsage
	}
	complain(stderr, "%s: not run: %s", storeOf(o.store), explain(err, o.store.url))
	if i, ok := errors.AsType[interrupted](err); ok {
		return signalCode(i.signal)
	}
	return exitStore
}

func dryRun(ctx context.Context, store *openStore, o runOptions, stdout, stderr io.Writer) int {
	var r core.Record
	if !store.absent {
		var err error
		if r, _, err = store.Inspect(ctx, o.lock.Name); err != nil {
			return failure(err, o, stderr)
		}
	}
	if r.Held() {
		fmt.Fprintf(stdout, "would skip: %s\n", describe(r.HeldError()))
		return o.heldCode
	}
	fmt.Fprintf(stdout, "would run %q under lock %q, which is free, in %s\n", o.args, o.lock.Name, storeOf(o.store))
	return exitOK
}

// describe says who holds a lock. The times are the store's, shown in this
// host's zone.
func describe(h *core.HeldError) string {
	const layout = "2006-01-02 15:04:05 -07:00"
	text := fmt.Sprintf("lock %q is held", h.Name)
	if h.Owner != "" {
		text += " by " + h.Owner
	}
	if !h.Since.IsZero() {
		text += " since " + h.Since.Local().Format(layout)
	}
	if !h.Until.IsZero() {
		text += " until " + h.Until.Local().Format(layout)
	}
	return text
}
