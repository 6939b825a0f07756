package core_test

import (
	"errors"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/shedbolt/shedbolt/core"
)

func TestCheckName(t *testing.T) {
	for _, name := range []string{
		"a", "nightly-report", "a/b", "..", ".", "{a}", "$a", "a b", `a\b`, "a'b", `a"b`, "a;b", "a%2Fb", "jób", "jo\u0301b",
		strings.Repeat("x", 64), strings.Repeat("ä", 64), strings.Repeat("😀", 64), "\u200bzero-width",
	} {
		if err := core.CheckName(name); err != nil {
			t.Errorf("CheckName(%q) = %v, want nil (R8)", name, err)
		}
	}
	for name, why := range map[string]string{
		"":                         "empty",
		strings.Repeat("x", 65):    "65 characters",
		strings.Repeat("😀", 65):    "longer than 64",
		strings.Repeat("x", 10000): "longer than 64",
		"a\tb":                     "control",
		"a\x00b":                   "control",
		"a\u0085b":                 "control",
		"a\x7f":                    "control",
		" a":                       "white space",
		"a ":                       "white space",
		"\u00a0a":                  "white space",
		"a\u2003":                  "white space",
		"a\n":                      "control",
		"a\xff":                    "UTF-8",
		"\xed\xa0\x80":             "UTF-8",
	} {
		err := core.CheckName(name)
		if !errors.Is(err, core.ErrInvalidName) || !strings.Contains(err.Error(), why) {
			t.Errorf("CheckName(%.20q) = %v, want ErrInvalidName that says %q (R8)", name, err, why)
		}
		if err != nil && len(err.Error()) > 400 {
			t.Errorf("CheckName(%.20q): the error has %d bytes; it must stay one readable line", name, len(err.Error()))
		}
	}
}

func FuzzCheckName(f *testing.F) {
	f.Add("job")
	f.Add(" job")
	f.Add(strings.Repeat("ä", 65))
	f.Fuzz(func(t *testing.T, name string) {
		want := utf8.ValidString(name) && name != "" && utf8.RuneCountInString(name) <= 64 &&
			!strings.ContainsFunc(name, unicode.IsControl) && strings.TrimSpace(name) == name
		if got := core.CheckName(name) == nil; got != want {
			t.Errorf("CheckName(%q) accepts: %v, want %v (R8)", name, got, want)
		}
	})
}
