package storeclock

import "time"

// Interval says that a point in time is not before Earliest and not after Latest.
type Interval struct{ Earliest, Latest time.Time }

// Truncated is the interval of a clock's reading that was cut to whole steps, as
// HTTP's Date is to seconds.
func Truncated(reading time.Time, step time.Duration) Interval {
	return Interval{Earliest: reading, Latest: reading.Add(step)}
}

// Width is the distance between the ends.
func (i Interval) Width() time.Duration { return i.Latest.Sub(i.Earliest) }

// Widen moves both ends outwards by d.
func (i Interval) Widen(d time.Duration) Interval {
	return Interval{Earliest: i.Earliest.Add(-d), Latest: i.Latest.Add(d)}
}

// intersect is what both say; ok is false if they contradict each other.
func (i Interval) intersect(other Interval) (both Interval, ok bool) {
	both = i
	if other.Earliest.After(both.Earliest) {
		both.Earliest = other.Earliest
	}
	if other.Latest.Before(both.Latest) {
		both.Latest = other.Latest
	}
	return both, !both.Latest.Before(both.Earliest)
}
