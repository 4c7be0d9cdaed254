package random

import (
	"sync"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
)

// State is a sequence of keys from a seed, MLX's global state: each Next splits the key. It belongs to one Lua
// state or to one Go owner, and may be used by any goroutine.
type State struct {
	mu  sync.Mutex
	key *tensor.Array
}

// NewState starts the sequence of a seed.
func NewState(seed uint64) *State { return &State{key: Key(seed)} }

// Seed starts the sequence of a seed anew.
func (s *State) Seed(seed uint64) { s.Set(Key(seed)) }

// Key is the present key. Compile makes it an implicit input.
func (s *State) Key() *tensor.Array {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.key
}

// Set replaces the present key.
func (s *State) Set(key *tensor.Array) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.key = key
}

// Next is a fresh key: uint32 (2,).
func (s *State) Next(ctx ...*tensor.Ctx) *tensor.Array {
	c := tensor.Call(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	pair := Split(s.key, 2, c)
	s.key = rowOf(c, pair, 0)
	return rowOf(c, pair, 1)
}

// rowOf is row i of a (n, 2) array of keys.
func rowOf(c *tensor.Ctx, keys *tensor.Array, i int) *tensor.Array {
	return ops.Slice(keys, []ops.Part{ops.At(i)}, c)
}
