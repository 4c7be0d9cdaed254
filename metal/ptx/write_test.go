package ptx_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/interp"
	"github.com/mlxlua/mlxlua/metal/kerneltest"
	"github.com/mlxlua/mlxlua/metal/kir"
	"github.com/mlxlua/mlxlua/metal/launch"
	"github.com/mlxlua/mlxlua/metal/ptx"
)

// A machine with a card need not have Go. TestWrite writes texts, inputs and what the interpreter makes of them to a
// folder; testdata/run.py, which needs python3 and NVIDIA's driver, runs them there and compares:
//
//	go test ./metal/ptx -run TestWrite -ptx.write FOLDER -ptx.programs 500
//	python3 metal/ptx/testdata/run.py FOLDER
var folder = flag.String("ptx.write", "", "where TestWrite writes cases for testdata/run.py")

// written is a case as run.py reads it. Bytes are places in the file of bytes: offset and length.
type written struct {
	Name    string
	Entry   string
	Text    [2]int
	Args    [2]int
	Blocks  [3]int
	Block   int
	Shared  int
	Buffers [][3][2]int // what is bound, what it then holds, and where in the parameter its address goes (and 0)
	Fault   bool        // it faults
	Pointer *uint64     // where, if that is known

	Endless bool // it must be stopped
}

type writer struct {
	bytes bytes.Buffer
	seen  map[[32]byte][2]int
	cases []written
}

func (w *writer) put(b []byte) [2]int {
	h := sha256.Sum256(b)
	at, ok := w.seen[h]
	if !ok {
		at = [2]int{w.bytes.Len(), len(b)}
		w.bytes.Write(b)
		w.seen[h] = at
	}
	return at
}

// add writes a case with what the interpreter makes of it.
func (w *writer) add(t *testing.T, name string, k *kir.Kernel, l launch.Launch, opt ptx.Options) {
	text, err := ptx.Print(k, opt)
	require.NoError(t, err, name)
	c := written{Name: name, Entry: text.Entry, Text: w.put([]byte(text.String())),
		Blocks: ptx.Blocks(l.Grid, l.Threadgroup), Block: ptx.Block(l.Threadgroup)}
	a := ptx.Arguments{Grid: l.Grid, Threadgroup: l.Threadgroup, Tag: 7, Addresses: make([]uint64, len(k.Params)),
		Lengths: make([]uint64, len(k.Params)), Inline: make([][]byte, len(k.Params))}
	for i, p := range k.Params {
		a.Lengths[i] = uint64(len(l.Buffers[i]))
		if p.Space == kir.Threadgroup {
			a.Lengths[i] = uint64(l.ThreadgroupBytes[i])
		} else if text.Layout.Objects[i].Inline > 0 {
			a.Inline[i] = l.Buffers[i]
		}
	}
	args, err := a.Bytes(&text.Layout)
	require.NoError(t, err, name)
	c.Args, c.Shared = w.put(args), text.Layout.Shared(&a)
	before := make([][2]int, len(k.Params))
	for i := range before {
		before[i] = w.put(l.Buffers[i])
	}
	if name == "endless" {
		c.Endless = true
	} else {
		p, err := interp.Prepare(k, nil)
		require.NoError(t, err)
		err = kerneltest.Run(p.NewRun, l, 0)
		var fault *launch.Fault
		if c.Fault = errors.As(err, &fault); !c.Fault {
			require.NoError(t, err, name)
		}
	}
	if name == "fault" {
		pointer := kir.PtrParam(1) | 4096
		c.Pointer = &pointer
	}
	for i, p := range k.Params {
		if p.Space != kir.Threadgroup && a.Inline[i] == nil {
			c.Buffers = append(c.Buffers, [3][2]int{before[i], w.put(l.Buffers[i]), {112 + 16*i, 0}})
		}
	}
	w.cases = append(w.cases, c)
}

func TestWrite(t *testing.T) {
	t.Parallel()
	if *folder == "" {
		t.Skip("no folder given by -ptx.write")
	}
	w := &writer{seen: map[[32]byte][2]int{}}
	for _, c := range append(tableCases(), wrongCases()...) {
		w.add(t, c.name, c.k, c.launch, ptx.Options{SM: 90})
	}
	for seed := range uint64(*programs) {
		k := program(t, seed)
		if k == nil {
			continue
		}
		c := kerneltest.New(seed, min(kerneltest.Reach(seed%4), kerneltest.Threadgroups))
		c.Seed %= 8 // few inputs
		opt := ptx.Options{SM: 90}
		bound, fixed := kerneltest.Bind(k, c.Buffers())
		if seed%2 == 1 {
			for i, b := range bound {
				opt.Inline = append(opt.Inline, 0)
				if fixed[i] {
					opt.Inline[i] = len(b)
				}
			}
		}
		l := launch.Launch{Grid: c.Grid, Threadgroup: c.Threadgroup, Buffers: bound}
		w.add(t, fmt.Sprint("seed ", seed), k, l, opt)
	}
	index, err := json.Marshal(w.cases)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(*folder, "cases.json"), index, 0o644))
	f, err := os.Create(filepath.Join(*folder, "bytes.gz"))
	require.NoError(t, err)
	z := gzip.NewWriter(f)
	_, err = z.Write(w.bytes.Bytes())
	require.NoError(t, err)
	require.NoError(t, z.Close())
	require.NoError(t, f.Close())
}

// wrongCases must be stopped, and access what they must not.
func wrongCases() []testCase {
	b := newBuilder("endless")
	v := b.Var("", kir.U64)
	b.Loop(func(loop *kir.Instr) {
		b.Set(v, b.Op(kir.Add, kir.U64, b.Get(v), b.operand(0, kir.U64)))
		b.If(b.Op(kir.Eq, kir.Bool, b.Get(v), b.Int(kir.U64, 1234567)), func() { b.Break(loop) }, nil)
	})
	b.keep(b.Get(v))
	endless := b.done()
	b = newBuilder("fault")
	five := b.Op(kir.Eq, kir.Bool, b.gid, b.Int(kir.U32, 5))
	at := b.Op(kir.Select, kir.U32, five, b.Int(kir.U32, 512), b.gid)
	b.stored = 2
	b.Store(b.out, at, b.operand(0, kir.U64))
	fault := b.done()
	return []testCase{endless, fault}
}
