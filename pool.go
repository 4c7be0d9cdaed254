package mlxlua

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"

	"github.com/mlxlua/mlxlua/luabind"
)

// Pool hands out states to users who must not see each other: each state is new, prepared before it is asked for, and
// closed when it comes back. Nothing of a state goes to the next user, as there is no way to tell all that a script has
// changed: globals, fields of libraries and metatables, loaded modules, random numbers, the precision of printing, what
// compiled functions keep. What states share is the device with its compiled kernels, and what Prepare gives them. Any
// goroutine may use a Pool.
//
// Prepare finds the random numbers of Options.Seed, the same in all states. The n-th state that Get gives then begins
// with random numbers of its own, those of a seed that Options.Seed and n decide, whatever Prepare has drawn.
type Pool struct {
	opt    PoolOptions
	slots  chan struct{} // one for each state that may be in use; nil: any number
	ending chan struct{} // closed by Close
	work   sync.WaitGroup

	mu      sync.Mutex
	ready   []*State
	used    map[*State]struct{} // states that Get gave
	making  int
	given   uint64 // states that Get gave, all told
	version int    // of what the states begin with
	closed  bool
}

// PoolOptions are what a Pool is made with.
type PoolOptions struct {
	Options Options // of its states
	// Prepare gives a state what its user finds in it, by State.Set, State.Run or Script.Run; nil: nothing. It may be
	// called by several goroutines, each with a state of its own.
	Prepare func(ctx context.Context, s *State) error
	Ready   int // how many states wait for users; 0: one for each processor
	Most    int // how many users there may be at once, the others wait; 0: any number
}

// ErrPoolClosed is the error of what is asked of a Pool after Close.
var ErrPoolClosed = errors.New("[pool] the pool is closed")

// NewPool makes a pool and its first state: an error of Prepare's is NewPool's.
func NewPool(ctx context.Context, opt PoolOptions) (*Pool, error) {
	if opt.Ready < 0 || opt.Most < 0 {
		return nil, fmt.Errorf("[pool] Ready is %d and Most is %d: want 0 or more", opt.Ready, opt.Most)
	}
	if opt.Ready == 0 {
		opt.Ready = runtime.GOMAXPROCS(0)
	}
	p := &Pool{opt: opt, ending: make(chan struct{})}
	if opt.Most > 0 {
		p.slots = make(chan struct{}, opt.Most)
	}
	first, err := p.state(ctx)
	if err != nil {
		return nil, err
	}
	p.ready = []*State{first}
	p.fill()
	return p, nil
}

// state makes a state.
func (p *Pool) state(ctx context.Context) (*State, error) {
	s, err := Open(p.opt.Options)
	if err != nil || p.opt.Prepare == nil {
		return s, err
	}
	if err := p.opt.Prepare(ctx, s); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// fill has states made until enough are ready. One that cannot be prepared is the next user's error.
func (p *Pool) fill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.ready)+p.making < p.opt.Ready && !p.closed {
		p.making++
		p.work.Add(1)
		version := p.version
		go func() {
			defer p.work.Done()
			s, err := p.state(context.Background())
			p.mu.Lock()
			defer p.mu.Unlock()
			p.making--
			switch {
			case err != nil:
			case p.closed || version != p.version:
				s.Close()
			default:
				p.ready = append(p.ready, s)
			}
		}()
	}
}

// Get hands out a state; Put takes it back. Where Most are in use it waits for one, or until ctx is done.
func (p *Pool) Get(ctx context.Context) (*State, error) {
	if ctx == nil {
		ctx = context.Background()
	}
	if p.slots != nil {
		select {
		case p.slots <- struct{}{}:
		case <-p.ending:
			return nil, ErrPoolClosed
		case <-ctx.Done():
			return nil, fmt.Errorf("[pool] %w", context.Cause(ctx))
		}
	}
	s, err := p.take(ctx)
	if err != nil {
		p.free()
		return nil, err
	}
	p.mu.Lock()
	if p.used == nil {
		p.used = map[*State]struct{}{}
	}
	p.used[s] = struct{}{}
	p.given++
	seed := seedOf(p.opt.Options.Seed, p.given)
	p.mu.Unlock()
	p.fill()
	if err := luabind.Seed(s.s, seed); err != nil {
		p.Put(s)
		return nil, fmt.Errorf("[pool] %w", err)
	}
	return s, nil
}

// seedOf is the seed of the n-th state. Seeds of different numbers and pools are as good as unrelated (splitmix64).
func seedOf(seed, n uint64) uint64 {
	mixed := seed
	for range 2 {
		mixed += 0x9e3779b97f4a7c15
		mixed = (mixed ^ mixed>>30) * 0xbf58476d1ce4e5b9
		mixed = (mixed ^ mixed>>27) * 0x94d049bb133111eb
		mixed ^= mixed>>31 ^ n
		n = 0
	}
	return mixed
}

// take is a state that is ready, or a new one.
func (p *Pool) take(ctx context.Context) (*State, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, ErrPoolClosed
	}
	if n := len(p.ready); n > 0 {
		s := p.ready[n-1]
		p.ready = p.ready[:n-1]
		p.mu.Unlock()
		return s, nil
	}
	p.mu.Unlock()
	return p.state(ctx)
}

// free lets the next user in.
func (p *Pool) free() {
	if p.slots != nil {
		<-p.slots
	}
}

// Put takes back a state that Get gave: it is closed. What Go holds of its arrays stays usable. A state that the pool
// has not given, or has back, is only closed.
func (p *Pool) Put(s *State) {
	s.Close()
	p.mu.Lock()
	_, used := p.used[s]
	delete(p.used, s)
	p.mu.Unlock()
	if used {
		p.free()
	}
}

// Do calls f with a state of the pool.
func (p *Pool) Do(ctx context.Context, f func(s *State) error) error {
	s, err := p.Get(ctx)
	if err != nil {
		return err
	}
	defer p.Put(s)
	return f(s)
}

// Renew has later users get states that Prepare has prepared from now on, after what it uses has changed. If that fails
// the states that were ready stay, and the error says why.
func (p *Pool) Renew(ctx context.Context) error {
	s, err := p.state(ctx)
	if err != nil {
		return err
	}
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		s.Close()
		return ErrPoolClosed
	}
	old := p.ready
	p.ready = []*State{s}
	p.version++
	p.mu.Unlock()
	for _, s := range old {
		s.Close()
	}
	p.fill()
	return nil
}

// Close closes the states that are ready; those in use are closed when they come back.
func (p *Pool) Close() {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return
	}
	p.closed = true
	ready := p.ready
	p.ready = nil
	close(p.ending)
	p.mu.Unlock()
	for _, s := range ready {
		s.Close()
	}
	p.work.Wait()
}

// SetStdout has print write to w from now on.
func (s *State) SetStdout(w io.Writer) error {
	if err := s.enter(context.Background()); err != nil {
		return fmt.Errorf("[stdout] %w", err)
	}
	defer luabind.Leave(s.s)
	if err := luabind.SetOutput(s.s, w); err != nil {
		return fmt.Errorf("[stdout] %w", err)
	}
	return nil
}
