package redis

import (
	"strconv"
	"strings"
)

// counterPrefix begins the keys of counters. WithPrefix refuses it, so that no
// lock's key is a counter's.
const counterPrefix = "fence:"

// counter is the key that counts a lock's grants. A script may only use keys of
// one slot, which in a cluster is that of a key's hash tag, or of the key where it
// has none.
func counter(key string) string {
	if _, tagged := hashTag(key); tagged {
		return counterPrefix + key // the first tag is the same one
	}
	if !strings.Contains(key, "}") {
		return counterPrefix + "{" + key + "}"
	}
	// A brace that closes nothing would end that tag too early. Some number of
	// the same slot does as well; each client finds the same one.
	want := slot(key)
	for n := 0; ; n++ {
		if number := strconv.Itoa(n); slot(number) == want {
			return counterPrefix + "{" + number + "}" + key
		}
	}
}

// hashTag is the part of a key that decides its slot, as the cluster
// specification says: what is between the first opening brace and the first closing
// one after it, unless that is nothing; then it is the whole key.
func hashTag(key string) (tag string, tagged bool) {
	if _, after, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(after, "}"); ok && tag != "" {
			return tag, true
		}
	}
	return key, false
}

// slot is a key's hash slot: CRC-16/XMODEM modulo 16384.
func slot(key string) uint16 {
	tag, _ := hashTag(key)
	var crc uint16
	for _, b := range []byte(tag) {
		crc ^= uint16(b) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return crc % 16384
}

// pattern matches the keys that begin with a text, for SCAN.
func pattern(prefix string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(prefix) + "*"
}
