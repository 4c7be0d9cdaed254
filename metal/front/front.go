// Package front is what every driver needs to turn MSL text into kernels: it has metal/msl read the text, and tells the
// device model what a kernel's parameters are. No driver but one that hands text through needs another compiler.
package front

import (
	"context"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/kir"
	"github.com/mlxlua/mlxlua/metal/msl"
)

// Text is a compiled source: what kernels it has, and each of them as kir, made when it is asked for. Its methods may
// be called from any goroutine.
type Text interface {
	Names() []string
	Kernel(i int) (*kir.Kernel, error)
	Files() []string // as kir.Module's
}

// Compiler reads MSL text; its error lists all that is wrong with it, but for kernels that are made later.
type Compiler func(ctx context.Context, src metal.Source) (Text, error)

// Compile is the Compiler of drivers. All math modes give the same bits; what a text sees of its own is Clang's macro.
func Compile(ctx context.Context, src metal.Source) (Text, error) {
	var defines []msl.Define
	if src.Options.MathMode == metal.MathFast {
		defines = append(defines, msl.Define{Name: "__FAST_MATH__", Text: "1"})
	}
	given, err := metal.ParseConstants(src.Options.Constants)
	if err != nil {
		return nil, err
	}
	var constants []msl.FunctionConstant
	for _, c := range given {
		constants = append(constants, msl.FunctionConstant(c))
	}
	l, err := msl.Load(msl.Source{Name: src.Label, Text: src.Text}, msl.Options{
		Float64: src.Options.Float64, Portable: src.Options.Portable, Defines: defines, FunctionConstants: constants,
		Stop: func() error { return context.Cause(ctx) },
	})
	if err != nil {
		return nil, err
	}
	return l, nil
}

// Reflect says about a kernel what the device model asks.
func Reflect(k *kir.Kernel) metal.Reflection {
	r := metal.Reflection{Name: k.Name, MaxThreads: k.MaxThreads, Refused: k.Refused,
		Threads: metal.Size{X: k.Threads[0], Y: k.Threads[1], Z: k.Threads[2]}}
	for _, g := range k.Regions {
		if g.Space == kir.Threadgroup {
			r.StaticTG = (r.StaticTG+int64(g.Align)-1)&^int64(g.Align-1) + int64(g.Size)
		}
	}
	for _, p := range k.Params {
		r.Params = append(r.Params, metal.ParamInfo{
			Name: p.Name, Index: p.Index, Threadgroup: p.Space == kir.Threadgroup, Constant: p.Space == kir.Constant,
			ElemSize: p.ElemSize, MinBytes: int64(p.MinBytes), Read: p.Read, Write: p.Write, Atomic: p.Atomic,
			ReadOnly: p.ReadOnly,
		})
	}
	return r
}
