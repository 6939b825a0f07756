package postgres

// Statements are what Acquire and Release send, for comparison with the bare
// driver.
func (p *Provider) Statements() (acquire, release string) { return p.sql.acquire, p.sql.release }
