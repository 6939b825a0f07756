// Package redis keeps locks in keys of Redis or Valkey, with go-redis v9. Import one
// of the two packages under another name, for instance
//
//	import (
//		"github.com/redis/go-redis/v9"
//		redislock "github.com/shedbolt/shedbolt/providers/redis"
//	)
//
// # Requirements
//
// Redis 5 or later, or Valkey, with Lua scripts, and github.com/redis/go-redis/v9. The
// user needs the keys, and the commands SET, GET, DEL, PEXPIREAT, PEXPIRETIME, PTTL, TIME,
// EVAL, EVALSHA and SCAN; for [WithFencing] INCR, and for [WithWait] WAIT. A *redis.Client,
// with or without Sentinel, a *redis.ClusterClient and a *redis.Ring will do.
//
// # Schema
//
// One key for each lock, as ShedLock makes it, so that services on the JVM can share
// it:
//
//	<prefix>:<environment>:<name>   such as job-lock:default:report
//	ADDED:<time>@<holder>           such as ADDED:2026-03-29T00:59:50.000Z@host/123/ABC…
//
// The time is the server's, in UTC, with three digits. [WithPrefix] and
// [WithEnvironment] change the key. A key that is free does not exist: unlike other
// stores, Redis keeps no record of a lock's last holder. With [WithFencing] there is a
// second key for each name, with the number of grants and without expiry:
// fence:{<key>}, or another key of the same cluster slot where the name has braces.
//
// A service on the JVM must use ShedLock's safeUpdate; otherwise it deletes or
// overwrites a lock that is not its own any more when it releases late.
//
// # Clock
//
// The server's, which expires the keys; in a cluster that of the key's master.
// Resolution: 1 ms.
//
// # Guarantees and limits
//
// Acquire, Release and Extend are one round trip each, by a script with one lock's
// keys. The first use of a script on a server needs a second, and so does the first
// one after a restart or SCRIPT FLUSH. A refused attempt changes nothing and answers with
// the holder. Every command that makes a lock's key sets its expiry too, so no crash
// leaves one without.
//
// Redis replicates asynchronously. When a master fails before its replica has
// received a lock, the promoted replica does not know it, and another client can be
// granted the same lock: two holders, until the first one's at-most time is over.
// Fencing numbers have the same gap. [WithWait] makes Acquire and Extend wait for
// replicas and fail without them, which makes this unlikely, but Redis promotes
// replicas by other criteria as well, so it is not excluded. Where two holders must be
// impossible, use a store that commits to a majority, or a single server.
//
// Whether locks survive a restart is a setting of the server (appendonly and
// appendfsync); core.CapPersistent is therefore not declared. An eviction policy such
// as allkeys-lru can remove locks: use noeviction or one of the volatile-ttl
// kind only where memory does not run out.
//
// go-redis repeats requests by itself (MaxRetries) and, unless ContextTimeoutEnabled is
// set, does not end a read with its context but with ReadTimeout. Neither harms: a
// repeated claim recognises itself, and core leaves a call that does not return. With
// ContextTimeoutEnabled calls end sooner.
//
// # Errors
//
// Errors of go-redis come through as they are, such as READONLY from a replica,
// NOREPLICAS, OOM, NOPERM, NOAUTH, WRONGPASS, LOADING, CLUSTERDOWN, or WRONGTYPE when the key is
// used for something else. None is core.ErrHeld.
//
// # Client ownership
//
// The client belongs to the caller, who closes it.
package redis
