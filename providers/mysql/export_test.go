package mysql

// Statements are those of a winner on bare database/sql: one that tells what
// becomes of a claim in one trip, or else one that reads and one that takes; and
// one that releases.
func (p *Provider) Statements(name, holder string, micros int64) (claim []string, release string) {
	v := values{name: name, holder: holder, micros: micros}
	switch f := p.fit.Load(); f.oneTrip {
	case block:
		claim = []string{p.sql.block.with(v)}
	case batch:
		claim = []string{p.sql.batch.with(v)}
	default:
		claim = []string{p.sql.read.with(v), p.sql.take.with(v)}
	}
	v.micros = 0
	return claim, p.sql.release.with(v)
}
