package kir

import (
	"errors"
	"fmt"
)

// Limits that Verify enforces, so that executors may recurse over a kernel and size their tables by it.
const (
	// MaxDepth is the deepest nesting of Blocks.
	MaxDepth = 4096
	// MaxInstrs is the largest number of instructions of a kernel.
	MaxInstrs = 1 << 21
	// MaxRegionBytes is the largest size of a Region.
	MaxRegionBytes = 1 << 30
)

// maxErrors bounds how many faults of a kernel Verify lists.
const maxErrors = 20

// Verify checks every kernel of the module; the error joins all that is wrong, at most 20 lines per kernel. Executors
// rely on what it checks: types, scopes, targets, indices, modes and dense IDs.
func (m *Module) Verify() error {
	if m == nil {
		return errors.New("[kir] nil module")
	}
	var errs []error
	seen := map[string]bool{}
	for i, k := range m.Kernels {
		if k == nil {
			errs = append(errs, fmt.Errorf("[kir] kernel %d is nil", i))
			continue
		}
		if seen[k.Name] {
			errs = append(errs, fmt.Errorf("[kir] two kernels named %q", k.Name))
		}
		seen[k.Name] = true
		errs = append(errs, k.Verify())
	}
	return errors.Join(errs...)
}

// Verify checks one kernel: see Module.Verify.
func (k *Kernel) Verify() error {
	if k == nil {
		return errors.New("[kir] nil kernel")
	}
	if k.NumInstrs < 0 || k.NumInstrs > MaxInstrs {
		return fmt.Errorf("[kir] kernel %q has %d instructions, the limit is %d", k.Name, k.NumInstrs, MaxInstrs)
	}
	v := &verifier{k: k, inScope: make([]*Instr, k.NumInstrs), seen: make([]bool, k.NumInstrs)}
	v.declarations()
	if k.Body == nil {
		v.errorf("no body")
	} else {
		v.block(k.Body, 0)
	}
	if len(v.errs) == 0 && v.count != k.NumInstrs {
		v.errorf("IDs are not dense: %d instructions, NumInstrs %d", v.count, k.NumInstrs)
	}
	return errors.Join(v.errs...)
}

type verifier struct {
	k       *Kernel
	inScope []*Instr // by ID: the instruction while its value is usable
	seen    []bool   // by ID
	open    []*Instr // the enclosing structured instructions, outermost first
	count   int
	at      *Instr
	errs    []error
}

func (v *verifier) errorf(format string, args ...any) {
	if len(v.errs) >= maxErrors {
		return
	}
	msg := fmt.Sprintf(format, args...)
	if v.at != nil {
		msg = fmt.Sprintf("%s %%%d (line %d): %s", v.at.Op, v.at.ID, v.at.Pos.Line, msg)
	}
	v.errs = append(v.errs, fmt.Errorf("[kir] kernel %q: %s", v.k.Name, msg))
}

func (v *verifier) declarations() {
	k := v.k
	if len(k.Params)+len(k.Regions) > MaxObjects {
		v.errorf("too many params and regions: %d", len(k.Params)+len(k.Regions))
	}
	for i, p := range k.Params {
		if p.Space != Device && p.Space != Constant && p.Space != Threadgroup {
			v.errorf("param %d %q: address space %s", i, p.Name, p.Space)
		}
		if !p.Elem.IsArith() && p.Elem != Bool && !p.Elem.IsPtr() {
			v.errorf("param %d %q: element type %s", i, p.Name, p.Elem)
		}
		if p.ElemSize <= 0 || p.MinBytes < 0 || p.Index < 0 {
			v.errorf("param %d %q: element size %d, minimum %d bytes, index %d",
				i, p.Name, p.ElemSize, p.MinBytes, p.Index)
		}
		if p.Space == Constant && (p.Write || p.Atomic) {
			v.errorf("param %d %q is constant but written", i, p.Name)
		}
		if p.ReadOnly && (p.Write || p.Space == Threadgroup) {
			v.errorf("param %d %q is read-only, but written or of threadgroup memory", i, p.Name)
		}
	}
	for i, x := range k.Vars {
		if x.Type == Void || x.Type >= numTypes {
			v.errorf("var %d %q: type %s", i, x.Name, x.Type)
		}
	}
	for i, r := range k.Regions {
		if r.Space != Constant && r.Space != Threadgroup && r.Space != Thread {
			v.errorf("region %d %q: address space %s", i, r.Name, r.Space)
		}
		if r.Size < 0 || r.Size > MaxRegionBytes {
			v.errorf("region %d %q: size %d", i, r.Name, r.Size)
		}
		if r.Align <= 0 || r.Align&(r.Align-1) != 0 || r.Align > 256 {
			v.errorf("region %d %q: alignment %d is not a power of two up to 256", i, r.Name, r.Align)
		}
		if r.Elem == Void || r.Elem >= numTypes {
			v.errorf("region %d %q: element type %s", i, r.Name, r.Elem)
		}
		if r.ElemSize < 0 {
			v.errorf("region %d %q: element size %d", i, r.Name, r.ElemSize)
		}
		if r.Space == Constant && len(r.Data) != r.Size || r.Space != Constant && r.Data != nil {
			v.errorf("region %d %q: size %d but %d bytes of data", i, r.Name, r.Size, len(r.Data))
		}
	}
}

func (v *verifier) block(b *Block, depth int) {
	if depth > MaxDepth {
		v.errorf("blocks are nested more than %d deep", MaxDepth)
		return
	}
	var mine []int
	for _, in := range b.Instrs {
		if len(v.errs) >= maxErrors {
			return
		}
		if in == nil {
			v.errorf("nil instruction in a block")
			continue
		}
		v.at = in
		if in.ID < 0 || in.ID >= len(v.seen) {
			v.errorf("ID is outside 0..%d", len(v.seen)-1)
			continue
		}
		if v.seen[in.ID] {
			v.errorf("ID is used twice")
			continue
		}
		v.seen[in.ID] = true
		v.count++
		v.instr(in, depth)
		v.inScope[in.ID] = in
		mine = append(mine, in.ID)
	}
	for _, id := range mine {
		v.inScope[id] = nil
	}
}

// instr checks one instruction; its bodies too.
func (v *verifier) instr(in *Instr, depth int) {
	if in.Op == Invalid || in.Op >= numOps {
		v.errorf("operation %d does not exist", in.Op)
		return
	}
	if in.Type >= numTypes {
		v.errorf("type %d does not exist", in.Type)
		return
	}
	ok := true
	for i, a := range in.Args {
		switch {
		case a == nil:
			v.errorf("argument %d is nil", i)
			ok = false
		case a.ID < 0 || a.ID >= len(v.inScope) || v.inScope[a.ID] != a:
			v.errorf("argument %d (%s %%%d) is not in scope", i, a.Op, a.ID)
			ok = false
		case a.Type == Void:
			v.errorf("argument %d (%s %%%d) has no value", i, a.Op, a.ID)
			ok = false
		}
	}
	if !ok {
		return
	}
	if in.Op.HasBody() {
		v.structured(in, depth)
		return
	}
	if in.Body != nil || in.Else != nil {
		v.errorf("has a body")
	}
	if in.Target != nil && in.Op != Break && in.Op != Continue {
		v.errorf("has a target")
	}
	switch opDescs[in.Op].kind {
	case arith1, arith2:
		v.operands(in, int(opDescs[in.Op].kind-arith1)+1, in.Type.IsArith())
	case int1, int2:
		v.operands(in, int(opDescs[in.Op].kind-int1)+1, in.Type.IsInt())
	case bits1, bits2:
		v.operands(in, int(opDescs[in.Op].kind-bits1)+1, in.Type.IsInt() || in.Type == Bool)
	case float1, float2, float3:
		v.operands(in, int(opDescs[in.Op].kind-float1)+1, in.Type.IsFloat())
	case single3:
		v.operands(in, 3, in.Type == F32)
	case compare:
		if v.argc(in, 2) && (in.Type != Bool || in.Args[0].Type != in.Args[1].Type) {
			v.errorf("compares %s with %s to %s", in.Args[0].Type, in.Args[1].Type, in.Type)
		}
	case noOperands:
		v.argc(in, 0)
		v.want(in, Void)
		if in.Mode > MemDevice|MemThreadgroup || in.Op == Return && in.Mode != 0 {
			v.errorf("flags %d", in.Mode)
		}
	default:
		v.special(in)
	}
}

func (v *verifier) argc(in *Instr, n int) bool {
	if len(in.Args) != n {
		v.errorf("%d arguments, want %d", len(in.Args), n)
		return false
	}
	return true
}

func (v *verifier) want(in *Instr, t Type) {
	if in.Type != t {
		v.errorf("type %s, want %s", in.Type, t)
	}
}

func (v *verifier) operands(in *Instr, n int, typeOK bool) {
	if !typeOK {
		v.errorf("is not defined on %s", in.Type)
	}
	v.argc(in, n)
	for i, a := range in.Args {
		v.argType(in, i, a.Type == in.Type, in.Type.String())
	}
}

func (v *verifier) argType(in *Instr, i int, ok bool, want string) {
	if !ok {
		v.errorf("argument %d (%s %%%d) is %s, want %s", i, in.Args[i].Op, in.Args[i].ID, in.Args[i].Type, want)
	}
}

func (v *verifier) structured(in *Instr, depth int) {
	v.want(in, Void)
	if in.Body == nil {
		v.errorf("no body")
		return
	}
	if in.Op == If {
		if v.argc(in, 1) {
			v.argType(in, 0, in.Args[0].Type == Bool, "bool")
		}
	} else {
		v.argc(in, 0)
		if in.Else != nil {
			v.errorf("has an else")
		}
	}
	v.open = append(v.open, in)
	v.block(in.Body, depth+1)
	if in.Else != nil {
		v.at = in
		v.block(in.Else, depth+1)
	}
	v.open = v.open[:len(v.open)-1]
	v.at = in
}
