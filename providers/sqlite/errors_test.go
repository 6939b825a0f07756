package sqlite

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/shedbolt/shedbolt/core"
)

type coded int

func (c coded) Error() string { return fmt.Sprint("code ", int(c)) }
func (c coded) Code() int     { return int(c) }

func TestClassify(t *testing.T) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for _, test := range []struct {
		what            string
		ctx             context.Context
		err             error
		busy, uncertain bool
	}{
		{"busy", t.Context(), coded(5), true, false},
		{"busy, snapshot", t.Context(), coded(5 | 2<<8), true, false},
		{"table locked", t.Context(), coded(6), true, false},
		{"busy, by its text", t.Context(), errors.New("database is locked"), true, false},
		{"table locked, by its text", t.Context(), errors.New("database table is locked: shedlock"), true, false},
		{"busy, and the context has ended", ended, coded(5), true, false},
		{"read-only", t.Context(), coded(8), false, false},
		{"no table", t.Context(), errors.New("no such table: shedlock"), false, false},
		{"interrupted", t.Context(), coded(9), false, true},
		{"interrupted, by its text", t.Context(), errors.New("interrupted"), false, true},
		{"a commit's fsync", t.Context(), coded(10 | 4<<8), false, true},
		{"the context has ended", ended, context.Canceled, false, true},
	} {
		if got := busy(test.err); got != test.busy {
			t.Errorf("%s: busy: %v, want %v", test.what, got, test.busy)
		}
		err := classify(test.ctx, test.err)
		if got := errors.Is(err, core.ErrUncertain); got != test.uncertain || !errors.Is(err, test.err) {
			t.Errorf("%s: %v, uncertain: %v, want %v", test.what, err, got, test.uncertain)
		}
	}
}
