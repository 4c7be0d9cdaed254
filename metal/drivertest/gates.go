package drivertest

import (
	"errors"
	"slices"

	"github.com/mlxlua/mlxlua/metal"
)

// caseGates: commands behind a gate run unless one of its words is set, by then, by the commands before; what is behind
// a shut gate stays as it was, in later command buffers of the chain too.
func caseGates(b *bench) {
	x := b.zeros(1000)
	words, into := b.zeros(4), b.zeros(2)
	word := func(buf *metal.Buffer, i int) metal.Range {
		return metal.Range{Buf: buf, Offset: int64(4 * i), Bytes: 4}
	}
	for shut := range 4 { // the word that is set; 3: none
		clean := b.begin()
		for _, buf := range []*metal.Buffer{x, words} {
			must.NoError(b.t, clean.Encoder().Fill(buf.All(), []byte{0}))
		}
		must.NoError(b.t, clean.Encoder().Fill(into.All(), []byte{7}))
		b.finish(clean)
		var chain metal.Chain
		cbs := []*metal.CommandBuffer{b.chained(&chain)}
		last := func() *metal.CommandBuffer { return cbs[len(cbs)-1] }
		gate := func(into metal.Range, looks ...metal.Range) {
			err := last().Encoder().Gate(looks, into)
			if errors.Is(err, metal.ErrGateBegins) {
				must.True(b.t, !b.drv.Info().Skips, "%v", err)
				cbs = append(cbs, b.chained(&chain))
				err = last().Encoder().Gate(looks, into)
			}
			must.NoError(b.t, err)
		}
		twice := func() { b.encode(last(), "twice_plus_one", threads(1000), threads(10), buf("x", x)) }
		set := func(i int) { // if it is the one that is to be
			if i == shut {
				b.encode(last(), "store_at", threads(1), threads(1), buf("target", words), word32("at", uint32(i)))
			}
		}
		twice()
		set(0)
		gate(word(into, 0), word(words, 0))
		twice()
		twice()
		set(1)
		set(2)
		cbs = append(cbs, b.chained(&chain))
		gate(word(into, 1), metal.Range{Buf: words, Offset: 4, Bytes: 8})
		twice()
		cbs = append(cbs, b.chained(&chain))
		twice()
		for _, cb := range cbs {
			must.NoError(b.t, cb.Commit())
		}
		skipped := false
		for _, cb := range cbs {
			err := cb.Wait(bg)
			var e *metal.Interrupted
			skipped = skipped || err != nil
			if errors.As(err, &e) {
				must.ErrorIs(b.t, e, metal.ErrSkipped)
				must.Equal(b.t, -1, e.Midway)
				must.True(b.t, slices.Contains(e.Ran, false), "all have run")
			} else {
				must.NoError(b.t, err)
			}
		}
		must.Equal(b.t, shut < 3, skipped, "word %d", shut)
		must.Equal(b.t, slices.Repeat([]uint32{[]uint32{1, 7, 7, 31}[shut]}, 1000), b.read(x))
	}
	release(x, words, into)
}

// caseFaultWord: a command that fails sets its word, so that a gate behind it is shut.
func caseFaultWord(b *bench) {
	if b.drv.Info().Faults != metal.FaultsPlaced {
		return
	}
	for _, at := range []uint32{0, 100} {
		x, target, words := b.zeros(10), b.zeros(4), b.zeros(2)
		fault, into := metal.Range{Buf: words, Bytes: 4}, metal.Range{Buf: words, Offset: 4, Bytes: 4}
		var chain metal.Chain
		cbs := []*metal.CommandBuffer{b.chained(&chain)}
		must.NoError(b.t, cbs[0].Encoder().Fault(fault))
		b.encode(cbs[0], "store_at", threads(1), threads(1), buf("target", target), word32("at", at))
		must.NoError(b.t, cbs[0].Encoder().Fault(metal.Range{}))
		err := cbs[0].Encoder().Gate([]metal.Range{fault}, into)
		if errors.Is(err, metal.ErrGateBegins) {
			cbs = append(cbs, b.chained(&chain))
			err = cbs[1].Encoder().Gate([]metal.Range{fault}, into)
		}
		must.NoError(b.t, err)
		b.encode(cbs[len(cbs)-1], "twice_plus_one", threads(10), threads(10), buf("x", x))
		for _, cb := range cbs {
			must.NoError(b.t, cb.Commit())
		}
		var errs []error
		for _, cb := range cbs {
			errs = append(errs, cb.Wait(bg))
		}
		if at == 0 {
			must.NoError(b.t, errors.Join(errs...))
			must.Equal(b.t, slices.Repeat([]uint32{1}, 10), b.read(x))
		} else {
			must.ErrorIs(b.t, errors.Join(errs...), metal.ErrSkipped)
			must.Equal(b.t, make([]uint32, 10), b.read(x))
		}
		release(x, target, words)
	}
}
