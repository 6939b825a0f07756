package core_test

import (
	"crypto/rand"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/shedbolt/shedbolt/core"
)

func TestHolderRoundTrip(t *testing.T) {
	token := rand.Text()
	for _, label := range []string{"host/4711", "", "a/b/c", "räum", strings.Repeat("x", 228), strings.Repeat("ä", 114)} {
		holder := core.FormatHolder(label, token)
		gotLabel, gotToken := core.ParseHolder(holder)
		if gotLabel != label || gotToken != token {
			t.Errorf("ParseHolder(%q) = %q, %q, want %q and the token", holder, gotLabel, gotToken, label)
		}
	}
}

func TestFormatHolderCutsTheLabelNeverTheToken(t *testing.T) {
	token := rand.Text()
	for _, label := range []string{strings.Repeat("x", 229), strings.Repeat("x", 5000), strings.Repeat("ä", 200), "x" + strings.Repeat("😀", 100)} {
		holder := core.FormatHolder(label, token)
		if len(holder) > 255 || len(holder) < 252 || !utf8.ValidString(holder) {
			t.Errorf("FormatHolder of a label of %d bytes has %d, want at most 255, cut at a character", len(label), len(holder))
		}
		if _, got := core.ParseHolder(holder); got != token {
			t.Errorf("the token of %q was cut", holder)
		}
	}
}

func TestParseHolderOfOthers(t *testing.T) {
	for _, s := range []string{"", "host", "host/", "host/4711", "host/abcdefghijklmnopqrstuvwxyz", "host/" + strings.Repeat("1", 26), "h/" + strings.Repeat("A", 27)} {
		if label, token := core.ParseHolder(s); label != s || token != "" {
			t.Errorf("ParseHolder(%q) = %q, %q, want the whole text and no token", s, label, token)
		}
	}
}
