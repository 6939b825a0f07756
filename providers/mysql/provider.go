package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
	"time"

	"github.com/shedbolt/shedbolt/core"
)

// Provider keeps locks in one table of MySQL or MariaDB. It implements
// core.Provider, core.Extender and core.Inspector, and is safe for concurrent use.
type Provider struct {
	db     *sql.DB
	config config
	sql    statements
	fit    atomic.Pointer[fitness] // set once the table and session were looked at
	hints  hints
}

// New makes a Provider on a pool, which stays the caller's. It makes no I/O.
func New(db *sql.DB, opts ...Option) (*Provider, error) {
	if db == nil {
		return nil, errors.New("mysql: New needs a *sql.DB")
	}
	p := &Provider{db: db, config: config{table: DefaultTable, columns: DefaultColumns()}}
	for _, opt := range opts {
		if err := opt(&p.config); err != nil {
			return nil, err
		}
	}
	p.sql = newStatements(p.config)
	return p, nil
}

// Capabilities implements core.Provider.
func (p *Provider) Capabilities() core.Capabilities {
	caps := core.Capabilities{
		Set:        core.CapExtend | core.CapInspect | core.CapHolder | core.CapTimes | core.CapPersistent,
		Resolution: time.Millisecond,
	}
	if p.config.fencing {
		caps.Set |= core.CapFence
	}
	return caps
}

// acquireTries bounds how often a claim that lost a race looks again. The second
// look nearly always sees the winner.
const acquireTries = 5

// Acquire implements core.Provider.
func (p *Provider) Acquire(ctx context.Context, c core.Claim) (core.Grant, error) {
	f, err := p.check(ctx)
	if err != nil {
		return core.Grant{}, err
	}
	if err := f.reaches(c.AtMostFor); err != nil {
		return core.Grant{}, err
	}
	v, err := f.values(c.Name, c.Holder())
	if err != nil {
		return core.Grant{}, err
	}
	v.micros = c.AtMostFor.Microseconds()
	for try := 1; try <= acquireTries; try++ {
		r, found, err := p.try(ctx, f, v)
		switch {
		case raced(err) && try < acquireTries:
			continue
		case err != nil:
			return core.Grant{}, classify(err)
		case found && r.Name != c.Name:
			return core.Grant{}, f.collision(c.Name, r.Name)
		case found && r.LockedBy == v.holder: // even if it has expired since
			return core.Grant{
				Name: c.Name, Owner: c.Owner, Token: c.Token,
				LockedAt: r.LockedAt, LockedUntil: r.LockedUntil, Fence: r.Fence,
			}, nil
		case found && r.Held():
			p.hints.seen(c.Name, r.Remaining())
			return core.Grant{}, r.HeldError()
		}
	}
	// Others took and freed the lock between any two looks.
	return core.Grant{}, &core.HeldError{Name: c.Name}
}

// try makes one attempt and returns the record as it stands after it; nothing, or a
// record that is free, if it lost a race.
func (p *Provider) try(ctx context.Context, f *fitness, v values) (core.Record, bool, error) {
	oneTrip, all := f.oneTrip != steps, p.sql.block
	if f.oneTrip == batch {
		all = p.sql.batch
	}
	if oneTrip && !p.hints.expectHeld(v.name) {
		return p.one(ctx, all, v)
	}
	r, found, err := p.one(ctx, p.sql.read, v)
	if err != nil || found && (r.Held() || r.Name != v.name) {
		return r, found, err
	}
	if oneTrip {
		p.hints.wrong(v.name)
		return p.one(ctx, all, v)
	}
	write := p.sql.take
	if !found {
		write = p.sql.insert
	}
	at, err := p.change(ctx, write, v)
	switch {
	case err != nil || at == 0:
		return core.Record{}, false, err
	case p.config.fencing: // the number has to be read
		return p.one(ctx, p.sql.read, v)
	}
	taken := time.UnixMicro(at).UTC()
	return core.Record{
		Name: v.name, LockedBy: v.holder, StoreTime: taken,
		LockedAt: taken, LockedUntil: taken.Add(time.Duration(v.micros) * time.Microsecond),
	}, true, nil
}

// Release implements core.Provider.
func (p *Provider) Release(ctx context.Context, g core.Grant, keepFor time.Duration) error {
	_, err := p.changeOwn(ctx, p.sql.release, g.Name, g.Holder(), keepFor.Microseconds())
	return err
}

// Extend implements core.Extender.
func (p *Provider) Extend(ctx context.Context, g core.Grant, d time.Duration) (core.Grant, error) {
	if f, err := p.check(ctx); err != nil {
		return core.Grant{}, err
	} else if err := f.reaches(d); err != nil {
		return core.Grant{}, err
	}
	until, err := p.changeOwn(ctx, p.sql.extend, g.Name, g.Holder(), d.Microseconds())
	if err != nil {
		return core.Grant{}, err
	}
	g.LockedUntil = time.UnixMicro(until).UTC()
	return g, nil
}

// ForceRelease implements core.Inspector.
func (p *Provider) ForceRelease(ctx context.Context, seen core.Record) error {
	_, err := p.changeOwn(ctx, p.sql.forceRelease, seen.Name, seen.LockedBy, seen.LockedAt.UnixMicro())
	return err
}

// Inspect implements core.Inspector.
func (p *Provider) Inspect(ctx context.Context, name string) (core.Record, bool, error) {
	if _, err := p.check(ctx); err != nil {
		return core.Record{}, false, err
	}
	return p.one(ctx, p.sql.inspect, values{name: name})
}

const pageSize = 1000

// List implements core.Inspector. It reads pages of 1,000 records, and no
// connection is held while the caller looks at one. The order is that of the
// column's collation.
func (p *Provider) List(ctx context.Context) iter.Seq2[core.Record, error] {
	return func(yield func(core.Record, error) bool) {
		if _, err := p.check(ctx); err != nil {
			yield(core.Record{}, err)
			return
		}
		v := values{all: true, limit: pageSize}
		for {
			page, err := p.query(ctx, p.sql.list, v)
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
			v.all, v.name = false, page[len(page)-1].Name
		}
	}
}

// changeOwn runs a statement that must find its record, live, and returns the
// time that the statement reports.
func (p *Provider) changeOwn(ctx context.Context, t template, name, holder string, micros int64) (int64, error) {
	f, err := p.check(ctx)
	if err != nil {
		return 0, err
	}
	v, err := f.values(name, holder)
	if err != nil {
		return 0, err
	}
	v.micros = micros
	for try := 1; ; try++ {
		reported, err := p.change(ctx, t, v)
		switch {
		case raced(err) && try < acquireTries: // rolled back: it may be sent again
			continue
		case err != nil:
			return 0, classify(err)
		case reported == 0:
			return 0, core.ErrLost
		}
		return reported, nil
	}
}

// change runs a statement that writes, and returns what it has put into
// LAST_INSERT_ID; 0 if it has met no row.
func (p *Provider) change(ctx context.Context, t template, v values) (int64, error) {
	result, err := p.db.ExecContext(ctx, t.with(v))
	if err != nil {
		return 0, err
	}
	return result.LastInsertId()
}

func (p *Provider) one(ctx context.Context, t template, v values) (core.Record, bool, error) {
	records, err := p.query(ctx, t, v)
	if err != nil || len(records) == 0 {
		return core.Record{}, false, err
	}
	return records[0], true, nil
}

func (p *Provider) query(ctx context.Context, t template, v values) (records []core.Record, err error) {
	rows, err := p.db.QueryContext(ctx, t.with(v))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		r, err := scan(rows)
		if err != nil {
			return nil, err
		}
		records = append(records, r)
	}
	return records, rows.Err()
}

// scan reads what record.sql lists.
func scan(rows *sql.Rows) (core.Record, error) {
	var r core.Record
	var lockedAt, lockUntil, now int64
	if err := rows.Scan(&r.Name, &r.LockedBy, &lockedAt, &lockUntil, &now, &r.Fence); err != nil {
		return r, fmt.Errorf("a record can't be read: %w", err)
	}
	r.Owner, _ = core.ParseHolder(r.LockedBy)
	r.LockedAt, r.LockedUntil, r.StoreTime = time.UnixMicro(lockedAt).UTC(), time.UnixMicro(lockUntil).UTC(), time.UnixMicro(now).UTC()
	return r, nil
}
