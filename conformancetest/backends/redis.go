package backends

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/testcontainers/testcontainers-go"
)

const (
	redisModule = "github.com/redis/go-redis/v9"
	redisPort   = "6379"
)

func redisBackend(name, official, lab, clock string) Backend {
	return Backend{
		Name: name, Provider: "redis", Known: "redis", Client: redisModule, Test: "TestRedis",
		Command:  "^TestRedis",
		Variants: []string{"plain", "fencing"},
		Server: &Recipe{
			Official: official, Lab: lab, Clock: clock,
			start:   startRedis,
			version: redisVersion,
			now:     redisNow,
		},
	}
}

// redisClusterBackend is a cluster of three masters.
func redisClusterBackend() Backend {
	return Backend{
		Name: "rediscluster", Provider: "redis", Known: "rediscluster", Run: "^TestConformanceCluster$",
		Client: redisModule, Test: "TestRedisCluster",
		Server: &Recipe{
			Official: "redis:8", Lab: "redis:8",
			start:   startRedisCluster,
			version: redisClusterVersion,
		},
	}
}

// redisReplicaBackend is a primary, whose replica is what Address.Direct names.
func redisReplicaBackend() Backend {
	return Backend{
		Name: "redisreplica", Provider: "redis", Known: "redisreplica", Run: "^TestConformanceReplica$",
		Client: redisModule, Test: "TestRedisReplica",
		Server: &Recipe{
			Official: "redis:8", Lab: "redis:8",
			start:   startRedisReplica,
			version: redisReplicaVersion,
		},
	}
}

// redisOptions are those of all servers: the data is not worth a file.
func redisOptions(password string) []string {
	return []string{"--requirepass", password, "--masterauth", password, "--save", "", "--appendonly", "no"}
}

func startRedis(s *starting) (Address, error) {
	password := rand.Text()
	c, endpoint, err := s.run(s.image, redisPort, testcontainers.WithCmd(redisOptions(password)...))
	if err != nil {
		return Address{}, err
	}
	a := Address{DSN: redisURL(password, endpoint)}
	return a, s.await(c, func(ctx context.Context) error { return redisPing(ctx, a.DSN) })
}

// several is a command that runs several servers in one container, where they reach
// each other by the loopback interface. It ends when the first of them does.
func several(password string, options ...[]string) testcontainers.CustomizeRequestOption {
	var script []string
	for _, o := range options {
		o = append(redisOptions(password), o...)
		for i := range o {
			o[i] = "'" + o[i] + "'"
		}
		script = append(script, "redis-server "+strings.Join(o, " ")+" &")
	}
	return testcontainers.WithCmd("bash", "-c", strings.Join(script, " ")+" wait -n")
}

func startRedisReplica(s *starting) (Address, error) {
	const replicaPort = "6380"
	password := rand.Text()
	c, endpoints, err := s.runAt(s.image, []published{{inside: redisPort}, {inside: replicaPort}}, several(password,
		[]string{"--port", redisPort},
		[]string{"--port", replicaPort, "--replicaof", "127.0.0.1 " + redisPort, "--repl-diskless-sync-delay", "0"},
	))
	if err != nil {
		return Address{}, err
	}
	a := Address{DSN: redisURL(password, endpoints[0]), Direct: redisURL(password, endpoints[1])}
	return a, s.await(c, func(ctx context.Context) error {
		info, err := redisInfo(ctx, a.Direct, "replication")
		if err == nil && info["master_link_status"] != "up" {
			err = errors.New("the replica has no link to its primary")
		}
		return err
	})
}

// startRedisCluster publishes the servers' ports on the same numbers, because they
// tell clients their own addresses.
func startRedisCluster(s *starting) (Address, error) {
	host, err := s.server.fleet.images.host()
	if err != nil {
		return Address{}, err
	}
	if ip, err := netip.ParseAddr(host); err != nil || !ip.IsLoopback() {
		return Address{}, fmt.Errorf("%w: the engine is on another machine, whose free ports are not known here", ErrUnavailable)
	}
	password := rand.Text()
	var ports []published
	var options [][]string
	for i := range 3 {
		port, err := freePort(s)
		if err != nil {
			return Address{}, err
		}
		ports = append(ports, published{inside: port, outside: port})
		options = append(options, []string{
			"--port", port, "--cluster-enabled", "yes", "--cluster-config-file", "nodes-" + port + ".conf",
			"--cluster-announce-ip", host, "--cluster-port", fmt.Sprint(17001 + i), // by default 10000 more, which may be none
			"--cluster-node-timeout", "5000",
		})
	}
	c, endpoints, err := s.runAt(s.image, ports, several(password, options...))
	if err != nil {
		return Address{}, err
	}
	servers := make([]*redis.Client, len(endpoints))
	for i, endpoint := range endpoints {
		servers[i] = redis.NewClient(&redis.Options{Addr: endpoint, Password: password})
	}
	defer func() {
		for _, server := range servers {
			_ = server.Close()
		}
	}()
	for i := range servers {
		if err := s.await(c, func(ctx context.Context) error { return servers[i].Ping(ctx).Err() }); err != nil {
			return Address{}, err
		}
	}
	const slots = 16384
	for i, server := range servers {
		first, last := i*slots/len(servers), (i+1)*slots/len(servers)-1
		err := server.ClusterAddSlotsRange(s, first, last).Err()
		if i > 0 && err == nil {
			err = servers[0].Do(s, "CLUSTER", "MEET", host, ports[i].inside, 17001+i).Err()
		}
		if err != nil {
			return Address{}, fmt.Errorf("form the cluster: %w", err)
		}
	}
	u := url.URL{
		Scheme: "redis", User: url.UserPassword("", password), Host: endpoints[0],
		RawQuery: url.Values{"addr": endpoints[1:]}.Encode(),
	}
	return Address{DSN: u.String()}, s.await(c, func(ctx context.Context) error {
		for _, server := range servers {
			info, err := server.ClusterInfo(ctx).Result()
			if err != nil {
				return err
			}
			if !strings.Contains(info, "cluster_state:ok") || !strings.Contains(info, "cluster_size:3") {
				return errors.New("the cluster has not formed")
			}
		}
		return nil
	})
}

// freePort is a port of this machine that nothing listens on now.
func freePort(ctx context.Context) (string, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer func() { _ = l.Close() }()
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, err
}

func redisURL(password, endpoint string) string {
	u := url.URL{Scheme: "redis", User: url.UserPassword("", password), Host: endpoint, Path: "/0"}
	return u.String()
}

func redisPing(ctx context.Context, dsn string) error {
	_, err := redisInfo(ctx, dsn, "server")
	return err
}

// redisInfo asks one server for a section of what it says about itself.
func redisInfo(ctx context.Context, dsn, section string) (map[string]string, error) {
	options, err := redis.ParseURL(dsn)
	if err != nil {
		return nil, err
	}
	client := redis.NewClient(options)
	defer func() { _ = client.Close() }()
	text, err := client.Info(ctx, section).Result()
	info := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[name] = value
		}
	}
	return info, err
}

func redisVersion(a Address) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), askLimit)
	defer cancel()
	info, err := redisInfo(ctx, a.DSN, "server")
	if version := info["valkey_version"]; version != "" {
		return "Valkey " + version, err
	}
	return "Redis " + info["redis_version"], err
}

func redisClusterVersion(a Address) (string, error) {
	one, _, _ := strings.Cut(a.DSN, "?") // of the servers
	version, err := redisVersion(Address{DSN: one})
	return version + ", three masters", err
}

func redisReplicaVersion(a Address) (string, error) {
	version, err := redisVersion(a)
	return version + ", with a replica", err
}

func redisNow(ctx context.Context, a Address) (time.Time, error) {
	options, err := redis.ParseURL(a.DSN)
	if err != nil {
		return time.Time{}, err
	}
	client := redis.NewClient(options)
	defer func() { _ = client.Close() }()
	return client.Time(ctx).Result()
}
