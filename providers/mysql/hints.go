package mysql

import (
	"sync"
	"time"
)

// hints remember which locks were held a moment ago. They decide nothing: where a
// claim can be made in one trip by a text of several statements, it is made so
// unless a single statement, which costs the server much less, will probably do.
type hints struct {
	mu   sync.Mutex
	held map[string]time.Time // until when, by the local clock
}

// maxHints bounds them for names that are made up at run time.
const maxHints = 1000

// seen notes that a lock is held for a time to come.
func (h *hints) seen(name string, remaining time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.held == nil || len(h.held) >= maxHints {
		h.held = map[string]time.Time{}
	}
	h.held[name] = time.Now().Add(remaining) //nolint:forbidigo // it decides nothing
}

// expectHeld tells whether a lock should be held still.
func (h *hints) expectHeld(name string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	until, ok := h.held[name]
	if !ok {
		return false
	}
	if time.Now().Before(until) { //nolint:forbidigo // it decides nothing
		return true
	}
	delete(h.held, name)
	return false
}

// wrong takes back what was seen.
func (h *hints) wrong(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.held, name)
}
