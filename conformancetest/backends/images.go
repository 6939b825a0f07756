package backends

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"

	"github.com/shedbolt/shedbolt/internal/testenv"
)

// ImagesVar may be "official" or "lab"; empty finds out.
const ImagesVar = "SHEDBOLT_TEST_IMAGES"

// wrongKindError is ErrUnavailable where only the other kind of image would do.
type wrongKindError struct{ why string }

func (e wrongKindError) Error() string { return ErrUnavailable.Error() + ": " + e.why }

func (wrongKindError) Unwrap() error { return ErrUnavailable }

var errTrueClock = wrongKindError{"official images can't shift their clock; " + ImagesVar + "=lab uses images that can"}

// Excused reports whether the backend may be skipped because of err, an error of
// [Fleet.Start]: there is no way to have a server, and SHEDBOLT_TEST_REQUIRE does
// not ask for it. "all" does not ask for what only the kind of image has that is
// not in use: a wrong clock, or a server that Debian has no package of.
func Excused(b Backend, err error) bool {
	if !errors.Is(err, ErrUnavailable) {
		return false
	}
	if errors.As(err, new(wrongKindError)) {
		return !testenv.Named(b.Name)
	}
	return !testenv.Required(b.Name)
}

// registryLimit bounds the one question whether a registry answers.
const registryLimit = 10 * time.Second

// images finds images, and remembers what holds for all of them.
type images struct {
	dir  string
	logf func(format string, args ...any)

	engine   func() (*testcontainers.DockerClient, error)
	registry func() error // nil when one answers
}

func newImages(dir string, logf func(string, ...any)) *images {
	i := &images{dir: dir, logf: logf}
	i.engine = sync.OnceValues(func() (c *testcontainers.DockerClient, err error) {
		defer func() {
			if p := recover(); p != nil { // so it reports a missing socket
				err = fmt.Errorf("%v", p)
			}
			if err != nil {
				err = fmt.Errorf("%w: no Docker engine answers: %w", ErrUnavailable, err)
			}
		}()
		ctx, cancel := context.WithTimeout(context.Background(), 2*registryLimit)
		defer cancel()
		doWithoutReaper(ctx)
		if c, err = testcontainers.NewDockerClientWithOpts(ctx); err != nil {
			return nil, err
		}
		_, err = c.Ping(ctx, client.PingOptions{})
		return c, err
	})
	i.registry = sync.OnceValue(i.askRegistry)
	return i
}

// host is where the engine publishes ports. On an engine's socket that is this
// machine. (testcontainers-go takes the gateway when it believes to run inside a
// container, which is right only if the socket is the host's; whoever has it so
// sets the same variable as for testcontainers-go.)
func (i *images) host() (string, error) {
	if host := os.Getenv("TESTCONTAINERS_HOST_OVERRIDE"); host != "" {
		return host, nil
	}
	engine, err := i.engine()
	if err != nil {
		return "", err
	}
	u, err := url.Parse(engine.DaemonHost())
	if err != nil {
		return "", err
	}
	if u.Hostname() == "" {
		return "127.0.0.1", nil
	}
	return u.Hostname(), nil
}

// find returns the reference of the backend's image: see the package comment.
func (i *images) find(ctx context.Context, b Backend) (string, error) {
	engine, err := i.engine()
	if err != nil {
		return "", err
	}
	if image := os.Getenv(b.ImageVar()); image != "" {
		return image, nil
	}
	kind := os.Getenv(ImagesVar)
	switch kind {
	case "", "official", "lab":
	default:
		return "", fmt.Errorf("%s is %q; it can be official or lab", ImagesVar, kind)
	}
	if kind != "lab" {
		official := mirrored(b.Server.Official)
		_, err := engine.ImageInspect(ctx, official)
		if err != nil {
			err = i.registry()
		}
		switch {
		case err == nil && b.Server.Clock != "":
			return "", errTrueClock
		case err == nil:
			return b.Server.Official, nil // testcontainers-go adds the mirror
		case kind == "official":
			return "", fmt.Errorf("%w: no %s on this machine, and no registry answers: %w", ErrUnavailable, official, err)
		}
	}
	if why := b.Server.NoLab; why != "" {
		return "", wrongKindError{"it needs " + b.Server.Official + " from an image registry: " + why}
	}
	return i.lab(ctx, b.Server.Lab)
}

// mirrored is the image's reference at the mirror of Docker Hub that
// testcontainers-go is told to use, if any.
func mirrored(image string) string {
	return path.Join(testcontainers.ReadConfig().Config.HubImageNamePrefix, image)
}

// askRegistry asks, through the engine because it is the one that pulls, for an
// image that exists. It is asked once: where no registry answers, each pull would
// take long to find that out.
func (i *images) askRegistry() error {
	engine, err := i.engine()
	if err != nil {
		return err
	}
	if err = answers(context.Background(), engine.Client, mirrored("postgres:17")); err != nil {
		i.logf("no image registry answers: %v", err)
	}
	return err
}

// answers reports whether an image's registry does.
func answers(ctx context.Context, engine *client.Client, image string) error {
	ctx, cancel := context.WithTimeout(ctx, registryLimit)
	defer cancel()
	_, err := engine.DistributionInspect(ctx, image, client.DistributionInspectOptions{})
	if errdefs.IsNotFound(err) || errdefs.IsUnauthorized(err) || errdefs.IsPermissionDenied(err) {
		return nil // that is an answer: a pull sends credentials, this did not
	}
	return err
}

// doWithoutReaper turns testcontainers-go's reaper off for this process where its
// image can't be had, because no container would start then. A setting that the
// environment makes stays. It must come before testcontainers-go reads its
// settings, which it does once.
func doWithoutReaper(ctx context.Context) {
	const variable = "TESTCONTAINERS_RYUK_DISABLED"
	if _, set := os.LookupEnv(variable); set {
		return
	}
	engine, err := client.New(client.FromEnv)
	if err != nil {
		return
	}
	defer func() { _ = engine.Close() }()
	image := path.Join(os.Getenv("TESTCONTAINERS_HUB_IMAGE_NAME_PREFIX"), "testcontainers/ryuk")
	have, err := engine.ImageList(ctx, client.ImageListOptions{Filters: client.Filters{}.Add("reference", image)})
	if err != nil || len(have.Items) > 0 {
		return
	}
	if os.Getenv(ImagesVar) == "lab" || answers(ctx, engine, image+":latest") != nil {
		_ = os.Setenv(variable, "true")
	}
}

// lab builds a lab image, which takes no time when it exists. Of callers that want
// the same image at once, the script builds it for one and lets the others wait.
func (i *images) lab(ctx context.Context, name string) (string, error) {
	script, err := filepath.Abs(filepath.Join(i.dir, "lab", "build"))
	if err != nil {
		return "", err
	}
	start := time.Now()
	cmd := exec.CommandContext(ctx, script, name)
	var out, words bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, io.MultiWriter(&words, logWriter(i.logf))
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		lines := strings.Split(strings.TrimSpace(words.String()), "\n")
		return "", fmt.Errorf("%w: no image registry answers, and lab/build %s: %w", ErrUnavailable, name,
			errors.Join(errors.New(lines[len(lines)-1]), err))
	}
	if took := time.Since(start); took > 5*time.Second {
		i.logf("lab image %s took %.0f s", name, took.Seconds())
	}
	return strings.TrimSpace(out.String()), nil
}

// logWriter passes on whole writes, which are lines as scripts write them.
type logWriter func(format string, args ...any)

func (w logWriter) Write(p []byte) (int, error) {
	if line := strings.TrimSpace(string(p)); line != "" {
		w("%s", line)
	}
	return len(p), nil
}
