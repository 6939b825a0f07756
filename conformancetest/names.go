package conformancetest

import (
	"errors"
	"strings"

	"github.com/shedbolt/shedbolt/core"
)

var nameCases = []Case{
	{
		Area: "names", Name: "length", Rules: "R8",
		Check: "1 to 64 code points are accepted, whatever their size in bytes; 0, 65, 255 and 10,000 are refused before any I/O", run: nameLength,
	},
	{
		Area: "names", Name: "long_name_never_truncated", Rules: "R8",
		Check: "two names of 64 code points that differ in the last are two locks; two of 65 with a common beginning are refused", run: longNameNeverTruncated,
	},
	{
		Area: "names", Name: "distinct", Rules: "R8",
		Check: "names that differ in case, accents, normal form, path, braces, quotes or inner blanks are all held at once", run: distinctNames,
	},
	{
		Area: "names", Name: "refused", Rules: "R8",
		Check: "blanks at the ends, control characters and invalid UTF-8 are ErrInvalidName, before any I/O", run: refusedNames,
	},
}

// fill makes a name of n code points that no other case uses, ending in copies
// of r.
func (e *env) fill(r string, n int) string {
	name := e.name()
	return name + strings.Repeat(r, n-len(name))
}

func nameLength(e *env) {
	for _, name := range []string{e.fill("x", 64), e.fill("ä", 64), e.fill("😀", 64)} {
		g := e.must(e.a, claim(name, long))
		e.refused(e.b, name, "a name of 64 code points is held")
		e.release(e.a, g, 0)
	}
	one := e.must(e.a, claim("Z", e.short()))
	e.release(e.a, one, 0)
	e.refusesNames("", e.fill("x", 65), e.fill("ä", 65), e.fill("😀", 65), strings.Repeat("x", 255), strings.Repeat("x", 10000))
}

func (e *env) refusesNames(names ...string) {
	e.Helper()
	count := &counting{Provider: e.a}
	l := e.locker(count)
	for _, name := range names {
		if _, err := l.TryLock(e.ctx, core.Lock{Name: name, AtMostFor: long}); !errors.Is(err, core.ErrInvalidName) {
			e.Errorf("TryLock of %.70q (%d bytes) = %v, want ErrInvalidName", name, len(name), err)
		}
	}
	if n := count.calls.Load(); n > 0 {
		e.Errorf("the store was asked %d times about invalid names", n)
	}
}

func longNameNeverTruncated(e *env) {
	stem := e.fill("x", 63)
	e.apart(stem+"a", stem+"b")
	stem = e.fill("ä", 63)
	e.apart(stem+"a", stem+"b")
	stem = e.fill("y", 64)
	e.refusesNames(stem+"a", stem+"b")
	if at := e.peek(stem); at.Found {
		e.Errorf("a record was stored for names that are too long: %s", at.Raw)
	}
}

// apart holds all names at once, through alternating clients, and frees them.
func (e *env) apart(names ...string) {
	e.Helper()
	var grants []core.Grant
	for i, name := range names {
		p := []core.Provider{e.a, e.b}[i%2]
		g, err := p.Acquire(e.ctx, claim(name, long))
		if err != nil {
			e.Errorf("Acquire of %q while %d others are held: %v", name, len(grants), err)
			continue
		}
		if at := e.peek(name); !at.Found || (at.LockedBy != "" && !strings.Contains(at.LockedBy, g.Token)) {
			e.Errorf("the record of %q is not this grant's: %s", name, at.Raw)
		}
		grants = append(grants, g)
	}
	for _, g := range grants {
		e.release(e.a, g, 0)
	}
}

func distinctNames(e *env) {
	id := e.name()
	var names []string
	for _, s := range []string{
		"job", "JOB", "Job", "jób", "jo\u0301b", "job.", "jo", "j", "job\u200b",
		"a/b", "a", "a/", "/a", "..", ".", "../a", "a:b", "{a}", "a%2Fb", `a\b`, "a'b", `a"b`, "a;b", "$a", "a b", "a  b",
		"a_b", "a%b", "a*b", "a?b", "a[b", "a\u00a0b", "straße", "strasse", "i", "ı", "İ", "K", "\u212a", "Å", "\u212b",
		"null", "NULL", "0", "00", "true", "-- a", "/* a */", "a#b", "@a", "~a", "^a", "a\u2028b",
	} {
		// The unique part comes last, so that what differs is at the beginning,
		// where a path, a key prefix or a truncation would act, and once first.
		names = append(names, s+id, id+s)
	}
	e.apart(names...)
}

func refusedNames(e *env) {
	e.refusesNames(" a", "a ", "\ta", "a\t", "a\n", "\na", "a\nb", "a\x00", "a\x00b", "a\x7fb", "a\u0085b", "\u00a0a", "a\u3000", "a\xff", "\xc0\xaf", "\xed\xa0\x80")
}
