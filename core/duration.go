package core

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// MaxDuration is the longest AtMostFor, AtLeastFor or extension: ten years.
const MaxDuration = 3653 * 24 * time.Hour

// ParseDuration reads a duration in Go's form ("1h30m", "250ms") or in that of
// ISO 8601 which ShedLock's settings use ("PT1H30M", "P1DT2H", "PT0.25S",
// "P2W"); a day is 24 hours. Years and months have no fixed length and are
// refused, as are signs. The error wraps [ErrInvalidDuration].
func ParseDuration(s string) (time.Duration, error) {
	if len(s) > 0 && (s[0] == 'P' || s[0] == 'p') {
		return parseISO(s)
	}
	if strings.HasPrefix(s, "-") || strings.HasPrefix(s, "+") {
		return 0, fmt.Errorf("shedbolt: %w: %q has a sign", ErrInvalidDuration, s)
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, fmt.Errorf("shedbolt: %w: %q is neither like 10m nor like PT10M", ErrInvalidDuration, s)
	}
	return d, nil
}

var isoUnits = []struct {
	letter byte
	time   bool // after the T
	unit   time.Duration
}{
	{'W', false, 7 * 24 * time.Hour},
	{'D', false, 24 * time.Hour},
	{'H', true, time.Hour},
	{'M', true, time.Minute},
	{'S', true, time.Second},
}

func parseISO(s string) (time.Duration, error) {
	bad := func(why string) (time.Duration, error) {
		return 0, fmt.Errorf("shedbolt: %w: %q %s", ErrInvalidDuration, s, why)
	}
	const shape = "is not an ISO 8601 duration like PT10M or P1DT2H"
	rest := strings.ToUpper(s[1:])
	var total time.Duration
	inTime, next, after := false, 0, 0 // after counts the parts behind the T
	for rest != "" {
		if rest[0] == 'T' {
			if inTime {
				return bad(shape)
			}
			inTime, rest = true, rest[1:]
			continue
		}
		n := strings.IndexFunc(rest, func(r rune) bool { return (r < '0' || r > '9') && r != '.' && r != ',' })
		if n <= 0 {
			return bad(shape)
		}
		number, letter := strings.Replace(rest[:n], ",", ".", 1), rest[n]
		rest = rest[n+1:]
		if !inTime && (letter == 'Y' || letter == 'M') {
			return bad("has years or months, whose length varies: use weeks, days or hours")
		}
		at := next
		for at < len(isoUnits) && (isoUnits[at].letter != letter || isoUnits[at].time != inTime) {
			at++
		}
		if at == len(isoUnits) {
			return bad(shape)
		}
		next = at + 1
		part, ok := scale(number, isoUnits[at].unit)
		if !ok {
			return bad(shape)
		}
		if part < 0 || total > math.MaxInt64-part {
			return bad("is too long")
		}
		total += part
		if inTime {
			after++
		}
	}
	if next == 0 || (inTime && after == 0) {
		return bad(shape)
	}
	return total, nil
}

// scale multiplies a decimal number by unit; a fraction is for seconds only, as
// in java.time.Duration. The result is -1 when it is too long.
func scale(number string, unit time.Duration) (time.Duration, bool) {
	whole, fraction, hasFraction := strings.Cut(number, ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		return -1, whole != "" && strings.Trim(whole, "0123456789") == ""
	}
	if n > math.MaxInt64/int64(unit) {
		return -1, true
	}
	d := time.Duration(n) * unit
	if !hasFraction {
		return d, true
	}
	if unit != time.Second || fraction == "" || len(fraction) > 9 {
		return 0, false
	}
	nanos, err := strconv.ParseInt((fraction + "00000000")[:9], 10, 64)
	if err != nil {
		return 0, false
	}
	return d + time.Duration(nanos), true
}

// roundUp gives the smallest multiple of resolution that is at least d.
func roundUp(d, resolution time.Duration) time.Duration {
	if resolution <= 1 {
		return d
	}
	if over := d % resolution; over > 0 {
		d += resolution - over
	}
	return d
}

// checkDuration applies rule R10 to one duration; least is its lowest value.
func checkDuration(what string, d, least time.Duration) error {
	if d < least {
		if least > 0 {
			return fmt.Errorf("shedbolt: %w: %s is %v, it must be more than 0", ErrInvalidDuration, what, d)
		}
		return fmt.Errorf("shedbolt: %w: %s is %v, it must not be negative", ErrInvalidDuration, what, d)
	}
	if d > MaxDuration {
		return fmt.Errorf("shedbolt: %w: %s is %v, more than ten years", ErrInvalidDuration, what, d)
	}
	return nil
}
