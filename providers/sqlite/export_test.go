package sqlite

// Now is the clock in the statements' SQL.
var Now = text("sql/now.sql")

// Statements are what Acquire and Release send, for comparison with the bare
// driver.
func (p *Provider) Statements() (inspect, acquire, release string) {
	return p.sql.inspect, p.sql.acquire, p.sql.release
}
