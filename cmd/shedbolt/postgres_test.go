//go:build unix

package main_test

import (
	"context"
	"crypto/rand"
	"io"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/shedbolt/shedbolt/internal/testenv"
)

// postgresHost is a host on a PostgreSQL server, with a table of its own.
func postgresHost(t *testing.T) (h host, table string) {
	t.Helper()
	h = newHost(t)
	h.store = testenv.DSN(t, "postgres")
	table = "public.cli_" + strings.ToLower(rand.Text()[:10])
	t.Cleanup(func() {
		conn, err := pgx.Connect(context.Background(), h.store)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close(context.Background()) }()
		if _, err := conn.Exec(context.Background(), "DROP TABLE IF EXISTS "+table+", shedlock"); err != nil {
			t.Error(err)
		}
	})
	return h, table
}

func TestPostgres(t *testing.T) {
	h, table := postgresHost(t)
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
}

func TestPostgresThreeAtOnceAndKilledHolder(t *testing.T) {
	h, _ := postgresHost(t)
	if r := h.run("run", "--name", "first", "--at-most", "1m", "--ensure-schema", "--", "true"); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	threeAtOnce(t, h)
	killedHolder(t, h)
}

// silentServer accepts connections and says nothing.
func silentServer(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { // reads until the other side gives up
				_, _ = io.Copy(io.Discard, c)
				_ = c.Close()
			}()
		}
	}()
	return l.Addr().String()
}
