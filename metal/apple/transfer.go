package apple

import (
	"bytes"
	"context"
	_ "embed" // transfer.metal
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/apple/objc"
)

//go:embed transfer.metal
var transferText string

// transfers are the kernels that copy and fill, compiled when they are first needed.
type transfers struct {
	once    sync.Once
	module  *module // which holds the kernels' pipelines
	kernels map[string]*kernel
	err     error
}

// transfer returns a kernel of ours.
func (d *Driver) transfer(c *objc.Caller, name string) (*kernel, error) {
	t := &d.own
	t.once.Do(func() {
		src := metal.Source{Label: "transfer", Text: transferText, Options: metal.Options{Portable: true}}
		text, err := d.compile(context.Background(), src)
		if err == nil {
			t.module, err = d.library(c, src, text)
		}
		t.kernels = map[string]*kernel{}
		for i := 0; err == nil && i < len(text.Names()); i++ {
			var r metal.Reflection
			if r, err = t.module.make(c, i); err == nil {
				err = r.Refused
			}
			t.kernels[r.Name] = t.module.kernels[i].Load()
		}
		t.err = err
	})
	return t.kernels[name], t.err
}

// units are the sizes of elements that the kernels are made for.
var units = [...]int64{16, 4, 1}

// unitOf is the largest unit that all the numbers are multiples of.
func unitOf(numbers ...int64) int64 {
	for _, u := range units {
		whole := true
		for _, n := range numbers {
			whole = whole && n%u == 0
		}
		if whole {
			return u
		}
	}
	return 1
}

// copy encodes dst = src.
func (e *encoder) copy(dst, src metal.Range) error {
	if err := inside(dst); err != nil {
		return err
	}
	if err := inside(src); err != nil {
		return err
	}
	to, at := place(dst)
	return e.copyTo(to, at, src)
}

// copyTo encodes a copy of a range to a buffer of Metal's.
func (e *encoder) copyTo(to objc.Object, toAt int64, src metal.Range) error {
	from, fromAt := place(src)
	unit := unitOf(toAt, fromAt, src.Bytes)
	k, err := e.q.d.transfer(e.c, fmt.Sprintf("copy_%d", unit))
	if err != nil {
		return err
	}
	e.setPipeline(k.pipeline)
	e.setBuffer(from, 0, 0)
	e.setBuffer(to, 0, 1)
	e.pieces(k, src.Bytes/unit, fromAt/unit, toAt/unit, true)
	return nil
}

// suit makes copies of those arguments of a kernel that lie where Metal binds nothing in constant memory: half types of
// an odd place. Clone has the copies instead of them; nil: there are none.
func (e *encoder) suit(params []metal.ParamInfo, args []metal.Arg) (clone []objc.Object, err error) {
	for i := range args {
		r := args[i].Buffer
		if r.Buf == nil || !params[i].Constant {
			continue
		}
		if _, at := place(r); at%constantAlign == 0 {
			continue
		}
		if clone == nil {
			clone = make([]objc.Object, len(args))
		}
		if clone[i], err = e.newBytes(make([]byte, max(r.Bytes, 1))); err != nil {
			return nil, err
		}
		if err := e.copyTo(clone[i], 0, r); err != nil {
			return nil, err
		}
	}
	if clone != nil {
		e.barrier()
	}
	return clone, nil
}

// constantAlign is what offsets in constant memory are multiples of.
const constantAlign = 4

// fill encodes dst = pattern, repeated.
func (e *encoder) fill(dst metal.Range, pattern []byte) error {
	if err := inside(dst); err != nil {
		return err
	}
	if n := units[0]; n%int64(len(pattern)) == 0 {
		pattern = bytes.Repeat(pattern, int(n)/len(pattern))
	}
	to, at := place(dst)
	unit := unitOf(at, dst.Bytes, int64(len(pattern)))
	k, err := e.q.d.transfer(e.c, fmt.Sprintf("fill_%d", unit))
	if err != nil {
		return err
	}
	e.setPipeline(k.pipeline)
	e.setBuffer(to, 0, 0)
	if err := e.setBytes(pattern, 1); err != nil {
		return err
	}
	e.pieces(k, dst.Bytes/unit, at/unit, int64(len(pattern))/unit, false)
	return nil
}

// mostThreads is how many threads a launch has at most, as positions are 32 bits wide; groupThreads how many a
// threadgroup has.
const (
	mostThreads  = 1 << 30
	groupThreads = 256
)

// pieces launches a kernel of ours for n elements; the numbers at are counted in them, and both grow along in a copy.
func (e *encoder) pieces(k *kernel, n, first, second int64, both bool) {
	most := int64(mostThreads)
	if !both {
		most -= most % second
	}
	for done := int64(0); done < n; done += most {
		at := binary.LittleEndian.AppendUint64(nil, uint64(first+done))
		if both {
			at = binary.LittleEndian.AppendUint64(at, uint64(second+done))
		} else {
			at = binary.LittleEndian.AppendUint64(at, uint64(second))
		}
		_ = e.setBytes(at, 2) // few enough
		count := int(min(most, n-done))
		e.launch(metal.Size{X: count, Y: 1, Z: 1}, metal.Size{X: min(count, k.threads, groupThreads), Y: 1, Z: 1})
	}
}
