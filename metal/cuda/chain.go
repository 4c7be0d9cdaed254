package cuda

import (
	"context"
	"encoding/binary"
	"sync"

	"github.com/mlxlua/mlxlua/metal"
)

// A kernel whose end is not known is stopped by a word that it asks for. What comes behind it in its chain must not run
// then: the threads that stop leave a word, the cut, which later commands of the chain are skipped for. No other word
// would do: while a kernel begins a word that the host sets may be set for some of its threads only.

// chain is the card's side of a chain of command buffers one of which may be stopped, while some of them are on the
// stream. Its memory is the two words of ptx.Arguments.Stop.
type chain struct {
	key     any // of its queue's chains
	words   address
	jobs    int    // on the stream; guarded by the driver's mu
	tags    uint32 // given so far; of who issues
	cut     uint32 // the tag of the launch that was stopped, 0: none; of who waits
	unwatch func() bool

	mu      sync.Mutex
	ended   bool
	stopped bool
}

const chainBytes = 8

// chainOf returns the chain that a job's commands run in. Called by who issues.
func (q *queue) chainOf(j *job) (*chain, error) {
	if j.chain != nil {
		return j.chain, nil
	}
	d, key := q.d, any(j.cb.Stop())
	d.mu.Lock()
	c := q.chains[key]
	d.mu.Unlock()
	if c == nil {
		if len(q.blocks) == 0 {
			a, err := d.heap.alloc(d.lib, pageBytes)
			if err == nil {
				err = d.writeAside(a.address, d.zeros(pageBytes))
			}
			if err != nil {
				return nil, err
			}
			for at := range address(pageBytes / chainBytes) {
				q.blocks = append(q.blocks, a.address+at*chainBytes)
			}
		}
		last := len(q.blocks) - 1
		c = &chain{key: key, words: q.blocks[last]}
		q.blocks = q.blocks[:last]
		c.unwatch = context.AfterFunc(j.cb.Context(), func() { d.stop(c, j.cb) })
		d.mu.Lock()
		q.chains[key] = c
		d.mu.Unlock()
	}
	q.enter(j, c)
	return c, nil
}

// enter puts a job into a chain.
func (q *queue) enter(j *job, c *chain) {
	q.d.mu.Lock()
	c.jobs++
	q.d.mu.Unlock()
	j.chain, j.base = c, c.tags
	c.tags += uint32(len(j.cb.Commands()))
}

// leave takes a job out of its chain, whose words are zeros when the next one has them. Called by who waits for it,
// between Enter and Leave.
func (q *queue) leave(j *job) error {
	d, c := q.d, j.chain
	d.mu.Lock()
	c.jobs--
	last := c.jobs == 0
	if last {
		delete(q.chains, c.key)
	}
	d.mu.Unlock()
	if !last {
		return nil
	}
	c.unwatch()
	c.mu.Lock() // a stop that is under way
	c.ended = true
	c.mu.Unlock()
	if c.stopped {
		if err := d.writeAside(c.words, d.zeros(chainBytes)); err != nil {
			return err
		}
	}
	d.mu.Lock()
	q.returned = append(q.returned, c.words)
	d.mu.Unlock()
	return nil
}

// stop sets a chain's word, if it is interrupted and not only over.
func (d *Driver) stop(c *chain, cb *metal.CommandBuffer) {
	_ = d.call(func() error {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.ended || c.stopped || !cb.Stop().Load() {
			return nil
		}
		c.stopped = true
		return d.writeAside(c.words, d.one())
	})
}

// writeAside writes pinned bytes while kernels run, and returns when they are there.
func (d *Driver) writeAside(to address, b []byte) error {
	e, err := d.lib.NewEvent(false)
	if err != nil {
		return err
	}
	defer func() { _ = d.lib.EndEvent(e) }()
	if err := d.lib.CopyIn(d.aside, to, b); err != nil {
		return err
	}
	if err := d.lib.Record(e, d.aside); err != nil {
		return err
	}
	return d.lib.Synchronize(e)
}

// ran says which commands of a job have run, and which was stopped midway, once its chain is cut; nil: all.
func (d *Driver) ran(j *job, told bool) (ran []bool, midway int, err error) {
	c := j.chain
	if told && c.cut == 0 {
		var words [chainBytes]byte
		if err := d.move.read(words[:], c.words); err != nil {
			return nil, 0, err
		}
		c.cut = binary.LittleEndian.Uint32(words[4:])
	}
	if c.cut == 0 {
		return nil, 0, nil
	}
	ran, midway = make([]bool, len(j.cb.Commands())), -1
	if at := int(c.cut) - int(j.base) - 1; at >= 0 && at < len(ran) {
		midway = at
		for i := range at {
			ran[i] = true
		}
	}
	return ran, midway, nil
}
