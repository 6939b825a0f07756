package postgres

import (
	"context"
	"iter"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/shedbolt/shedbolt/core"
)

// Provider keeps locks in one table. It implements core.Provider, core.Extender
// and core.Inspector, and is safe for concurrent use.
type Provider struct {
	db      session
	config  config
	sql     statements
	checked atomic.Bool // the table's columns are as they must be
	// explicit says that statements run in READ COMMITTED transactions of their
	// own, because the session's default level is a higher one.
	explicit atomic.Bool
}

// New makes a Provider on a pool or connection, which stays the caller's. It
// makes no I/O.
func New(db DB, opts ...Option) (*Provider, error) {
	p := &Provider{config: config{table: pgx.Identifier{DefaultTable}, columns: DefaultColumns()}}
	for _, opt := range opts {
		if err := opt(&p.config); err != nil {
			return nil, err
		}
	}
	var err error
	if p.db, err = newSession(db); err != nil {
		return nil, err
	}
	p.sql = newStatements(p.config)
	return p, nil
}

// Capabilities implements core.Provider.
func (p *Provider) Capabilities() core.Capabilities {
	return core.Capabilities{
		Set:        core.CapExtend | core.CapInspect | core.CapFence | core.CapHolder | core.CapTimes | core.CapPersistent,
		Resolution: time.Microsecond,
	}
}

// acquireTries bounds how often a claim that lost a race looks again. The second
// look nearly always sees the winner.
const acquireTries = 4

// Acquire implements core.Provider.
func (p *Provider) Acquire(ctx context.Context, c core.Claim) (core.Grant, error) {
	holder := c.Holder()
	for range acquireTries {
		r, found, err := p.one(ctx, p.sql.acquire, c.Name, holder, c.AtMostFor.Microseconds())
		switch {
		case err != nil:
			return core.Grant{}, err
		case !found || !r.Held(): // lost a race: see acquire.sql
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

// Release implements core.Provider.
func (p *Provider) Release(ctx context.Context, g core.Grant, keepFor time.Duration) error {
	_, err := p.change(ctx, p.sql.release, g.Name, g.Holder(), max(1, keepFor.Microseconds()))
	return err
}

// Extend implements core.Extender.
func (p *Provider) Extend(ctx context.Context, g core.Grant, d time.Duration) (core.Grant, error) {
	r, err := p.change(ctx, p.sql.extend, g.Name, g.Holder(), d.Microseconds())
	if err != nil {
		return core.Grant{}, err
	}
	g.LockedUntil = r.LockedUntil
	return g, nil
}

// ForceRelease implements core.Inspector.
func (p *Provider) ForceRelease(ctx context.Context, seen core.Record) error {
	_, err := p.change(ctx, p.sql.forceRelease, seen.Name, seen.LockedBy, seen.LockedAt.UnixMicro())
	return err
}

// Inspect implements core.Inspector.
func (p *Provider) Inspect(ctx context.Context, name string) (core.Record, bool, error) {
	return p.one(ctx, p.sql.inspect, name)
}

const pageSize = 1000

// List implements core.Inspector. It reads pages of 1,000 records, and no
// connection is held while the caller looks at one.
func (p *Provider) List(ctx context.Context) iter.Seq2[core.Record, error] {
	return func(yield func(core.Record, error) bool) {
		last, more := "", false
		for {
			page, err := p.query(ctx, p.sql.list, last, more, int64(pageSize))
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
			last, more = page[len(page)-1].Name, true
		}
	}
}

// change runs a statement that must find its record, live.
func (p *Provider) change(ctx context.Context, sql string, args ...any) (core.Record, error) {
	r, found, err := p.one(ctx, sql, args...)
	if err == nil && !found {
		err = core.ErrLost
	}
	return r, err
}

func (p *Provider) one(ctx context.Context, sql string, args ...any) (core.Record, bool, error) {
	records, err := p.query(ctx, sql, args...)
	if err != nil || len(records) == 0 {
		return core.Record{}, false, err
	}
	return records[0], true, nil
}

// query runs one statement in one round trip, with its errors marked as
// core.Uncertain where the statement may have been carried out.
func (p *Provider) query(ctx context.Context, sql string, args ...any) ([]core.Record, error) {
	if err := p.checkColumns(ctx); err != nil {
		return nil, err
	}
	explicit := p.explicit.Load()
	records, err := p.attempt(ctx, explicit, sql, args)
	if !explicit && serializationFailure(err) {
		// The server rolled it back, so to run it again is safe; and in READ
		// COMMITTED this failure does not exist.
		p.explicit.Store(true)
		records, err = p.attempt(ctx, true, sql, args)
	}
	return records, err
}

// begin opens a transaction at the level that the statements are written for.
const begin = "begin isolation level read committed"

func (p *Provider) attempt(ctx context.Context, explicit bool, sql string, args []any) ([]core.Record, error) {
	var records []core.Record
	collect := func(rows pgx.Rows) (err error) {
		records, err = pgx.CollectRows(rows, scan)
		return err
	}
	err := p.db.do(ctx, func(q querier) error {
		if explicit {
			batch := &pgx.Batch{}
			batch.Queue(begin)
			batch.Queue(sql, args...).Query(collect)
			batch.Queue("commit")
			return q.SendBatch(ctx, batch).Close()
		}
		rows, err := q.Query(ctx, sql, args...)
		if err != nil {
			return err
		}
		return collect(rows)
	})
	if err != nil {
		return nil, classify(err)
	}
	return records, nil
}

// scan reads what record.sql lists.
func scan(row pgx.CollectableRow) (core.Record, error) {
	var r core.Record
	var lockedAt, lockUntil, now int64
	if err := row.Scan(&r.Name, &r.LockedBy, &lockedAt, &lockUntil, &now); err != nil {
		return r, err
	}
	r.Owner, _ = core.ParseHolder(r.LockedBy)
	r.LockedAt, r.LockedUntil, r.StoreTime = time.UnixMicro(lockedAt).UTC(), time.UnixMicro(lockUntil).UTC(), time.UnixMicro(now).UTC()
	r.Fence = lockedAt
	return r, nil
}
