package backends_test

import (
	"testing"

	"github.com/shedbolt/shedbolt/conformancetest"
	"github.com/shedbolt/shedbolt/conformancetest/backends"
	"github.com/shedbolt/shedbolt/internal/redistest"
	"github.com/shedbolt/shedbolt/internal/testenv"
)

func TestRedis(t *testing.T) {
	eachServer(t, func(t *testing.T, s *backends.Server) {
		t.Helper()
		runRedis(t, s, redistest.Variants())
	})
}

func TestRedisCluster(t *testing.T) {
	eachServer(t, func(t *testing.T, s *backends.Server) {
		t.Helper()
		runRedis(t, s, redistest.ClusterVariants())
	})
}

func TestRedisReplica(t *testing.T) {
	eachServer(t, func(t *testing.T, s *backends.Server) {
		t.Helper()
		if s.Address.Direct == "" {
			t.Fatalf("%s names a server with a replica, and %s not the replica", s.Backend.DSNVar(), testenv.DirectVar(s.Backend.Name))
		}
		runRedis(t, s, redistest.ReplicaVariants())
	})
}

func runRedis(t *testing.T, s *backends.Server, all []redistest.Variant) {
	t.Helper()
	for _, v := range variants(t, s.Backend, all, func(v redistest.Variant) string { return v.Name }) {
		t.Run(v.Name, func(t *testing.T) {
			conformancetest.Run(t, redistest.Harness(t, s.Address.DSN, s.Address.Direct, v))
		})
	}
}
