package conformancetest

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// Proxy passes TCP connections on to a store and can do harm to them. It listens
// on the loopback interface, and ends with the test that made it.
type Proxy struct {
	tb   testing.TB
	to   string
	addr string

	mu       sync.Mutex
	changed  *sync.Cond // broadcast when any field below changes
	listener net.Listener
	links    map[*link]struct{}
	stalled  bool
	closed   bool
	skip     int // answers that pass before one is dropped
	armed    bool
	mute     bool // the answer is swallowed, and its connection stays
	latency  time.Duration
	trips    int

	running sync.WaitGroup
}

// link is one connection from a client and one to the store.
type link struct {
	client, store net.Conn
	asked         bool // the client has sent something since the store's last answer
	fate          fate // of the answer to what was asked
}

// fate is what becomes of a piece.
type fate int

const (
	passes fate = iota
	isSwallowed
	isLast // it does not pass, and the link is closed
)

// NewProxy makes a Proxy before the store at an address such as
// "127.0.0.1:5432". Make it before the client that goes through it: clean-ups run
// in reverse, and the proxy's waits until its connections have been closed.
func NewProxy(tb testing.TB, to string) *Proxy {
	tb.Helper()
	p := &Proxy{tb: tb, to: to, links: map[*link]struct{}{}}
	p.changed = sync.NewCond(&p.mu)
	l, err := listen("127.0.0.1:0")
	if err != nil {
		tb.Fatalf("proxy: %v", err)
	}
	p.addr = l.Addr().String()
	p.serve(l)
	tb.Cleanup(func() {
		p.set(func() { p.closed = true })
		p.Down()
		p.running.Wait()
	})
	return p
}

func listen(addr string) (net.Listener, error) {
	return (&net.ListenConfig{}).Listen(context.Background(), "tcp", addr)
}

// Addr is where clients connect to instead of the store.
func (p *Proxy) Addr() string { return p.addr }

// Down closes all connections and refuses new ones, like a store that has ended.
func (p *Proxy) Down() {
	p.set(func() {
		if p.listener != nil {
			_ = p.listener.Close()
			p.listener = nil
		}
	})
	p.Cut()
}

// Up ends Down.
func (p *Proxy) Up() {
	l, err := listen(p.addr)
	if err != nil {
		p.tb.Errorf("proxy: %v", err)
		return
	}
	p.serve(l)
}

// Cut closes all connections; new ones pass.
func (p *Proxy) Cut() {
	p.set(func() {
		for l := range p.links {
			l.close()
		}
	})
}

// Stall keeps all connections, also new ones, and passes nothing, like a network
// that has gone away, until Resume.
func (p *Proxy) Stall() { p.set(func() { p.stalled = true }) }

// Resume ends Stall. What was sent meanwhile arrives now.
func (p *Proxy) Resume() { p.set(func() { p.stalled = false }) }

// DropAnswer lets the next answers pass, as many as skip says, then swallows one
// and closes its connection: the store has done what was asked, and the client
// does not get to know. A negative skip drops none.
func (p *Proxy) DropAnswer(skip int) {
	p.set(func() { p.skip, p.armed, p.mute = skip, skip >= 0, false })
}

// MuteAnswer is DropAnswer without closing: nothing more comes on that connection.
func (p *Proxy) MuteAnswer(skip int) {
	p.set(func() { p.skip, p.armed, p.mute = skip, skip >= 0, true })
}

// SetLatency delays all that clients send.
func (p *Proxy) SetLatency(d time.Duration) { p.set(func() { p.latency = d }) }

// Trips counts the round trips since the Proxy was made: how often a client has
// sent something, be it in many pieces, and then waited for an answer.
func (p *Proxy) Trips() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.trips
}

func (p *Proxy) set(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
	p.changed.Broadcast()
}

func (p *Proxy) serve(l net.Listener) {
	p.set(func() { p.listener = l })
	p.running.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			p.running.Go(func() { p.link(client) })
		}
	})
}

func (p *Proxy) link(client net.Conn) {
	store, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", p.to)
	if err != nil {
		_ = client.Close()
		return
	}
	l := &link{client: client, store: store}
	p.mu.Lock()
	down := p.listener == nil
	p.links[l] = struct{}{}
	p.mu.Unlock()
	if down { // it came in while Down closed the others
		l.close()
	}
	p.running.Go(func() { p.pass(l, store, client, p.asking) })
	p.pass(l, client, store, p.answering)
	p.set(func() { delete(p.links, l) })
}

func (l *link) close() {
	_ = l.client.Close()
	_ = l.store.Close()
}

// pass copies one direction until either end closes or judge says so.
func (p *Proxy) pass(l *link, to io.Writer, from io.Reader, judge func(*link) fate) {
	defer l.close()
	piece := make([]byte, 32<<10)
	for {
		n, err := from.Read(piece)
		if n > 0 {
			switch judge(l) {
			case isLast:
				return
			case passes:
				if _, err := to.Write(piece[:n]); err != nil {
					return
				}
			}
		}
		if err != nil {
			return
		}
	}
}

// asking is called for each piece that a client sends.
func (p *Proxy) asking(l *link) fate {
	if !p.admit() {
		return isLast
	}
	p.mu.Lock()
	if !l.asked {
		p.trips++
		if l.asked = true; p.armed {
			if p.skip == 0 {
				if l.fate, p.armed = isLast, false; p.mute {
					l.fate = isSwallowed
				}
			}
			p.skip--
		}
	}
	latency := p.latency
	p.mu.Unlock()
	if latency > 0 {
		time.Sleep(latency)
	}
	return passes
}

// answering is called for each piece that the store sends.
func (p *Proxy) answering(l *link) fate {
	p.mu.Lock()
	l.asked = false
	fate := l.fate
	p.mu.Unlock()
	if fate == passes && !p.admit() {
		return isLast
	}
	return fate
}

// admit waits while everything is stalled.
func (p *Proxy) admit() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.stalled && !p.closed {
		p.changed.Wait()
	}
	return !p.closed
}
