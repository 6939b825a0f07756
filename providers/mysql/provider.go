package mysql

import (
	"context"
	"database/sql"
	"database/sql/driver"
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
			if r.readOnly { // what it says may be old; let the server say whether it may be written to
				if _, err := p.change(ctx, p.sql.probe, values{}); err != nil {
					return core.Grant{}, classify(err)
				}
			}
			p.hints.seen(c.Name, r.Remaining())
			return core.Grant{}, r.HeldError()
		}
	}
	// Others took and freed the lock between any two looks.
	return core.Grant{}, &core.HeldError{Name: c.Name}
}

// try makes one attempt and returns the record as it stands after it; nothing, or a
// record that is free, if it lost a race.
func (p *Provider) try(ctx context.Context, f *fitness, v values) (record, bool, error) {
	oneTrip, all := f.oneTrip != steps, p.sql.block
	if f.oneTrip == batch {
		all = p.sql.batch
	}
	if oneTrip && !p.hints.expectHeld(v.name) {
		return mayHaveWritten(p.one(ctx, all, v))
	}
	r, found, err := p.one(ctx, p.sql.read, v)
	if err != nil {
		return r, found, unsent{err}
	}
	if found && (r.Held() || r.Name != v.name) {
		return r, found, nil
	}
	if oneTrip {
		p.hints.wrong(v.name)
		return mayHaveWritten(p.one(ctx, all, v))
	}
	write := p.sql.take
	if !found {
		write = p.sql.insert
	}
	at, err := p.change(ctx, write, v)
	switch {
	case err != nil || at == 0:
		return record{}, false, err
	case p.config.fencing, !found && f.autoIncrement: // the number, or the time, has to be read
		return mayHaveWritten(p.one(ctx, p.sql.read, v))
	}
	taken := time.UnixMicro(at).UTC()
	return record{Record: core.Record{
		Name: v.name, LockedBy: v.holder, StoreTime: taken,
		LockedAt: taken, LockedUntil: taken.Add(time.Duration(v.micros) * time.Microsecond),
	}}, true, nil
}

// mayHaveWritten marks the error of what comes with a write or after it.
func mayHaveWritten(r record, found bool, err error) (record, bool, error) {
	if _, before := errors.AsType[unsent](err); err != nil && !before {
		err = several{err}
	}
	return r, found, err
}

// Release implements core.Provider.
func (p *Provider) Release(ctx context.Context, g core.Grant, keepFor time.Duration) error {
	f, err := p.check(ctx)
	if err != nil {
		return err
	}
	v, err := f.values(g.Name, g.Holder())
	if err != nil {
		return err
	}
	v.micros = keepFor.Microseconds()
	_, err = p.changeOwn(ctx, p.sql.release, v)
	return err
}

// Extend implements core.Extender.
func (p *Provider) Extend(ctx context.Context, g core.Grant, d time.Duration) (core.Grant, error) {
	f, err := p.check(ctx)
	if err != nil {
		return core.Grant{}, err
	}
	if err := f.reaches(d); err != nil {
		return core.Grant{}, err
	}
	v, err := f.values(g.Name, g.Holder())
	if err != nil {
		return core.Grant{}, err
	}
	v.micros = d.Microseconds()
	until, err := p.changeOwn(ctx, p.sql.extend, v)
	if err != nil {
		return core.Grant{}, err
	}
	g.LockedUntil = time.UnixMicro(until).UTC()
	return g, nil
}

// ForceRelease implements core.Inspector.
func (p *Provider) ForceRelease(ctx context.Context, seen core.Record) error {
	if _, err := p.check(ctx); err != nil {
		return err
	}
	// The holder is as the record has it, whatever we would write.
	_, err := p.changeOwn(ctx, p.sql.forceRelease, values{name: seen.Name, holder: seen.LockedBy, micros: seen.LockedAt.UnixMicro()})
	return err
}

// Inspect implements core.Inspector.
func (p *Provider) Inspect(ctx context.Context, name string) (core.Record, bool, error) {
	if _, err := p.check(ctx); err != nil {
		return core.Record{}, false, err
	}
	r, found, err := p.one(ctx, p.sql.inspect, values{name: name})
	return r.Record, found, plain(err)
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
				yield(core.Record{}, plain(err))
				return
			}
			for _, r := range page {
				if !yield(r.Record, nil) {
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
func (p *Provider) changeOwn(ctx context.Context, t template, v values) (int64, error) {
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
func (p *Provider) change(ctx context.Context, t template, v values) (reported int64, err error) {
	err = p.connected(ctx, func(conn *sql.Conn) error {
		result, err := conn.ExecContext(ctx, t.with(v))
		if err != nil {
			return err
		}
		reported, err = result.LastInsertId()
		return err
	})
	return reported, err
}

// connectTries is how often a connection may turn out to be gone before anything
// was sent on it.
const connectTries = 3

// connected calls f with a connection. The errors of getting one, which are those
// of the pool, the network and the login, are unsent.
func (p *Provider) connected(ctx context.Context, f func(conn *sql.Conn) error) error {
	for try := 1; ; try++ {
		conn, err := p.db.Conn(ctx)
		if err != nil {
			return unsent{err}
		}
		err = f(conn)
		_ = conn.Close() // it goes back to the pool
		if !errors.Is(err, driver.ErrBadConn) || try == connectTries {
			return err
		}
	}
}

func (p *Provider) one(ctx context.Context, t template, v values) (record, bool, error) {
	records, err := p.query(ctx, t, v)
	if err != nil || len(records) == 0 {
		return record{}, false, err
	}
	return records[0], true, nil
}

func (p *Provider) query(ctx context.Context, t template, v values) (records []record, err error) {
	err = p.connected(ctx, func(conn *sql.Conn) (err error) {
		records = nil
		rows, err := conn.QueryContext(ctx, t.with(v))
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, rows.Close()) }()
		for rows.Next() {
			r, err := scan(rows)
			if err != nil {
				return err
			}
			records = append(records, r)
		}
		return rows.Err()
	})
	return records, err
}

// record is what record.sql lists.
type record struct {
	core.Record
	// readOnly says that the server is in a mode in which only some may write.
	readOnly bool
}

func scan(rows *sql.Rows) (r record, err error) {
	var name, by sql.NullString
	var lockedAt, lockUntil, now int64
	if err := rows.Scan(&name, &by, &lockedAt, &lockUntil, &now, &r.Fence, &r.readOnly); err != nil {
		return r, fmt.Errorf("a record can't be read: %w", err)
	}
	r.Name, r.LockedBy = name.String, by.String
	r.Owner, _ = core.ParseHolder(r.LockedBy)
	r.LockedAt, r.LockedUntil, r.StoreTime = time.UnixMicro(lockedAt).UTC(), time.UnixMicro(lockUntil).UTC(), time.UnixMicro(now).UTC()
	return r, nil
}
