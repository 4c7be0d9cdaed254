package tensor

import (
	"errors"
	"fmt"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/tensor/kernelgen"
)

// contiguous copies an operand to a temporary.
func (x *executor) contiguous(o Operand) (Operand, error) {
	to, err := x.memory.temp(o.Spec)
	if err != nil {
		return Operand{}, err
	}
	return to, x.copyTo(to, o)
}

// copied copies an operand to a storage of its own.
func (x *executor) copied(o Operand) (Operand, error) {
	origin := x.memory.origin(x.batcher.op.copied)
	buf, err := x.memory.alloc(o.NBytes(), &origin, true)
	if err != nil {
		return Operand{}, err
	}
	st := &storage{dev: x.dev, stream: x.s, buf: buf}
	to := Operand{o.Spec, View{buf: buf, owner: st, Strides: o.Shape.Strides()}}
	if err := x.copyTo(to, o); err != nil {
		buf.Release()
		return Operand{}, err
	}
	return to, nil
}

// copyTo encodes a copy with broadcasting and conversion.
func (x *executor) copyTo(dst, src Operand) error {
	if s, err := Broadcast(src.Shape, dst.Shape); err != nil || !s.Equal(dst.Shape) {
		return fmt.Errorf("an array of shape %v cannot be copied to shape %v", src.Shape, dst.Shape)
	}
	if dst.Shape.Size() == 0 {
		return nil
	}
	if dst.buf == nil {
		return errors.New("BUG: copy into a constant")
	}
	src.View = src.broadcast(src.Shape, dst.Shape)
	n := dst.NBytes()
	if dst.DType == src.DType && src.buf != nil && src.Contiguous(dst.Shape) && dst.RowContiguous() {
		return x.batcher.encoder("copy").Copy(metal.Range{Buf: dst.buf, Offset: dst.OffsetBytes, Bytes: n},
			metal.Range{Buf: src.buf, Offset: src.OffsetBytes, Bytes: n})
	}
	k := &x.kernel
	*k, x.spare = x.spare, *k
	defer func() {
		k.begin()
		*k, x.spare = x.spare, *k
	}()
	k.ops = []Operand{src}
	if done, err := x.tiled(dst, src); done || err != nil {
		return err
	}
	k.expr.Operands = []kernelgen.Operand{{Type: src.DType.MSL(), Class: classIn(src.View, dst.Shape)}}
	k.expr.Steps = []kernelgen.Step{{Op: "copy", Type: dst.DType.MSL(), Text: conversion(src.DType, dst.DType),
		Args: []int{0}}}
	k.expr.Outputs, k.expr.Out = []int{1}, []kernelgen.Class{kernelgen.Linear}
	return x.general("copy", dst.Shape, []Operand{dst})
}

// tiled encodes a copy between layouts that run along different dimensions, if it is one and long enough.
func (x *executor) tiled(dst, src Operand) (done bool, err error) {
	layout := x.kernel.arrange(dst.Shape, []Operand{src, dst})
	layout.Plan()
	t, ok := layout.Tile(src.DType.Size())
	if !ok {
		return false, nil
	}
	list, wide := t.Numbers()
	from, to, element := src.DType.MSL(), dst.DType.MSL(), conversion(src.DType, dst.DType)
	x.key = fmt.Appendf(x.key[:0], "t %s %s %s %v", from, to, element, wide)
	source := x.source("copy", from == "double" || to == "double", func() string {
		return kernelgen.PrintTile(from, to, element, src.DType.Size(), wide)
	})
	p, err := x.pipeline(source, kernelgen.TileEntry)
	if err != nil {
		return false, err
	}
	numbers, err := x.numbers(list, wide)
	if err != nil {
		return false, err
	}
	enc := x.batcher.encoder("copy")
	enc.SetPipeline(p)
	bindSpan(enc, 0, src, dst.Shape)
	bindSpan(enc, 1, dst, dst.Shape)
	bind(enc, 2, numbers, 0, int64(len(x.kernel.numbers)))
	return true, enc.Dispatch(threads(t.Threads()), groupSize)
}

// conversion is the MSL expression of an element in another dtype.
func conversion(from, to DType) string {
	switch {
	case from == to || !from.IsComplex():
		return "$0"
	case to == Bool:
		return "$0.real != 0 || $0.imag != 0"
	}
	return "$0.real"
}
