package tensor

import (
	"slices"

	"github.com/mlxlua/mlxlua/metal"
)

// take is the commands of a recording for inputs that lie in certain ways: data only. Buffers in it are seats.
type take struct {
	key     string
	stream  *Stream
	seats   []seat // those of inputs first, by their numbers
	units   []takeUnit
	cmds    []takeCommand
	outs    []takeOutput // by the numbers of outputs; those that are not needed are empty
	stores  []takeStore
	begin   []int32 // seats that are needed though no command has them
	commons int64   // how long the buffer is that small ones share; 0: there is none
	libs    []*metal.Library

	indivisible    int   // the first command that writes to an input's memory: all from there on run, or none
	checksLate     bool  // something is checked behind that
	flops, written int64 // as a job counts them
	bytes          int64 // that the take takes

	parts []takePart // of which the driver has forms
	used  bool       // it was replayed before
	gone  bool       // it was dropped

	// While it is made:
	dry      *dry
	ahead    []*Node // whose indices were checked before
	numbers  map[*metal.Buffer]int32
	storages map[*storage]int32
}

// seat is the place of a buffer in a take.
type seat struct {
	dryBuffer
	length  int64
	origin  metal.Origin
	store   int32 // whose memory it is, -1: nobody reads it after the call
	written bool  // it is an input's, and written over
	checked bool  // something looks at it when the commands have run
	common  bool  // it shares a buffer with others, from at on
	at      int64
	first   int32 // the commands between which it is needed; first is -1 where it never is
	last    int32
}

// noSeat is the seat of what has none.
const noSeat = -1

// takeUnit is the commands [first, last) of an op.
type takeUnit struct {
	op          *Op
	place       Place
	first, last int32
	checks      []takeCheck
	again       bool // what they check was checked before
}

// takeCheck is a check of a result when the commands have run.
type takeCheck struct {
	seat  int32
	at, n int64
	f     func([]byte) error
}

// takeCommand is a command.
type takeCommand struct {
	kind        metal.CommandKind
	label       string
	pipeline    *metal.Pipeline
	grid, group metal.Size
	args        []takeArg // of a dispatch; of others what they write, then what they read
	writes      int       // of others: how many they write
	pattern     []byte
	routine     metal.Routine // of a call
	begin, end  []int32       // seats that are needed from here on, and up to here
}

// takeArg is what a parameter is bound to.
type takeArg struct {
	seat   int32
	offset int64 // in an input's seat behind the first element
	n      int64 // bytes; toEnd: all that there are of an input's memory
	bytes  []byte
	from   inlineAt // inline bytes of an input, n of them
	group  int      // bytes of threadgroup memory
}

const toEnd = -1

// takeOutput is where an output lies.
type takeOutput struct {
	store   int32 // -1: it is inline
	offset  int64 // in an input's storage behind the input's first element
	strides []int
	inline  []byte
	from    inlineAt
	filled  bool
	there   bool // it is needed
}

// takeStore is a storage that outputs lie in.
type takeStore struct {
	seat     int32
	first    int  // output that lies there
	taken    bool // it was an input's, whose memory the output has got
	external bool // commands must not write to it
}

func newTake(d *dry, inputs int) *take {
	t := &take{dry: d, numbers: map[*metal.Buffer]int32{}, storages: map[*storage]int32{}}
	t.seats = make([]seat, inputs)
	for i := range t.seats {
		t.seats[i].input, t.seats[i].store, t.seats[i].first = i, -1, noSeat
	}
	for buf, b := range d.bufs {
		if b.input >= 0 {
			t.seats[b.input].base, t.seats[b.input].tail = b.base, b.tail
			t.numbers[buf] = int32(b.input)
			t.seats[b.input].length = buf.Len()
		}
	}
	return t
}

// seatOf is the number of a buffer's seat.
func (t *take) seatOf(b *metal.Buffer) int32 {
	at, known := t.numbers[b]
	if !known {
		at = int32(len(t.seats))
		t.numbers[b] = at
		t.seats = append(t.seats, seat{dryBuffer: *t.dry.bufs[b], length: b.Len(), store: -1, first: noSeat})
	}
	t.seats[at].origin = b.Origin()
	return at
}

// rangeOf is a range of a buffer as a binding.
func (t *take) rangeOf(r metal.Range) takeArg {
	a := takeArg{seat: t.seatOf(r.Buf), offset: r.Offset, n: r.Bytes}
	a.offset -= t.seats[a.seat].base
	if t.seats[a.seat].tail && r.Offset+r.Bytes == r.Buf.Len() {
		a.n = toEnd
	}
	return a
}

// argOf is an argument as a binding.
func (t *take) argOf(arg *metal.Arg) takeArg {
	switch {
	case arg.Buffer.Buf != nil:
		return t.rangeOf(arg.Buffer)
	case arg.TGBytes > 0:
		return takeArg{seat: noSeat, group: arg.TGBytes}
	}
	a := takeArg{seat: noSeat, n: int64(len(arg.Bytes))}
	var ok bool
	if a.from, ok = t.dry.inlineOf(arg.Bytes); !ok {
		a.from.input, a.bytes = -1, slices.Clone(arg.Bytes)
	}
	return a
}

// addUnit adds the commands of a unit, and its checks.
func (t *take) addUnit(root *Node, cmds []metal.Command, checks []*check) {
	u := takeUnit{op: root.op, place: root.Place(), first: int32(len(t.cmds)),
		again: slices.Contains(t.ahead, root)}
	for i := range cmds {
		c := &cmds[i]
		if c.Kind == metal.CmdBarrier { // an encoder puts them where they are due
			continue
		}
		to := takeCommand{kind: c.Kind, label: c.Label, pipeline: c.Pipeline, grid: c.Grid, group: c.Threadgroup,
			pattern: slices.Clone(c.Pattern)}
		switch c.Kind {
		case metal.CmdCopy:
			to.args, to.writes = []takeArg{t.rangeOf(c.Dst), t.rangeOf(c.Src)}, 1
		case metal.CmdFill:
			to.args, to.writes = []takeArg{t.rangeOf(c.Dst)}, 1
		case metal.CmdCall:
			to.routine, to.writes = c.Call.Routine, len(c.Call.Writes)
			for _, list := range [][]metal.Range{c.Call.Writes, c.Call.Reads} {
				for _, r := range list {
					to.args = append(to.args, t.rangeOf(r))
				}
			}
		case metal.CmdDispatch:
			for k := range c.Args {
				to.args = append(to.args, t.argOf(&c.Args[k]))
			}
		}
		t.cmds = append(t.cmds, to)
	}
	u.last = int32(len(t.cmds))
	for _, c := range checks {
		at := t.seatOf(c.buf)
		t.seats[at].checked = true
		u.checks = append(u.checks, takeCheck{at, c.at, c.n, c.f})
	}
	t.units = append(t.units, u)
}

// addOutput notes where output i lies.
func (t *take) addOutput(i int, x *Array) error {
	if len(t.outs) <= i {
		t.outs = append(t.outs, make([]takeOutput, i+1-len(t.outs))...)
	}
	from := &x.node.out[x.out]
	v := from.data
	o := takeOutput{store: -1, offset: v.OffsetBytes, strides: slices.Clone(v.Strides), filled: from.filled, there: true}
	o.from.input = -1
	switch {
	case v.buf == nil && v.inline == nil, v.buf != nil && v.owner == nil:
		return errNoTake
	case v.buf == nil:
		var ok bool
		if o.from, ok = t.dry.inlineOf(v.inline); !ok {
			o.from.input, o.inline = -1, v.inline
		}
	default:
		at := t.seatOf(v.buf)
		s := &t.seats[at]
		o.offset -= s.base
		if store, known := t.storages[v.owner]; known {
			o.store = store
		} else {
			o.store = int32(len(t.stores))
			t.storages[v.owner] = o.store
			t.stores = append(t.stores, takeStore{seat: at, first: i, external: v.owner.external && s.input < 0})
		}
		s.store = o.store
	}
	t.outs[i] = o
	return nil
}

// finish finds between which commands seats are needed, and from which command on none may be left out.
func (t *take) finish() {
	t.indivisible = len(t.cmds)
	for i := range t.cmds {
		c := &t.cmds[i]
		for k := range c.args {
			at := c.args[k].seat
			if at < 0 {
				continue
			}
			s := &t.seats[at]
			if s.first < 0 {
				s.first = int32(i)
			}
			s.last = int32(i)
			if s.input >= 0 && c.writesTo(k) {
				s.written = true
				t.indivisible = min(t.indivisible, i)
				if s.store >= 0 {
					t.stores[s.store].taken = true
				}
			}
		}
		if p := c.pipeline; p != nil && !slices.Contains(t.libs, p.Library()) {
			t.libs = append(t.libs, p.Library())
		}
	}
	for i := range t.seats {
		s := &t.seats[i]
		if s.input >= 0 || s.first < 0 && s.store < 0 {
			continue
		}
		if s.first < 0 { // nothing is written to the output
			t.begin = append(t.begin, int32(i))
			continue
		}
		c := &t.cmds[s.first]
		c.begin = append(c.begin, int32(i))
		if s.store < 0 && !s.checked {
			last := &t.cmds[s.last]
			last.end = append(last.end, int32(i))
		}
	}
	t.share()
	t.checksLate = slices.ContainsFunc(t.units, func(u takeUnit) bool {
		return len(u.checks) > 0 && !u.again && int(u.last) > t.indivisible
	})
	t.measure()
	t.dry, t.ahead, t.numbers, t.storages = nil, nil, nil, nil
}

// Small memory that nobody sees after the call shares a buffer, each part of which is one seat's: a buffer of its own
// takes longer than the command that writes it.
const (
	mostCommons = 64 << 10
	commonAlign = 256 // alignment
)

// share gives small seats their places in the buffer that they share.
func (t *take) share() {
	n := 0
	for i := range t.seats {
		s := &t.seats[i]
		if s.input >= 0 || s.store >= 0 || s.first < 0 || s.checked || s.upload || !s.fill || s.length >= leastFree {
			continue
		}
		if end := t.commons + (s.length+commonAlign-1)/commonAlign*commonAlign; end <= mostCommons {
			s.common, s.at, t.commons = true, t.commons, end
			n++
		}
	}
	if n == 1 {
		for i := range t.seats {
			t.seats[i].common = false
		}
		t.commons = 0
	}
}

// writesTo reports whether a command writes to what its k-th argument is bound to.
func (c *takeCommand) writesTo(k int) bool {
	if c.kind == metal.CmdDispatch {
		return c.pipeline.Writes(k)
	}
	return k < c.writes
}

// callsWithin reports whether a library's routine is called among the commands of which none may be left out.
func (t *take) callsWithin() bool {
	return slices.ContainsFunc(t.cmds[t.indivisible:], func(c takeCommand) bool { return c.kind == metal.CmdCall })
}

// measure finds what the take takes in memory.
func (t *take) measure() {
	t.bytes = takeBytes + seatBytes*int64(len(t.seats)) + commandBytes*int64(len(t.cmds)+len(t.units)+len(t.outs))
	for i := range t.cmds {
		t.bytes += bindingBytes * int64(len(t.cmds[i].args))
		for k := range t.cmds[i].args {
			t.bytes += int64(len(t.cmds[i].args[k].bytes))
		}
	}
	for i := range t.seats {
		t.bytes += int64(len(t.seats[i].bytes))
	}
}
