package storeclock

import "time"

// WithWall replaces how far the wall clock went between two readings of the local
// clock: a time.Time can't be made whose two clocks disagree.
func WithWall(wall func(from, to time.Time) time.Duration) Option {
	return func(c *Clock) { c.wall = wall }
}
