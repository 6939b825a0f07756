package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "modernc.org/sqlite" // the embedded default store

	"github.com/shedbolt/shedbolt/core"
	"github.com/shedbolt/shedbolt/providers/postgres"
	"github.com/shedbolt/shedbolt/providers/sqlite"
)

// provider is what every store's provider has.
type provider interface {
	core.Provider
	core.Inspector
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
	}
}

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

func openSQLite(ctx context.Context, o storeOptions) (*openStore, error) {
	if o.table != "" {
		return nil, usageError{"--table", "it is for stores shared with others; the SQLite file is shedbolt's own"}
	}
	file := strings.TrimPrefix(o.url, "sqlite:")
	if rest, ok := strings.CutPrefix(file, "//"); ok {
		if !strings.HasPrefix(rest, "/") {
			return nil, usageError{"--store", "write sqlite:FILE, or sqlite:///PATH with three slashes for an absolute path"}
		}
		file = rest
	}
	if file == "" {
		return nil, usageError{"--store", "sqlite: needs a file"}
	}
	file, err := filepath.Abs(file)
	if err != nil {
		return nil, err
	}
	if o.dryRun {
		if _, err := os.Stat(file); errors.Is(err, os.ErrNotExist) {
			return &openStore{absent: true, close: func() {}}, nil
		}
	} else if err := makeFile(file); err != nil {
		return nil, err
	}
	params := url.Values{"_pragma": {"busy_timeout(5000)", "journal_mode(WAL)"}}
	if o.dryRun {
		params = url.Values{"mode": {"ro"}, "_pragma": {"busy_timeout(5000)"}}
	}
	dsn := url.URL{Scheme: "file", Path: filepath.ToSlash(file), RawQuery: params.Encode()}
	db, err := sql.Open("sqlite", dsn.String())
	if err != nil {
		return nil, err
	}
	p, err := sqlite.New(db)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	s := &openStore{provider: p, close: func() { _ = db.Close() }, embedded: true}
	if o.dryRun {
		var n int
		err := db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = ?", sqlite.DefaultTable).Scan(&n)
		if err != nil {
			s.close()
			return nil, err
		}
		s.absent = n == 0
	}
	return s, nil
}

// makeFile makes the file, for its owner alone, and its folders.
func makeFile(file string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

func openPostgres(ctx context.Context, o storeOptions) (*openStore, error) {
	config, err := pgxpool.ParseConfig(o.url)
	if err != nil {
		if _, ok := errors.AsType[*pgconn.ParseConfigError](err); ok {
			return nil, usageError{"--store", redact(err.Error(), o.url)}
		}
		return nil, err
	}
	// A command may run for hours: no connection is kept for its end.
	config.MaxConns, config.MinConns = 2, 0
	config.MaxConnIdleTime = 10 * time.Second
	config.HealthCheckPeriod = 5 * time.Second
	if config.ConnConfig.RuntimeParams["application_name"] == "" {
		config.ConnConfig.RuntimeParams["application_name"] = "shedbolt"
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	var opts []postgres.Option
	if o.table != "" {
		opts = append(opts, postgres.WithTable(strings.SplitN(o.table, ".", 2)...))
	}
	p, err := postgres.New(pool, opts...)
	if err != nil {
		pool.Close()
		return nil, usageError{"--table", err.Error()}
	}
	return &openStore{provider: p, close: pool.Close}, nil
}

// explain says what to do about an error of the store, in one line and without
// the password of its URL.
func explain(err error, storeURL string) string {
	text := redact(err.Error(), storeURL)
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok && pgErr.Code == "42P01" {
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
