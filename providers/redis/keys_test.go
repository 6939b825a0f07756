package redis

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// The cluster specification's own example, and tags.
func TestSlot(t *testing.T) {
	for key, want := range map[string]uint16{
		"123456789": 0x31C3 % 16384, // the CRC's check value
		"foo":       12182,
		"{foo}bar":  12182,
		"a{foo}{b}": 12182,
	} {
		if got := slot(key); got != want {
			t.Errorf("slot(%q) = %d, want %d", key, got, want)
		}
	}
	for _, key := range []string{"foo{}{bar}", "foo{{bar", "foo}bar", "{}foo"} {
		if tag, tagged := hashTag(key); tagged || tag != key {
			t.Errorf("hashTag(%q) = %q, %v; want all of it", key, tag, tagged)
		}
	}
	if tag, _ := hashTag("foo{{bar}}zap"); tag != "{bar" {
		t.Errorf("the tag of foo{{bar}}zap is %q", tag)
	}
}

// A counter is in the slot of its lock, is no other lock's counter, and no lock.
func TestCounterKeys(t *testing.T) {
	const alphabet = "{{{}}}ab:é"
	letters := []rune(alphabet)
	random := rand.New(rand.NewPCG(1, 2))
	counters := map[string]string{}
	for range 20_000 {
		var name strings.Builder
		for range 1 + random.IntN(12) {
			name.WriteRune(letters[random.IntN(len(letters))])
		}
		key := "job-lock:default:" + name.String()
		c := counter(key)
		if slot(c) != slot(key) {
			t.Fatalf("the counter of %q is %q, in slot %d and not in %d", key, c, slot(c), slot(key))
		}
		if other, taken := counters[c]; taken && other != key {
			t.Fatalf("%q and %q have the same counter %q", key, other, c)
		}
		counters[c] = key
		if !strings.HasPrefix(c, counterPrefix) {
			t.Fatalf("the counter %q may be a lock's key", c)
		}
	}
}

func TestPattern(t *testing.T) {
	if got, want := pattern(`a*?[b]\c:`), `a\*\?\[b\]\\c:*`; got != want {
		t.Errorf("pattern = %q, want %q", got, want)
	}
}
