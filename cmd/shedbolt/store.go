package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/shedbolt/shedbolt/core"
)

// provider is what every store's provider has.
type provider interface {
	core.Provider
	core.Inspector
}

// schemaMaker is what a store's provider has that keeps locks in a table.
type schemaMaker interface {
	EnsureSchema(ctx context.Context) error
}

// openStore is a store that was opened.
type openStore struct {
	provider
	close func()
	// embedded says that the store's table is the command's own, so that it is
	// made without being asked for.
	embedded bool
	// absent says that there is no store yet, and everything is free: it is set
	// by a dry run, which makes none.
	absent bool
}

// storeOptions are the flags that concern the store.
type storeOptions struct {
	url    string // as given; empty for the default store
	table  string
	dryRun bool
}

// tableParts is the table as a provider's option takes it.
func (o storeOptions) tableParts() []string { return strings.SplitN(o.table, ".", 2) }

// scheme is one kind of store.
type scheme struct {
	names []string
	form  string
	open  func(ctx context.Context, o storeOptions) (*openStore, error)
}

func schemes() []scheme {
	return []scheme{
		{[]string{"sqlite"}, "sqlite:FILE", openSQLite},
		{[]string{"postgres", "postgresql"}, "postgres://USER@HOST/DATABASE", openPostgres},
		{[]string{"mysql", "mariadb"}, "mysql://USER@HOST/DATABASE", openMySQL},
		{[]string{"redis", "rediss"}, "redis://HOST", openRedis},
	}
}

// idleTime is how long clients keep a connection: a command may run for hours, and
// none is kept for its end.
const idleTime = 10 * time.Second

// usageError is an error in what the user wrote, about one flag.
type usageError struct{ flag, text string }

func (e usageError) Error() string { return e.flag + ": " + e.text }

func open(ctx context.Context, o storeOptions) (*openStore, error) {
	if o.url == "" {
		file, err := defaultStore()
		if err != nil {
			return nil, err
		}
		o.url = "sqlite:" + file
	}
	name, _, found := strings.Cut(o.url, ":")
	var forms []string
	for _, s := range schemes() {
		for _, n := range s.names {
			if found && n == name {
				return s.open(ctx, o)
			}
		}
		forms = append(forms, s.form)
	}
	// Not the URL: a mistake in its first word would show the password.
	return nil, usageError{"--store", "unknown kind of store; known: " + strings.Join(forms, ", ")}
}

// defaultStore is a file in the user's state directory.
func defaultStore() (string, error) {
	state := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(state) { // the XDG specification says to ignore a relative one
		home, err := os.UserHomeDir()
		if err != nil {
			return "", usageError{"--store", "there is no home directory for the default store; give one, or set SHEDBOLT_STORE"}
		}
		state = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(state, "shedbolt", "locks.db"), nil
}

// fencingParam takes the parameter "fencing" out of a URL's.
func fencingParam(query url.Values) (bool, error) {
	value := query.Get("fencing")
	query.Del("fencing")
	if value == "" {
		return false, nil
	}
	on, err := strconv.ParseBool(value)
	if err != nil {
		return false, fmt.Errorf("the parameter fencing is true or false, not %q", value)
	}
	return on, nil
}

// explain says what to do about an error of the store, in one line and without
// the password of its URL.
func explain(err error, storeURL string) string {
	text := redact(err.Error(), storeURL)
	if missingPostgresTable(err) || missingMySQLTable(err) {
		text += "; run once with --ensure-schema to create the table"
	}
	return text
}

// redact takes the password of a store's URL out of a text.
func redact(text, storeURL string) string {
	const mask = "xxxxx"
	for _, secret := range secrets(storeURL) {
		text = strings.ReplaceAll(text, secret, mask)
	}
	return text
}

// secrets finds what may be a password in a URL, however malformed.
func secrets(storeURL string) []string {
	var found []string
	add := func(s string) {
		if s == "" {
			return
		}
		found = append(found, s)
		if plain, err := url.PathUnescape(s); err == nil && plain != s {
			found = append(found, plain)
		}
	}
	if _, rest, ok := strings.Cut(storeURL, "://"); ok {
		if at := strings.LastIndexByte(rest, '@'); at >= 0 {
			if _, password, ok := strings.Cut(rest[:at], ":"); ok {
				add(password)
			}
		}
	}
	for rest := storeURL; ; {
		var ok bool
		if _, rest, ok = strings.Cut(rest, "password="); !ok { // sslpassword= too
			return found
		}
		end := strings.IndexAny(rest, "& ")
		if end < 0 {
			end = len(rest)
		}
		add(rest[:end])
	}
}

// storeOf says which store an option names, without its password.
func storeOf(o storeOptions) string {
	if o.url == "" {
		return "the default store"
	}
	return fmt.Sprintf("store %s", redact(o.url, o.url))
}
