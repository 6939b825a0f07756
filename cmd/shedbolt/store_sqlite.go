package main

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	_ "modernc.org/sqlite" // the embedded default store

	"github.com/shedbolt/shedbolt/providers/sqlite"
)

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
