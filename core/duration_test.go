package core_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/shedbolt/shedbolt/core"
)

func TestParseDuration(t *testing.T) {
	const day = 24 * time.Hour
	for s, want := range map[string]time.Duration{
		"10m":            10 * time.Minute,
		"1h30m":          90 * time.Minute,
		"1.5s":           1500 * time.Millisecond,
		"0":              0,
		"PT10M":          10 * time.Minute,
		"pt10m":          10 * time.Minute,
		"P1DT2H":         day + 2*time.Hour,
		"P2W":            14 * day,
		"P1W2DT3H4M5S":   9*day + 3*time.Hour + 4*time.Minute + 5*time.Second,
		"PT0.25S":        250 * time.Millisecond,
		"PT0,25S":        250 * time.Millisecond,
		"PT1.123456789S": time.Second + 123456789,
		"PT0S":           0,
		"P1D":            day,
		"PT90M":          90 * time.Minute,
		"P106751D":       106751 * day,
	} {
		if got, err := core.ParseDuration(s); err != nil || got != want {
			t.Errorf("ParseDuration(%q) = %v, %v, want %v", s, got, err, want)
		}
	}
	for s, why := range map[string]string{
		"":                       "neither",
		"10":                     "neither",
		"10 minutes":             "neither",
		"-10m":                   "sign",
		"+10m":                   "sign",
		"P":                      "ISO 8601",
		"PT":                     "ISO 8601",
		"P1DT":                   "ISO 8601",
		"P1":                     "ISO 8601",
		"PD":                     "ISO 8601",
		"P1H":                    "ISO 8601",
		"PT1D":                   "ISO 8601",
		"PT1M1H":                 "ISO 8601",
		"PT1M1M":                 "ISO 8601",
		"PTT1M":                  "ISO 8601",
		"PT-1M":                  "ISO 8601",
		"PT1.5M":                 "ISO 8601",
		"PT1.S":                  "ISO 8601",
		"PT.5S":                  "ISO 8601",
		"PT1.2.3S":               "ISO 8601",
		"PT1.1234567891S":        "ISO 8601",
		"P1Y":                    "years or months",
		"P1M":                    "years or months",
		"P106752D":               "too long",
		"P9223372036854775807W":  "too long",
		"P99999999999999999999D": "too long",
		"P106751DT23H47M17S":     "too long",
		"PT\u0661S":              "ISO 8601",
	} {
		d, err := core.ParseDuration(s)
		if !errors.Is(err, core.ErrInvalidDuration) || !strings.Contains(err.Error(), why) {
			t.Errorf("ParseDuration(%q) = %v, %v, want ErrInvalidDuration that says %q", s, d, err, why)
		}
	}
}

func FuzzParseDuration(f *testing.F) {
	for _, s := range []string{"10m", "PT10M", "P1DT2H", "P2W", "PT0.25S", "P9999999999999999D", "PT1.000000001S"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, err := core.ParseDuration(s)
		if err == nil && d < 0 {
			t.Errorf("ParseDuration(%q) = %v, negative", s, d)
		}
		if err != nil && !errors.Is(err, core.ErrInvalidDuration) {
			t.Errorf("ParseDuration(%q) = %v, want ErrInvalidDuration", s, err)
		}
		if err != nil {
			return
		}
		// Go's own form of the result must read back as the same duration.
		if again, err := core.ParseDuration(d.String()); err != nil || again != d {
			t.Errorf("ParseDuration(%q) = %v, which reads back as %v, %v", s, d, again, err)
		}
	})
}

func TestLockCheck(t *testing.T) {
	good := core.Lock{Name: "job", AtMostFor: time.Minute, AtLeastFor: time.Second}
	if err := good.Check(); err != nil {
		t.Fatalf("Check of %+v: %v", good, err)
	}
	for _, c := range []struct {
		what string
		mod  func(*core.Lock)
		want error
	}{
		{"no name", func(k *core.Lock) { k.Name = "" }, core.ErrInvalidName},
		{"AtMostFor 0", func(k *core.Lock) { k.AtMostFor = 0; k.AtLeastFor = 0 }, core.ErrInvalidDuration},
		{"AtMostFor negative", func(k *core.Lock) { k.AtMostFor = -1; k.AtLeastFor = 0 }, core.ErrInvalidDuration},
		{"AtMostFor 200 years", func(k *core.Lock) { k.AtMostFor = 200 * 365 * 24 * time.Hour }, core.ErrInvalidDuration},
		{"AtLeastFor negative", func(k *core.Lock) { k.AtLeastFor = -1 }, core.ErrInvalidDuration},
		{"AtLeastFor above AtMostFor", func(k *core.Lock) { k.AtLeastFor = k.AtMostFor + 1 }, core.ErrInvalidDuration},
	} {
		k := good
		c.mod(&k)
		if err := k.Check(); !errors.Is(err, c.want) {
			t.Errorf("%s: Check = %v, want %v (R8, R10)", c.what, err, c.want)
		}
	}
	if err := (core.Lock{Name: "x", AtMostFor: core.MaxDuration, AtLeastFor: core.MaxDuration}).Check(); err != nil {
		t.Errorf("the longest allowed durations are refused: %v", err)
	}
}
