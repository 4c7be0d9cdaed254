package kir

// special checks the operations whose operands follow no common pattern.
func (v *verifier) special(in *Instr) {
	switch in.Op {
	case Const, Builtin, VarGet, VarSet, ParamAddr, RegionAddr:
		v.leaf(in)
	case Select, Convert, Bitcast:
		v.cast(in)
	case PtrAdd, PtrDiff, Load, Store:
		v.memory(in)
	case AtomicLoad, AtomicStore, AtomicRMW, AtomicCAS:
		v.atomic(in)
	case Reduce, ScanInclusive, ScanExclusive, Shuffle, Ballot, BroadcastFirst:
		v.convergent(in)
	case MatMulAcc:
		v.matMulAcc(in)
	case Break, Continue:
		v.jump(in)
	default:
		v.errorf("operation %d is not verified", in.Op)
	}
}

func (v *verifier) leaf(in *Instr) {
	k := v.k
	if in.Op == VarSet {
		v.want(in, Void)
		if v.argc(in, 1) && v.index(in, len(k.Vars)) {
			t := k.Vars[in.Imm].Type
			v.argType(in, 0, in.Args[0].Type == t, t.String())
		}
		return
	}
	v.argc(in, 0)
	switch in.Op {
	case Const:
		if in.Type == Void {
			v.errorf("no type")
		} else if in.Imm&^in.Type.Mask() != 0 {
			v.errorf("bits %#x do not fit %s", in.Imm, in.Type)
		}
	case Builtin:
		v.want(in, U32)
		if n := in.Mode.Components(); n == 0 || in.Imm >= uint64(n) {
			v.errorf("component %d of %s", in.Imm, in.Mode)
		}
	case VarGet:
		if v.index(in, len(k.Vars)) {
			v.want(in, k.Vars[in.Imm].Type)
		}
	case ParamAddr:
		if v.index(in, len(k.Params)) {
			v.want(in, PtrTo(k.Params[in.Imm].Space))
		}
	case RegionAddr:
		if v.index(in, len(k.Regions)) {
			v.want(in, PtrTo(k.Regions[in.Imm].Space))
		}
	}
}

func (v *verifier) index(in *Instr, n int) bool {
	if in.Imm >= uint64(n) {
		v.errorf("index %d is outside 0..%d", in.Imm, n-1)
		return false
	}
	return true
}

func (v *verifier) cast(in *Instr) {
	switch in.Op {
	case Select:
		if in.Type == Void {
			v.errorf("no type")
		}
		if v.argc(in, 3) {
			v.argType(in, 0, in.Args[0].Type == Bool, "bool")
			v.argType(in, 1, in.Args[1].Type == in.Type, in.Type.String())
			v.argType(in, 2, in.Args[2].Type == in.Type, in.Type.String())
		}
	case Convert:
		if !in.Type.IsArith() && in.Type != Bool {
			v.errorf("to %s", in.Type)
		}
		if v.argc(in, 1) {
			t := in.Args[0].Type
			v.argType(in, 0, t.IsArith() || t == Bool, "an arithmetic type or bool")
		}
	case Bitcast:
		if !v.argc(in, 1) {
			return
		}
		from, to := in.Args[0].Type, in.Type
		ok := from.Size() == to.Size() && from.IsArith() && to.IsArith() ||
			from.IsPtr() && to == U64 || from == U64 && to.IsPtr()
		if !ok {
			v.errorf("from %s to %s", from, to)
		}
	}
}

func (v *verifier) memory(in *Instr) {
	switch in.Op {
	case PtrAdd:
		if !in.Type.IsPtr() {
			v.errorf("type %s is no pointer", in.Type)
		}
		if v.argc(in, 2) {
			v.argType(in, 0, in.Args[0].Type == in.Type, in.Type.String())
			v.argType(in, 1, in.Args[1].Type == I64, I64.String())
		}
	case PtrDiff:
		v.want(in, I64)
		if v.argc(in, 2) {
			t := in.Args[0].Type
			v.argType(in, 0, t.IsPtr(), "a pointer")
			v.argType(in, 1, in.Args[1].Type == t, t.String())
		}
	case Load:
		if in.Type == Void {
			v.errorf("no type")
		}
		if v.argc(in, 1) {
			v.argType(in, 0, in.Args[0].Type.IsPtr(), "a pointer")
		}
	case Store:
		v.want(in, Void)
		if v.argc(in, 2) {
			t := in.Args[0].Type
			v.argType(in, 0, t.IsPtr() && t != PtrConstant, "a writable pointer")
		}
	}
}

func (v *verifier) atomic(in *Instr) {
	n := map[Op]int{AtomicLoad: 1, AtomicStore: 2, AtomicRMW: 2, AtomicCAS: 3}[in.Op]
	if !v.argc(in, n) {
		return
	}
	p := in.Args[0].Type
	v.argType(in, 0, p == PtrDevice || p == PtrThreadgroup, "a device or threadgroup pointer")
	t := in.Type
	if in.Op == AtomicStore {
		v.want(in, Void)
		t = in.Args[1].Type
	}
	switch t {
	case I32, U32, F32, I64, U64, U8:
	default:
		v.errorf("is not defined on %s", t)
	}
	for i := 1; i < n; i++ {
		v.argType(in, i, in.Args[i].Type == t, t.String())
	}
	if in.Op != AtomicRMW {
		return
	}
	switch in.Mode {
	case ModeExchange:
	case ModeAdd, ModeSub, ModeMin, ModeMax, ModeAnd, ModeOr, ModeXor:
		if t == U8 || t.IsFloat() && (in.Mode == ModeAnd || in.Mode == ModeOr || in.Mode == ModeXor) {
			v.errorf("%s is not defined on %s", in.Mode, t)
		}
	default:
		v.errorf("mode %s", in.Mode)
	}
}

func (v *verifier) convergent(in *Instr) {
	if in.Imm != 32 && in.Imm != 4 {
		v.errorf("group of %d lanes, want 32 or 4", in.Imm)
	}
	n := 1
	if in.Op == Shuffle {
		n = 2
	}
	if !v.argc(in, n) {
		return
	}
	t := in.Args[0].Type
	if in.Op == Ballot {
		if in.Imm != 32 {
			v.errorf("group of %d lanes, want 32", in.Imm)
		}
		v.want(in, U64)
		v.argType(in, 0, t == Bool, "bool")
		return
	}
	v.want(in, t)
	switch in.Op {
	case Shuffle:
		v.argType(in, 1, in.Args[1].Type == U32, "u32")
	case Reduce:
		ok := false
		switch in.Mode {
		case ModeAdd, ModeMul, ModeMin, ModeMax:
			ok = t.IsArith()
		case ModeAnd, ModeOr, ModeXor:
			ok = t.IsInt() || t == Bool
		}
		if !ok {
			v.errorf("mode %s is not defined on %s", in.Mode, t)
		}
	case ScanInclusive, ScanExclusive:
		if in.Mode != ModeAdd && in.Mode != ModeMul || !t.IsArith() {
			v.errorf("mode %s is not defined on %s", in.Mode, t)
		}
	}
}

func (v *verifier) matMulAcc(in *Instr) {
	if in.Imm > 1 {
		v.errorf("element %d, want 0 or 1", in.Imm)
	}
	if in.Mode != ModeExact && in.Mode != ModeFree {
		v.errorf("mode %s", in.Mode)
	}
	if in.Type != F32 && in.Type != F64 {
		v.errorf("type %s, want f32 or f64", in.Type)
	}
	if v.argc(in, 5) {
		for i, a := range in.Args {
			v.argType(in, i, a.Type == in.Type, in.Type.String())
		}
	}
}

func (v *verifier) jump(in *Instr) {
	v.argc(in, 0)
	v.want(in, Void)
	for _, o := range v.open {
		if o == in.Target {
			if o.Op == If || in.Op == Continue && o.Op != Loop {
				v.errorf("target %s %%%d cannot be left this way", o.Op, o.ID)
			}
			return
		}
	}
	v.errorf("target does not enclose it")
}
