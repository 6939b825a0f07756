//go:build unix

package main_test

import (
	"crypto/rand"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/shedbolt/shedbolt/internal/testenv"
)

// redisHost is a host on a Redis or Valkey server, with keys of its own. They
// expire.
func redisHost(t *testing.T) host {
	t.Helper()
	h := newHost(t)
	u, err := url.Parse(testenv.DSN(t, "redis"))
	if err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	query.Set("environment", strings.ToLower(rand.Text()[:12]))
	u.RawQuery = query.Encode()
	h.store = u.String()
	return h
}

func TestRedis(t *testing.T) {
	h := redisHost(t)
	if r := h.run("run", "--name", "job", "--at-most", "1m", "--", "sh", "-c", "echo fence:$SHEDBOLT_FENCE"); r.code != 0 || r.stdout != "fence:\n" {
		t.Fatalf("%+v", r)
	}
	if r := h.run("run", "--name", "job", "--at-most", "1m", "--dry-run", "--", "true"); r.code != 0 || !strings.Contains(r.stdout, "would run") {
		t.Errorf("%+v", r)
	}
	h.store += "&fencing=true"
	for _, want := range []string{"fence:1\n", "fence:2\n"} {
		if r := h.run("run", "--name", "counted", "--at-most", "1m", "--", "sh", "-c", "echo fence:$SHEDBOLT_FENCE"); r.code != 0 || r.stdout != want {
			t.Errorf("%+v, want %q", r, want)
		}
	}
	u, err := url.Parse(h.store)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword("nobody", "s3cret")
	h.store = u.String()
	r := h.run("run", "--name", "job", "--at-most", "1m", "--", "touch", "ran")
	if r.code != 69 || strings.Contains(r.stderr, "s3cret") {
		t.Errorf("with a wrong password: %+v", r)
	}
	oneLine(t, r, "WRONGPASS")
	if _, err := os.Stat(h.path("ran")); err == nil {
		t.Error("the command ran without a lock")
	}
}

func TestRedisThreeAtOnceAndKilledHolder(t *testing.T) {
	h := redisHost(t)
	threeAtOnce(t, h)
	killedHolder(t, h)
}

func TestRedisURLs(t *testing.T) {
	h := newHost(t)
	for _, url := range []string{"redis://:s3cret@host/db", "redis://:s3cret@host:port", "redis://:s3cret@host?fencing=perhaps", "rediss://:s3cret@host?prefix=", "redis://:s3cret@host?unknown=1"} {
		h.store = url
		r := h.run("run", "--name", "job", "--at-most", "1m", "--", "true")
		if r.code != 64 || strings.Contains(r.stderr, "s3cret") || !strings.Contains(r.stderr, "--store") {
			t.Errorf("%s: %+v", url, r)
		}
	}
}
