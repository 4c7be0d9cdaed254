package metal

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// A gate keeps commands from running after something has failed: they would write over what is needed again then. What
// fails notes that in words of device memory: a kernel that checks something in a word of its own, a command in the one
// that Encoder.Fault names. A gate looks at such words. Where one of them is not 0 the commands behind it do not run,
// in its own command buffer and in later ones of the chain; their command buffers end with an Interrupted.
//
// A device whose Info.Skips is set skips commands itself: a gate is a command that sets a word, and each command behind
// it names that word in Unless. On others a gate is the beginning of a command buffer, which is handed over when those
// before it have run and the host has looked; so is a command buffer in which something is called behind a gate.

// wordBytes is the length of a word that a gate looks at.
const wordBytes = 4

// ErrGateBegins is what errors of Encoder.Gate are on a device that cannot skip commands, where the command buffer
// has some already: the gate is to be the beginning of the next one.
var ErrGateBegins = errors.New("a gate begins a command buffer on this device")

// Gate has the commands that follow, in this command buffer and in later ones of its chain, run only if all words in
// the ranges are 0 when the commands before have run. Into is a word of the caller's that gates alone use, and that
// keeps its buffer until the chain has ended. It fails with ErrGateBegins where the device asks for that.
func (e *Encoder) Gate(words []Range, into Range) error {
	for _, r := range append(words[:len(words):len(words)], into) {
		switch {
		case r.Buf == nil:
			return fmt.Errorf("[gate] no buffer")
		case !r.inside() || r.Bytes%wordBytes != 0 || r.Offset%wordBytes != 0:
			return fmt.Errorf("[gate] bytes %d to %d of %s are no words", r.Offset, r.Offset+r.Bytes, r.Buf)
		}
	}
	cb := e.cb
	if !cb.dev.info.Skips {
		return e.gateFirst(words)
	}
	if cmds := cb.Commands(); len(cmds) > 0 && cmds[len(cmds)-1].Kind != CmdBarrier {
		if err := e.Barrier(); err != nil {
			return err
		}
	}
	cb.mu.Lock()
	err := cb.open("gate")
	e.uses = e.uses[:0]
	for _, r := range append(words[:len(words):len(words)], into) {
		if err == nil {
			err = e.hold(r.Buf)
		}
	}
	if err == nil {
		cb.add(&Command{Kind: CmdGate, Label: e.label, Unless: e.unless, Words: append([]Range(nil), words...), Dst: into})
		e.unless = into
	}
	cb.mu.Unlock()
	if err != nil {
		return err
	}
	cb.chain.mu.Lock()
	cb.chain.gated, cb.chain.word = true, into
	cb.chain.mu.Unlock()
	return e.Barrier()
}

// gateFirst makes the command buffer one that is handed over only if the words are 0.
func (e *Encoder) gateFirst(words []Range) error {
	cb := e.cb
	cb.mu.Lock()
	defer cb.mu.Unlock()
	if err := cb.open("gate"); err != nil {
		return err
	}
	if e.n > 0 {
		return ErrGateBegins
	}
	e.uses = e.uses[:0]
	for _, r := range words {
		if err := e.hold(r.Buf); err != nil {
			return err
		}
	}
	cb.gate = append(cb.gate, words...)
	cb.chain.mu.Lock()
	cb.chain.gated = true
	cb.chain.mu.Unlock()
	return nil
}

// Fault says where commands that follow note that they have failed, until the next Fault: a word that becomes 1. The
// zero Range says nowhere.
func (e *Encoder) Fault(word Range) error {
	if word.Buf != nil && word != e.fault {
		e.cb.mu.Lock()
		defer e.cb.mu.Unlock()
		e.uses = e.uses[:0]
		if err := e.hold(word.Buf); err != nil {
			return fmt.Errorf("[fault] %w", err)
		}
	}
	e.fault = word
	return nil
}

// set reports whether one of the words of a range is not 0. A word that cannot be read is one that is not 0: its device
// is lost.
func (r Range) set() bool {
	b := make([]byte, r.Bytes)
	if err := r.Buf.ReadBytes(b, r.Offset); err != nil {
		return true
	}
	for ; len(b) > 0; b = b[wordBytes:] {
		if binary.LittleEndian.Uint32(b) != 0 {
			return true
		}
	}
	return false
}

// shut reports whether a gate that the host looks at keeps a command buffer that is next from being handed over. Those
// before it have run.
func (cb *CommandBuffer) shut() bool {
	ch := cb.chain
	ch.mu.Lock()
	shut := ch.shut
	ch.mu.Unlock()
	for _, r := range cb.gate {
		shut = shut || r.set()
	}
	if shut {
		ch.mu.Lock()
		ch.shut = true
		ch.mu.Unlock()
	}
	return shut
}

// skipped notes in ran which commands did not run since their word is set. The command buffer has run on a device that
// skips.
func (cb *CommandBuffer) skipped(ran *[]bool) {
	cmds := cb.rec.cmds
	var word Range
	set := false
	for i := range cmds {
		u := cmds[i].Unless
		if u.Buf == nil {
			continue
		}
		if u != word {
			word, set = u, u.set()
		}
		if !set {
			continue
		}
		if *ran == nil {
			*ran = make([]bool, len(cmds))
			for j := range *ran {
				(*ran)[j] = true
			}
		}
		(*ran)[i] = false
	}
}
