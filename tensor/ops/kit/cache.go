package kit

import "sync"

// Cache remembers what is made once for a key, and forgets all of it when it is full. The zero value is empty; it may
// be used from many goroutines.
type Cache[K comparable, V any] struct {
	mu   sync.RWMutex
	made map[K]V
}

// maxCached bounds what a Cache remembers: more keys than this are of a program that makes up ever new ones.
const maxCached = 512

// Get is what was made for the key; make makes it if it is not there.
func (c *Cache[K, V]) Get(key K, make func() V) V {
	c.mu.RLock()
	v, ok := c.made[key]
	c.mu.RUnlock()
	if ok {
		return v
	}
	v = make()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.made == nil || len(c.made) >= maxCached {
		c.made = map[K]V{}
	}
	c.made[key] = v
	return v
}
