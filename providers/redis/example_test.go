package redis_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/shedbolt/shedbolt/core"
	redislock "github.com/shedbolt/shedbolt/providers/redis"
)

// A job of which one replica at a time runs.
func Example() {
	client := redis.NewClient(&redis.Options{Addr: "localhost:6379", ContextTimeoutEnabled: true})
	defer func() { _ = client.Close() }()

	provider, err := redislock.New(client)
	if err != nil {
		log.Fatal(err)
	}
	locker, err := core.New(provider)
	if err != nil {
		log.Fatal(err)
	}
	report := core.Lock{Name: "report", AtMostFor: 30 * time.Minute, AtLeastFor: time.Minute}
	result, err := locker.Run(context.Background(), report, func(ctx context.Context) error {
		return nil // the work
	})
	fmt.Println(result.Outcome, err)
}

// The keys of a service that sets ShedLock's environment, in a cluster.
func ExampleNew() {
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"localhost:7000", "localhost:7001"}})
	defer func() { _ = client.Close() }()
	provider, err := redislock.New(client, redislock.WithEnvironment("production"))
	fmt.Println(provider != nil, err)
	// Output: true <nil>
}

// Other keys than job-lock:default:<name>.
func ExampleWithPrefix() {
	client := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	defer func() { _ = client.Close() }()
	provider, err := redislock.New(client, redislock.WithPrefix("locks"), redislock.WithEnvironment(redislock.DefaultEnvironment))
	fmt.Println(provider != nil, err)
	_, err = redislock.New(client, redislock.WithPrefix("fence:"+redislock.DefaultPrefix))
	fmt.Println(err)
	// Output:
	// true <nil>
	// redis: WithPrefix needs a text that does not begin with "fence:"
}

// Fencing numbers, for a resource that refuses older ones.
func ExampleWithFencing() {
	client := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	defer func() { _ = client.Close() }()
	provider, err := redislock.New(client, redislock.WithFencing())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(provider.Capabilities().Set)
	// Output: extend,inspect,fence,holder,times
}

// A lock counts only when a replica has it too.
func ExampleWithWait() {
	client := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	defer func() { _ = client.Close() }()
	provider, err := redislock.New(client, redislock.WithWait(1, 200*time.Millisecond))
	fmt.Println(provider != nil, err)
	// Output: true <nil>
}
