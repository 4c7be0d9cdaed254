package interp

import (
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/internal/brief"
	"github.com/mlxlua/mlxlua/metal/kerneltest"
	"github.com/mlxlua/mlxlua/metal/kir"
	"github.com/mlxlua/mlxlua/metal/launch"
)

// mutate changes one thing about a kernel, sensible or not.
func mutate(r *rand.Rand, k *kir.Kernel) {
	var all []*kir.Instr
	k.Body.Walk(func(in *kir.Instr) { all = append(all, in) })
	in, other := all[r.IntN(len(all))], all[r.IntN(len(all))]
	switch r.IntN(10) {
	case 0:
		in.Op = kir.Op(r.IntN(70))
	case 1:
		in.Type = kir.Type(r.IntN(20))
	case 2:
		in.Mode = kir.Mode(r.IntN(60))
	case 3:
		in.Imm = []uint64{r.Uint64(), uint64(r.IntN(40)), 4, 32}[r.IntN(4)]
	case 4:
		if len(in.Args) > 0 {
			in.Args[r.IntN(len(in.Args))] = other
		}
	case 5:
		in.Args = append(in.Args, other)
	case 6:
		in.Target = other
	case 7:
		if len(in.Args) > 0 {
			in.Args[0] = in.Args[len(in.Args)-1]
		}
	case 8:
		in.Body, other.Body = other.Body, in.Body
	case 9:
		k.Params[r.IntN(len(k.Params))].Space = kir.Space(r.IntN(5))
	}
}

// clone returns a kernel that can be changed alone.
func clone(k *kir.Kernel) *kir.Kernel {
	to := map[*kir.Instr]*kir.Instr{}
	var block func(b *kir.Block) *kir.Block
	block = func(b *kir.Block) *kir.Block {
		if b == nil {
			return nil
		}
		c := &kir.Block{}
		for _, in := range b.Instrs {
			x := *in
			to[in], x.Target, x.Args = &x, to[in.Target], nil
			for _, a := range in.Args {
				x.Args = append(x.Args, to[a])
			}
			x.Body, x.Else = block(in.Body), block(in.Else)
			c.Instrs = append(c.Instrs, &x)
		}
		return c
	}
	c := *k
	c.Body, c.Params = block(k.Body), append([]kir.Param(nil), k.Params...)
	return &c
}

// TestMutatedKernels: whatever a kernel is, it is refused, fails or runs; nothing panics.
func TestMutatedKernels(t *testing.T) {
	t.Parallel()
	brief.OnlyValues(t)
	r := rand.New(rand.NewPCG(9, 9))
	ran := 0
	var kernels []*kir.Kernel
	for seed := uint64(0); len(kernels) < 40; seed++ {
		if k := compile(t, kerneltest.New(seed, kerneltest.Threadgroups)); k != nil && k.NumInstrs < 800 {
			kernels = append(kernels, k)
		}
	}
	c := kerneltest.Case{Grid: [3]int{70, 1, 1}}
	all := c.Buffers()
	for i := range uint64(1500) {
		k := clone(kernels[i%40])
		for range 1 + r.IntN(2) {
			mutate(r, k)
		}
		if r.IntN(2) == 0 && k.Verify() == nil {
			k.Renumber() // bodies may have been exchanged
		}
		p, err := Prepare(k, nil)
		if err != nil {
			require.NotEmpty(t, err.Error())
			continue
		}
		require.NotEmpty(t, k.String())
		ran++
		var stop atomic.Bool
		timer := time.AfterFunc(50*time.Millisecond, func() { stop.Store(true) })
		buffers, _ := kerneltest.Bind(k, all)
		err = kerneltest.Run(p.NewRun, launch.Launch{Grid: [3]int{70, 1, 1}, Threadgroup: [3]int{40, 1, 1}, Interrupt: &stop,
			Validate: i%2 == 0, Buffers: buffers, ThreadgroupBytes: make([]int, len(buffers))}, 0)
		timer.Stop()
		if err != nil {
			require.NotEmpty(t, err.Error())
		}
	}
	require.Greater(t, ran, 300)
}
