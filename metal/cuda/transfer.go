package cuda

import "sync"

const (
	segments     = 8
	segmentBytes = 2 << 20
	readBytes    = 4 << 20 // of each of two
	stagingAlign = 64
)

// transfers moves bytes between the host and the card, on a stream of its own, through pinned memory: what a copy reads
// must stay until it has run, and copies from other memory take a detour.
type transfers struct {
	lib    api
	stream stream

	mu       sync.Mutex
	ring     pinned // for writes: segments that are filled in turn
	segment  int
	at       int
	left     [segments]event // behind the last copy out of a segment
	pending  [segments]bool
	written  event // behind the last write that somebody waits for
	changes  uint64
	reads    [2]pinned
	readDone [2]event
}

func (t *transfers) open(lib api) (err error) {
	t.lib = lib
	if t.stream, err = lib.NewStream(); err != nil {
		return err
	}
	if t.ring, err = lib.Pin(segments * segmentBytes); err != nil {
		return err
	}
	events := []*event{&t.written, &t.readDone[0], &t.readDone[1]}
	for i := range t.left {
		events = append(events, &t.left[i])
	}
	for _, e := range events {
		if *e, err = lib.NewEvent(false); err != nil {
			return err
		}
	}
	for i := range t.reads {
		if t.reads[i], err = lib.Pin(readBytes); err != nil {
			return err
		}
	}
	return nil
}

// write copies bytes to the card; it has read them when it returns.
func (t *transfers) write(to address, b []byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.changes++
	for len(b) > 0 {
		if t.at >= segmentBytes {
			if err := t.lib.Record(t.left[t.segment], t.stream); err != nil {
				return err
			}
			t.pending[t.segment] = true
			t.segment, t.at = (t.segment+1)%segments, 0
			if t.pending[t.segment] {
				if err := t.lib.Synchronize(t.left[t.segment]); err != nil {
					return err
				}
			}
		}
		piece := t.ring.bytes[t.segment*segmentBytes+t.at : (t.segment+1)*segmentBytes]
		n := copy(piece, b)
		if err := t.lib.CopyIn(t.stream, to, piece[:n]); err != nil {
			return err
		}
		t.at += (n + stagingAlign - 1) / stagingAlign * stagingAlign
		to, b = to+address(n), b[n:]
	}
	return nil
}

// fill sets n bytes of the card's.
func (t *transfers) fill(to address, n int64, v byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.changes++
	return t.lib.Fill8(t.stream, to, n, v)
}

// read copies bytes from the card. While one piece comes the one before is copied on.
func (t *transfers) read(b []byte, from address) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	type piece struct {
		to   []byte
		side int
	}
	var last piece
	take := func() error {
		if last.to == nil {
			return nil
		}
		if err := t.lib.Synchronize(t.readDone[last.side]); err != nil {
			return err
		}
		copy(last.to, t.reads[last.side].bytes)
		return nil
	}
	for side := 0; len(b) > 0; side = 1 - side {
		next := piece{b[:min(len(b), readBytes)], side}
		if err := t.lib.CopyOut(t.stream, t.reads[side].bytes[:len(next.to)], from); err != nil {
			return err
		}
		if err := t.lib.Record(t.readDone[side], t.stream); err != nil {
			return err
		}
		if err := take(); err != nil {
			return err
		}
		b, from, last = b[len(next.to):], from+address(len(next.to)), next
	}
	return take()
}

// before has a stream wait for what was written by now, unless it has done so: seen is what it has waited for.
func (t *transfers) before(s stream, seen *uint64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if *seen == t.changes {
		return nil
	}
	if err := t.lib.Record(t.written, t.stream); err != nil {
		return err
	}
	*seen = t.changes
	return t.lib.Wait(s, t.written)
}

// settle waits until what was written is there.
func (t *transfers) settle() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.lib.Record(t.written, t.stream); err != nil {
		return err
	}
	return t.lib.Synchronize(t.written)
}

// copyPeer copies from another card, and returns when that is done.
func (t *transfers) copyPeer(to address, other api, from address, n int64) (bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	done, err := t.lib.CopyPeer(t.stream, to, other, from, n)
	if !done || err != nil {
		return done, err
	}
	t.changes++
	if err := t.lib.Record(t.written, t.stream); err != nil {
		return true, err
	}
	return true, t.lib.Synchronize(t.written)
}
