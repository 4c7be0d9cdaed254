package kit

import "sync"

// Texts remembers the kernel texts of a room by their variants: putting one together takes longer than the launch that
// needs it. The zero value is ready; it may be used from many goroutines.
type Texts[V comparable] struct {
	mu   sync.RWMutex
	made map[V]string
}

// MaxTexts bounds what a room remembers: more variants than this are of a program that makes up ever new ones.
const MaxTexts = 512

// Get is the variant's text, which write makes if it is not there.
func (t *Texts[V]) Get(v V, write func(V) string) string {
	t.mu.RLock()
	text, ok := t.made[v]
	t.mu.RUnlock()
	if ok {
		return text
	}
	text = write(v)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.made == nil || len(t.made) >= MaxTexts {
		t.made = map[V]string{}
	}
	t.made[v] = text
	return text
}
