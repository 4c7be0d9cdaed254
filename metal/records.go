package metal

import "sync"

// records is what a command buffer writes down until its end: commands and what they refer to. Records are used again,
// for making them is what an encoder would otherwise spend its time on.
type records struct {
	uses  ledger
	cmds  []Command
	args  []Arg  // the newest piece of what Command.Args are cut from
	bytes []byte // the same of Arg.Bytes
	libs  []*Library
	pipes []*Pipeline
	parts []StepPart
	kept  []*KeptStep // by part
}

var spareRecords = sync.Pool{New: func() any { return &records{} }}

// maxSpare is the most commands, and records of buffers, of what is used again: what was larger is left to the garbage
// collector.
const maxSpare = 4096

// done gives the records back: nobody may refer to them any more.
func (r *records) done() {
	if cap(r.cmds) > maxSpare || r.uses.n > maxSpare || cap(r.args) > 8*maxSpare || cap(r.bytes) > 32*maxSpare {
		return
	}
	r.uses.empty()
	clear(r.cmds)
	clear(r.args)
	clear(r.libs)
	clear(r.pipes)
	clear(r.parts)
	clear(r.kept)
	r.cmds, r.args, r.bytes, r.libs, r.pipes = r.cmds[:0], r.args[:0], r.bytes[:0], r.libs[:0], r.pipes[:0]
	r.parts, r.kept = r.parts[:0], r.kept[:0]
	spareRecords.Put(r)
}

// keepArgs copies arguments, inline bytes too but for shared ones, to where commands keep them.
func (r *records) keepArgs(args []Arg, e *Encoder) []Arg {
	r.args = room(r.args, len(args), 128)
	at := len(r.args)
	r.args = append(r.args, args...)
	kept := r.args[at:len(r.args):len(r.args)]
	for i := range kept {
		if b := kept[i].Bytes; len(b) > 0 && !e.shares(b) {
			r.bytes = room(r.bytes, len(b), 2048)
			from := len(r.bytes)
			r.bytes = append(r.bytes, b...)
			kept[i].Bytes = r.bytes[from:len(r.bytes):len(r.bytes)]
		}
	}
	return kept
}

// room returns a slice that n elements can be appended to without moving those before, which others refer to.
func room[T any](s []T, n, least int) []T {
	if cap(s)-len(s) >= n {
		return s
	}
	return make([]T, 0, max(2*cap(s), least, n))
}
