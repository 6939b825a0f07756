package backends

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"
	tcnetwork "github.com/testcontainers/testcontainers-go/network"

	"github.com/shedbolt/shedbolt/internal/testenv"
)

// RunVar names this run; containers and networks carry it as a label, so that
// whoever started the run can look for what is left.
const RunVar = "SHEDBOLT_TEST_RUN"

// RunLabel is that label.
const RunLabel = "org.shedbolt.test"

// ErrUnavailable says that a server can't be had here, which is no fault of the
// code under test.
var ErrUnavailable = errors.New("not available")

// startLimit bounds the start of one server, without its image.
const startLimit = 90 * time.Second

// Fleet starts servers and stops them. It does not rely on testcontainers-go's
// reaper, which is an image that may not be there.
type Fleet struct {
	images *images
	label  map[string]string

	mu     sync.Mutex
	closed bool
	stops  []*stopper // of whatever runs
}

// stopper stops one thing, once.
type stopper struct {
	once sync.Once
	f    func(ctx context.Context) error
	err  error
}

func (s *stopper) stop() error {
	s.once.Do(func() {
		// Its own limit: it also runs after a signal has cancelled all else.
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		s.err = s.f(ctx)
	})
	return s.err
}

// NewFleet makes a Fleet; dir is this package's folder, and logf is told of what
// takes long.
func NewFleet(dir string, logf func(format string, args ...any)) *Fleet {
	log.SetDefault(log.NewNoopLogger()) // its lines for each step of each container
	run := os.Getenv(RunVar)
	if run == "" {
		run = rand.Text()
	}
	return &Fleet{images: newImages(dir, logf), label: map[string]string{RunLabel: run}}
}

// Server is a running server.
type Server struct {
	Backend Backend
	Address Address
	// Version is what the server says of itself.
	Version string
	// Origin is the image, or says that the environment named the server.
	Origin string

	fleet *Fleet
	stops []*stopper
}

// Image finds the image for a backend and makes it available where that is
// possible: it builds a lab image, and pulls none.
func (f *Fleet) Image(ctx context.Context, b Backend) (string, error) {
	return f.images.find(ctx, b)
}

// Start finds or starts the backend's server. The error is [ErrUnavailable] when
// there is no way to have one here.
func (f *Fleet) Start(ctx context.Context, b Backend) (*Server, error) {
	s := &Server{Backend: b, fleet: f}
	if dsn := os.Getenv(b.DSNVar()); dsn != "" {
		s.Address = Address{DSN: dsn, Direct: os.Getenv(testenv.DirectVar(b.Name))}
		s.Origin = "named by " + b.DSNVar()
	} else {
		image, err := f.images.find(ctx, b)
		if err != nil {
			return nil, err
		}
		s.Origin = image
		limited, cancel := context.WithTimeout(ctx, startLimit)
		defer cancel()
		s.Address, err = b.Server.start(&starting{Context: limited, server: s, image: image})
		if err != nil {
			return nil, errors.Join(fmt.Errorf("start %s from %s: %w", b.Name, image, err), s.Stop())
		}
	}
	var err error
	if s.Version, err = b.Server.version(s.Address); err != nil {
		return nil, errors.Join(fmt.Errorf("ask %s for its version: %w", b.Name, err), s.Stop())
	}
	if clock := b.Server.Clock; clock != "" {
		if err := b.Server.checkClock(s.Address); err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", b.Name, err), s.Stop())
		}
		s.Version += ", clock " + clock
	}
	return s, nil
}

// Stop removes what Start has started. It may be called more than once.
func (s *Server) Stop() error {
	var errs []error
	for _, stop := range slices.Backward(s.stops) {
		errs = append(errs, stop.stop())
	}
	return errors.Join(errs...)
}

// Close stops all servers; it is safe to call while some start, which then fail.
func (f *Fleet) Close() error {
	f.mu.Lock()
	f.closed = true
	stops := slices.Clone(f.stops)
	f.mu.Unlock()
	var errs []error
	for _, stop := range slices.Backward(stops) {
		errs = append(errs, stop.stop())
	}
	return errors.Join(errs...)
}

// starting is what a recipe works with.
type starting struct {
	context.Context
	server *Server
	image  string
}

// onStop registers a clean-up, which also runs when the Fleet is closed.
func (s *starting) onStop(stop func(ctx context.Context) error) error {
	st := &stopper{f: stop}
	f := s.server.fleet
	f.mu.Lock()
	f.stops = append(f.stops, st)
	closed := f.closed
	f.mu.Unlock()
	s.server.stops = append(s.server.stops, st)
	if closed {
		return errors.Join(errors.New("the run is being ended"), st.stop())
	}
	return nil
}

// network makes a network of its own for containers that talk to each other.
func (s *starting) network() (*testcontainers.DockerNetwork, error) {
	n, err := tcnetwork.New(s, tcnetwork.WithLabels(s.server.fleet.label))
	if n != nil {
		if stopErr := s.onStop(n.Remove); stopErr != nil {
			return nil, stopErr
		}
	}
	if err != nil {
		return nil, fmt.Errorf("network: %w", err)
	}
	return n, nil
}

// run starts a container that listens on port, and returns the address of the
// port that the engine publishes it on: on the loopback interface, unless the
// engine is on another machine. Its clock is the recipe's.
func (s *starting) run(image, port string, options ...testcontainers.ContainerCustomizer) (*testcontainers.DockerContainer, string, error) {
	c, addresses, err := s.runAt(image, []published{{inside: port}}, options...)
	if err != nil {
		return nil, "", err
	}
	return c, addresses[0], nil
}

// published is a port that a container listens on, and the one on which the
// engine publishes it: any, or one that is named.
type published struct{ inside, outside string }

func (s *starting) runAt(image string, ports []published, options ...testcontainers.ContainerCustomizer) (*testcontainers.DockerContainer, []string, error) {
	host, err := s.server.fleet.images.host()
	if err != nil {
		return nil, nil, err
	}
	var exposed []string
	bindings := network.PortMap{}
	for _, p := range ports {
		inside := network.MustParsePort(p.inside + "/tcp")
		exposed = append(exposed, inside.String())
		binding := network.PortBinding{HostPort: p.outside}
		if ip, err := netip.ParseAddr(host); err == nil && ip.IsLoopback() {
			binding.HostIP = ip
		}
		bindings[inside] = []network.PortBinding{binding}
	}
	if clock := s.server.Backend.Server.Clock; clock != "" {
		options = append(options, testcontainers.WithEnv(map[string]string{"SHEDBOLT_FAKETIME": clock}))
	}
	options = append(options,
		testcontainers.WithExposedPorts(exposed...),
		testcontainers.WithLabels(s.server.fleet.label),
		testcontainers.WithHostConfigModifier(func(c *container.HostConfig) { c.PortBindings = bindings }),
	)
	c, err := testcontainers.Run(s, image, options...)
	if c != nil { // also when it did not start
		stopErr := s.onStop(func(ctx context.Context) error {
			// The data is not worth an orderly shutdown.
			return c.Terminate(ctx, testcontainers.StopTimeout(0))
		})
		if stopErr != nil {
			return nil, nil, stopErr
		}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("run: %w", err)
	}
	var addresses []string
	for _, inside := range exposed {
		port, err := c.MappedPort(s, inside)
		if err != nil {
			return nil, nil, fmt.Errorf("published port: %w", err)
		}
		addresses = append(addresses, net.JoinHostPort(host, port.Port()))
	}
	return c, addresses, nil
}

// await calls ping until it succeeds, the container has ended, or the context
// has.
func (s *starting) await(c *testcontainers.DockerContainer, ping func(ctx context.Context) error) error {
	for {
		attempt, cancel := context.WithTimeout(s, 5*time.Second)
		err := ping(attempt)
		cancel()
		if err == nil {
			return nil
		}
		state, stateErr := c.State(s)
		if stateErr == nil && !state.Running {
			return fmt.Errorf("the server ended with code %d:\n%s", state.ExitCode, tail(c))
		}
		select {
		case <-s.Done():
			return fmt.Errorf("not ready: %w; the last attempt: %w\n%s", context.Cause(s), err, tail(c))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// tail is the end of a container's log.
func tail(c *testcontainers.DockerContainer) string {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	logs, err := c.Logs(ctx)
	if err != nil {
		return "no log: " + err.Error()
	}
	text, _ := io.ReadAll(logs)
	_ = logs.Close()
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-15):], "\n")
}
