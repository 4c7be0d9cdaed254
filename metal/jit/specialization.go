package jit

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/mlxlua/mlxlua/metal/jit/choose"
	"github.com/mlxlua/mlxlua/metal/jit/native"
	"github.com/mlxlua/mlxlua/metal/launch"

	"github.com/mlxlua/mlxlua/metal/jit/lanes"
	"github.com/mlxlua/mlxlua/metal/kir"
	"github.com/mlxlua/mlxlua/metal/kir/opt"
)

// What specializations and their code take in memory, about.
const (
	specializationBytes = 4 << 10
	page                = 4 << 10
	codeShare           = 100 // of the kernel, in hundredths: what is known of its values, and the layout
)

// specialization is a kernel as it is for launches of which something is known: the kernel optimised for that, and its
// code for each kind of launch. What is known are words that a launch brings along (launch.Launch.Fixed): a stride of 1
// makes neighbouring lanes touch neighbouring memory, a size that is a multiple of 32 lets them share a division, a
// rank unrolls a loop. Then other words may begin to matter, so that specializations are made from specializations,
// beginning with the root, of which nothing is known. All compute the same.
type specialization struct {
	exe   *Executable
	from  *specialization // nil for the root
	facts opt.Facts

	once   sync.Once // of ready, which sets these
	kernel *kir.Kernel
	group  int  // lanes that run together
	wide   bool // it may be whole SIMD-groups all the same: rows are no multiples of half a group
	words  []opt.Word
	loads  []uint8 // see opt.FindWords
	err    error
	// variants: for any threadgroup, for lanes.Geometry.Row, for that and Aligned; the same three with Full; the same six
	// for launches that write past the cache. Then, of whole SIMD-groups: rows that are aligned, also with Full, and both
	// for launches that write past the cache.
	variants [16]variant
	pairs    [2]variant   // by lanes.PairBy - 1; without code where pairing is of no use
	nanos    atomic.Int64 // what a threadgroup last took, 0 if unknown
	fuel     atomic.Int64 // what a call last needed to take callTime, 0 if unknown

	made atomic.Pointer[[]*specialization] // the specializations made from this one
}

// mostSpecializations is how many specializations are made from a kernel's root. When there are that many, launches of
// which something else is known run the best one there is, in the end the root: a kernel that meets ever new sizes is
// not compiled for ever.
const mostSpecializations = 16

// specialize returns the specialization for a launch.
func (p *Executable) specialize(l *launch.Launch) (*specialization, error) {
	f := &p.root
	for {
		if err := f.ready(); err != nil {
			return nil, err
		}
		facts := f.know(l)
		if facts == 0 {
			return f, nil
		}
		next := f.find(facts)
		if next == nil {
			if next = p.grow(f, facts); next == nil {
				return f, nil
			}
		}
		f = next
	}
}

// know looks at the words that a launch brings along; 0 means that they are of no use.
func (f *specialization) know(l *launch.Launch) (facts opt.Facts) {
	if len(f.words) == 0 || l.Fixed == nil {
		return 0
	}
	useful := false
	for i := range f.words {
		w := &f.words[i]
		b := l.Buffers[w.Param]
		if !l.Fixed[w.Param] || len(b) < w.End() {
			continue
		}
		var v uint64
		if b = b[w.Offset:]; w.Type.Size() == 8 {
			v = binary.LittleEndian.Uint64(b)
		} else {
			v = uint64(binary.LittleEndian.Uint32(b))
		}
		known := w.Know(v)
		useful = useful || known > opt.There
		facts = facts.With(i, known)
	}
	if !useful {
		return 0
	}
	return facts
}

// find returns the specialization made from this one for some facts, or nil.
func (f *specialization) find(facts opt.Facts) *specialization {
	if made := f.made.Load(); made != nil {
		for _, g := range *made {
			if g.facts == facts {
				return g
			}
		}
	}
	return nil
}

// grow makes a specialization from another one, unless there are too many.
func (p *Executable) grow(from *specialization, facts opt.Facts) *specialization {
	p.mu.Lock()
	defer p.mu.Unlock()
	if g := from.find(facts); g != nil || p.specializations == mostSpecializations {
		return g
	}
	p.specializations++
	g := &specialization{exe: p, from: from, facts: facts}
	var made []*specialization
	if old := from.made.Load(); old != nil {
		made = append(made, *old...)
	}
	made = append(made, g)
	from.made.Store(&made)
	return g
}

// variant is a kernel's machine code for one kind of launch.
type variant struct {
	once   sync.Once
	code   *choose.Code
	mem    *native.Code
	err    error
	blocks sync.Pool
	paired bool // SIMD-groups run in pairs: which of several faults comes first is not known
}

// ready makes the kernel, once.
func (f *specialization) ready() error {
	f.once.Do(func() {
		p := f.exe
		defer p.bug(&f.err)
		if from := f.from; from == nil {
			f.kernel = opt.Run(p.kernel, opt.Launch{})
		} else {
			f.kernel = opt.Run(from.kernel, opt.Launch{Words: from.words, Loads: from.loads, Facts: f.facts})
		}
		f.group = choose.LanesAtOnce(f.kernel, p.level.target())
		f.wide = f.group < kir.Lanes && choose.IsStraightLine(f.kernel, p.level.target()) && !f.facts.Has(opt.By16)
		f.words, f.loads = opt.FindWords(f.kernel)
		p.bytes.Add(specializationBytes + f.kernel.Bytes())
	})
	return f.err
}

// variant returns the best code for threadgroups of a size; their first threads' x are multiples of stride, and past
// says that the launch writes past the cache.
func (f *specialization) variant(size [3]int, stride int, nonTemporal bool) (*variant, error) {
	if f.exe.level.target().Masks() && f.group == kir.Lanes && stride%kir.Lanes == 0 {
		by := lanes.PairBy(0)
		switch {
		case size[0] == kir.Lanes && size[1]%2 == 0:
			by = lanes.PairRows
		case size[0]%(2*kir.Lanes) == 0:
			by = lanes.PairColumns
		}
		if by != 0 {
			v := &f.pairs[by-1]
			v.once.Do(func() { f.compile(v, lanes.Geometry{Row: true, Aligned: true, Full: true, Pair: by}, false) })
			var u *Unsupported
			switch {
			case v.err != nil && !errors.As(v.err, &u):
				return nil, v.err
			case v.err == nil && v.code != nil:
				return v, nil
			}
		}
	}
	return f.plain(size, stride, nonTemporal)
}

// plain returns the code for threadgroups of a size that runs one SIMD-group after the other. Short kernels run whole
// SIMD-groups at a time where those lie in rows: fewer lanes would share what a group costs.
func (f *specialization) plain(size [3]int, stride int, nonTemporal bool) (*variant, error) {
	first, n, kinds, group := 0, 0, 3, f.group
	rows := func(width int) bool { return size[1]*size[2] == 1 || size[0]%width == 0 }
	var geo lanes.Geometry
	switch {
	case f.wide && rows(kir.Lanes) && stride%kir.Lanes == 0:
		first, kinds, group = 12, 1, kir.Lanes
		geo = lanes.Geometry{Row: true, Aligned: true, Wide: true}
	case rows(group) && stride%group == 0:
		n, geo.Row, geo.Aligned = 2, true, true
	case rows(group):
		n, geo.Row = 1, true
	}
	if size[0]*size[1]*size[2]%group == 0 {
		n, geo.Full = n+kinds, true
	}
	if nonTemporal {
		n += 2 * kinds
	}
	v := &f.variants[first+n]
	v.once.Do(func() { f.compile(v, geo, nonTemporal) })
	return v, v.err
}

// bug turns a panic of the compiler into an error. It is not an Unsupported: whoever falls back on interp would never
// know.
func (p *Executable) bug(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("[%s] BUG: the compiler of machine code: %v", p.kernel.Name, r)
	}
}

// compile makes the code of a variant, or says in it why there is none.
func (f *specialization) compile(v *variant, geo lanes.Geometry, nonTemporal bool) {
	p, k := f.exe, f.kernel
	defer p.bug(&v.err)
	if geo.Pair != 0 {
		if k = lanes.Pair(k, geo.Pair, p.pairAlways); k == nil {
			return
		}
		v.paired = true
	}
	if p.before != nil {
		if v.err = p.before(k, geo.Pair != 0); v.err != nil {
			return
		}
	}
	o := choose.Options{Target: p.level.target(), Geometry: geo, NonTemporal: nonTemporal, CoarseLives: p.coarseLives}
	if v.code, v.err = choose.Compile(k, o); v.err == nil {
		v.mem, v.err = native.New(v.code.Bytes)
		n := int64(len(v.code.Bytes))
		p.bytes.Add(n + (n+page-1)/page*page + k.Bytes()*codeShare/100)
	}
}
