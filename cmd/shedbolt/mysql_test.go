//go:build unix

package main_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"net/url"
	"os"
	"strings"
	"testing"

	client "github.com/go-sql-driver/mysql"

	"github.com/shedbolt/shedbolt/internal/testenv"
)

// mysqlHost is a host on a MySQL or MariaDB server, with a database of its own.
func mysqlHost(t *testing.T) host {
	t.Helper()
	config, err := client.ParseDSN(testenv.DSN(t, "mysql"))
	if err != nil {
		t.Fatal(err)
	}
	connector, err := client.NewConnector(config)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	t.Cleanup(func() { _ = db.Close() })
	exec := func(statement string) {
		t.Helper()
		if _, err := db.ExecContext(context.Background(), statement); err != nil {
			t.Errorf("%s: %v", statement, err)
		}
	}
	database := "shedbolt_" + strings.ToLower(rand.Text()[:12])
	exec("CREATE DATABASE " + database)
	t.Cleanup(func() { exec("DROP DATABASE " + database) })
	h := newHost(t)
	u := url.URL{Scheme: "mysql", User: url.UserPassword(config.User, config.Passwd), Host: config.Addr, Path: "/" + database}
	h.store = u.String()
	return h
}

func TestMySQL(t *testing.T) {
	h := mysqlHost(t)
	const table = "cli"
	r := h.run("run", "--name", "job", "--at-most", "1m", "--table", table, "--", "touch", "ran")
	if r.code != 69 {
		t.Errorf("without a table: exit code %d, want 69", r.code)
	}
	oneLine(t, r, "run once with --ensure-schema to create the table")
	if r := h.run("run", "--name", "job", "--at-most", "1m", "--table", table, "--ensure-schema", "--", "echo", "hello"); r.code != 0 || r.stdout != "hello\n" {
		t.Fatalf("%+v", r)
	}
	if r := h.run("run", "--name", "job", "--at-most", "1m", "--table", table, "--dry-run", "--", "true"); r.code != 0 || !strings.Contains(r.stdout, "would run") {
		t.Errorf("%+v", r)
	}
	if _, err := os.Stat(h.path("ran")); err == nil {
		t.Error("the command ran without a table")
	}
	u, err := url.Parse(h.store)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword("nobody", "s3cret")
	h.store = u.String()
	r = h.run("run", "--name", "job", "--at-most", "1m", "--", "touch", "ran")
	if r.code != 69 || strings.Contains(r.stderr, "s3cret") {
		t.Errorf("with a wrong password: %+v", r)
	}
	oneLine(t, r, "Access denied")
}

func TestMySQLThreeAtOnceAndKilledHolder(t *testing.T) {
	h := mysqlHost(t)
	if r := h.run("run", "--name", "first", "--at-most", "1m", "--ensure-schema", "--", "true"); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	threeAtOnce(t, h)
	killedHolder(t, h)
}

func TestMySQLURLs(t *testing.T) {
	h := newHost(t)
	for _, url := range []string{"mysql://app:s3cret@host", "mysql://app:s3cret@host/a/b", "mariadb://app:s3cret@host/db?parseTime=x", "mysql://app:s3cret@host:port/db"} {
		h.store = url
		r := h.run("run", "--name", "job", "--at-most", "1m", "--", "true")
		if r.code != 64 || strings.Contains(r.stderr, "s3cret") || !strings.Contains(r.stderr, "--store") {
			t.Errorf("%s: %+v", url, r)
		}
	}
}
