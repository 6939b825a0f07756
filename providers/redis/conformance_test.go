package redis_test

import (
	"testing"

	"github.com/shedbolt/shedbolt/conformancetest"
	"github.com/shedbolt/shedbolt/internal/redistest"
	"github.com/shedbolt/shedbolt/internal/testenv"
)

func TestConformance(t *testing.T) {
	dsn := testenv.DSN(t, "redis")
	for _, v := range redistest.Variants() {
		t.Run(v.Name, func(t *testing.T) {
			conformancetest.Run(t, redistest.Harness(t, dsn, "", v))
		})
	}
}

// TestConformanceCluster has three masters.
func TestConformanceCluster(t *testing.T) {
	dsn := testenv.DSN(t, "rediscluster")
	for _, v := range redistest.ClusterVariants() {
		t.Run(v.Name, func(t *testing.T) {
			conformancetest.Run(t, redistest.Harness(t, dsn, "", v))
		})
	}
}

// TestConformanceReplica has a primary and a replica of it.
func TestConformanceReplica(t *testing.T) {
	dsn, replica := testenv.DSN(t, "redisreplica"), testenv.DSN(t, "redisreplica_direct")
	for _, v := range redistest.ReplicaVariants() {
		t.Run(v.Name, func(t *testing.T) {
			conformancetest.Run(t, redistest.Harness(t, dsn, replica, v))
		})
	}
}
