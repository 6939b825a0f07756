package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"iter"
	"time"

	"github.com/shedbolt/shedbolt/core"
)

// Provider keeps locks in one table. It implements core.Provider, core.Extender
// and core.Inspector, and is safe for concurrent use.
type Provider struct {
	db     *sql.DB
	config config
	sql    statements
	turn   chan struct{} // held by the one call that may write
}

// New makes a Provider on a database, which stays the caller's. It makes no I/O.
func New(db *sql.DB, opts ...Option) (*Provider, error) {
	if db == nil {
		return nil, errors.New("sqlite: New needs a database")
	}
	p := &Provider{db: db, config: config{table: quote([]string{DefaultTable}), busyLimit: DefaultBusyLimit}, turn: make(chan struct{}, 1)}
	for _, opt := range opts {
		if err := opt(&p.config); err != nil {
			return nil, err
		}
	}
	p.sql = newStatements(p.config)
	return p, nil
}

// Schema is the DDL of the table, for a migration.
func (p *Provider) Schema() string { return p.sql.schema + ";\n" }

// EnsureSchema creates the table unless it exists. Several processes may call it
// at once. An existing table is left as it is.
func (p *Provider) EnsureSchema(ctx context.Context) error {
	return p.whileBusy(ctx, writing, func(conn *sql.Conn, _ bool) error {
		_, err := conn.ExecContext(ctx, p.sql.schema)
		return err
	})
}

// Capabilities implements core.Provider.
func (p *Provider) Capabilities() core.Capabilities {
	return core.Capabilities{
		Set:        core.CapExtend | core.CapInspect | core.CapFence | core.CapHolder | core.CapTimes | core.CapPersistent,
		Resolution: time.Millisecond,
	}
}

// acquireTries bounds how often a claim that lost a race looks again. The second
// look nearly always sees the winner.
const acquireTries = 4

// Acquire implements core.Provider. It looks before it writes, because a loser
// must not take SQLite's one write lock.
func (p *Provider) Acquire(ctx context.Context, c core.Claim) (core.Grant, error) {
	holder := c.Holder()
	for range acquireTries {
		r, found, err := p.Inspect(ctx, c.Name)
		if err == nil && !(found && r.Held()) {
			r, found, err = p.take(ctx, c.Name, holder, c.AtMostFor)
		}
		switch {
		case err != nil:
			return core.Grant{}, err
		case !found: // another claim came between the two statements
			continue
		case r.LockedBy != holder:
			return core.Grant{}, r.HeldError()
		}
		return core.Grant{
			Name: c.Name, Owner: c.Owner, Token: c.Token,
			LockedAt: r.LockedAt, LockedUntil: r.LockedUntil, Fence: r.Fence,
		}, nil
	}
	// Others took and freed the lock between any two looks.
	return core.Grant{}, &core.HeldError{Name: c.Name}
}

// take makes one attempt on a lock that was free a moment ago. The answer is its
// holder then, or empty if another claim came in between.
func (p *Provider) take(ctx context.Context, name, holder string, atMost time.Duration) (r core.Record, found bool, err error) {
	err = p.whileBusy(ctx, writing, func(conn *sql.Conn, late bool) error {
		if late { // by now it may be held, and a loser must not write
			records, err := collect(ctx, conn, p.sql.inspect, name)
			if r, found = first(records); err != nil || found && r.Held() {
				return err
			}
		}
		records, err := collect(ctx, conn, p.sql.acquire, name, holder, atMost.Milliseconds())
		r, found = first(records)
		return classify(ctx, err)
	})
	return r, found, err
}

// Release implements core.Provider.
func (p *Provider) Release(ctx context.Context, g core.Grant, keepFor time.Duration) error {
	_, err := p.change(ctx, p.sql.release, g.Name, g.Holder(), keepFor.Milliseconds())
	return err
}

// Extend implements core.Extender.
func (p *Provider) Extend(ctx context.Context, g core.Grant, d time.Duration) (core.Grant, error) {
	r, err := p.change(ctx, p.sql.extend, g.Name, g.Holder(), d.Milliseconds())
	if err != nil {
		return core.Grant{}, err
	}
	g.LockedUntil = r.LockedUntil
	return g, nil
}

// ForceRelease implements core.Inspector.
func (p *Provider) ForceRelease(ctx context.Context, seen core.Record) error {
	_, err := p.change(ctx, p.sql.forceRelease, seen.Name, seen.LockedBy, seen.LockedAt.UnixMilli(), seen.Fence)
	return err
}

// Inspect implements core.Inspector.
func (p *Provider) Inspect(ctx context.Context, name string) (core.Record, bool, error) {
	records, err := p.query(ctx, reading, p.sql.inspect, name)
	r, found := first(records)
	return r, found, err
}

const pageSize = 1000

// List implements core.Inspector. It reads pages of 1,000 records, and neither a
// connection nor a transaction is held while the caller looks at one.
func (p *Provider) List(ctx context.Context) iter.Seq2[core.Record, error] {
	return func(yield func(core.Record, error) bool) {
		for last := ""; ; {
			page, err := p.query(ctx, reading, p.sql.list, last, pageSize)
			if err != nil {
				yield(core.Record{}, err)
				return
			}
			for _, r := range page {
				if !yield(r, nil) {
					return
				}
			}
			if len(page) < pageSize {
				return
			}
			last = page[len(page)-1].Name
		}
	}
}

// change runs a statement that must find its record, live.
func (p *Provider) change(ctx context.Context, query string, args ...any) (core.Record, error) {
	records, err := p.query(ctx, writing, query, args...)
	r, found := first(records)
	if err == nil && !found {
		err = core.ErrLost
	}
	return r, err
}

// access says whether a statement may change the database.
type access bool

const (
	reading access = false
	writing access = true
)

// query runs one statement, again while the database is busy.
func (p *Provider) query(ctx context.Context, a access, query string, args ...any) (records []core.Record, err error) {
	err = p.whileBusy(ctx, a, func(conn *sql.Conn, _ bool) (err error) {
		records, err = collect(ctx, conn, query, args...)
		if a == writing {
			err = classify(ctx, err)
		}
		return err
	})
	return records, err
}

func first(records []core.Record) (r core.Record, found bool) {
	if len(records) == 0 {
		return core.Record{}, false
	}
	return records[0], true
}

// collect reads a statement's rows to the end, not just to the one that is
// wanted: SQLite commits when the end is reached, and only so a commit's failure
// is seen.
func collect(ctx context.Context, conn *sql.Conn, query string, args ...any) (records []core.Record, err error) {
	rows, err := conn.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() {
		if closeErr := rows.Close(); err == nil {
			err = closeErr
		}
	}()
	for rows.Next() {
		var r core.Record
		var lockedAt, lockUntil, now int64
		if err := rows.Scan(&r.Name, &r.LockedBy, &lockedAt, &lockUntil, &r.Fence, &now); err != nil {
			return nil, err
		}
		r.Owner, _ = core.ParseHolder(r.LockedBy)
		r.LockedAt, r.LockedUntil, r.StoreTime = time.UnixMilli(lockedAt).UTC(), time.UnixMilli(lockUntil).UTC(), time.UnixMilli(now).UTC()
		records = append(records, r)
	}
	return records, rows.Err()
}
