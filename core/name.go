package core

import (
	"fmt"
	"unicode"
	"unicode/utf8"
)

// MaxNameLength is the longest lock name, in Unicode code points.
const MaxNameLength = 64

// CheckName reports whether name may name a lock (rule R8). The error wraps
// [ErrInvalidName] and says which part of the rule was broken.
func CheckName(name string) error {
	if name == "" {
		return fmt.Errorf("shedbolt: %w: it is empty, want 1 to %d characters", ErrInvalidName, MaxNameLength)
	}
	// Bounds the work, and the text of the error, for absurdly long input: no
	// name of 64 code points is longer than 256 bytes.
	if len(name) > MaxNameLength*utf8.UTFMax {
		return fmt.Errorf("shedbolt: %w: %q… is longer than %d characters", ErrInvalidName, name[:16], MaxNameLength)
	}
	if !utf8.ValidString(name) {
		return fmt.Errorf("shedbolt: %w: %q is not valid UTF-8", ErrInvalidName, name)
	}
	if n := utf8.RuneCountInString(name); n > MaxNameLength {
		return fmt.Errorf("shedbolt: %w: %q has %d characters, at most %d are allowed", ErrInvalidName, name, n, MaxNameLength)
	}
	for _, r := range name {
		if unicode.IsControl(r) {
			return fmt.Errorf("shedbolt: %w: %q has a control character", ErrInvalidName, name)
		}
	}
	first, _ := utf8.DecodeRuneInString(name)
	last, _ := utf8.DecodeLastRuneInString(name)
	if unicode.IsSpace(first) || unicode.IsSpace(last) {
		return fmt.Errorf("shedbolt: %w: %q begins or ends with white space", ErrInvalidName, name)
	}
	return nil
}
