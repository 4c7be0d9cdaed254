package kir

// argKind says what an operation accepts; verify.go reads it.
type argKind uint8

const (
	special    argKind = iota // verified by hand
	arith1                    // one operand of T, T arithmetic
	arith2                    // two
	int1                      // one operand of T, T an integer type
	int2                      // two
	bits1                     // one operand of T, T an integer type or Bool
	bits2                     // two
	float1                    // one operand of T, T a float type
	float2                    // two
	float3                    // three
	single3                   // three, T F32
	compare                   // two operands of one type, T Bool
	noOperands                // no operand, T Void
)

type opDesc struct {
	name string
	kind argKind
}

var opDescs = [numOps]opDesc{
	Invalid:        {"invalid", special},
	Const:          {"const", special},
	Builtin:        {"builtin", special},
	VarGet:         {"var.get", special},
	VarSet:         {"var.set", special},
	ParamAddr:      {"param.addr", special},
	RegionAddr:     {"region.addr", special},
	Add:            {"add", arith2},
	Sub:            {"sub", arith2},
	Mul:            {"mul", arith2},
	Div:            {"div", arith2},
	Rem:            {"rem", arith2},
	Neg:            {"neg", arith1},
	Abs:            {"abs", arith1},
	Min:            {"min", arith2},
	Max:            {"max", arith2},
	MulHi:          {"mulhi", int2},
	Fma:            {"fma", float3},
	PairDot:        {"pair.dot", single3},
	Sqrt:           {"sqrt", float1},
	Floor:          {"floor", float1},
	Ceil:           {"ceil", float1},
	Trunc:          {"trunc", float1},
	Rint:           {"rint", float1},
	Scale:          {"scale", float2},
	And:            {"and", bits2},
	Or:             {"or", bits2},
	Xor:            {"xor", bits2},
	Not:            {"not", bits1},
	Shl:            {"shl", int2},
	Shr:            {"shr", int2},
	Popcount:       {"popcount", int1},
	Clz:            {"clz", int1},
	Ctz:            {"ctz", int1},
	BitReverse:     {"bitreverse", int1},
	Eq:             {"eq", compare},
	Ne:             {"ne", compare},
	Lt:             {"lt", compare},
	Le:             {"le", compare},
	Gt:             {"gt", compare},
	Ge:             {"ge", compare},
	Select:         {"select", special},
	Convert:        {"convert", special},
	Bitcast:        {"bitcast", special},
	PtrAdd:         {"ptr.add", special},
	PtrDiff:        {"ptr.diff", special},
	Load:           {"load", special},
	Store:          {"store", special},
	AtomicLoad:     {"atomic.load", special},
	AtomicStore:    {"atomic.store", special},
	AtomicRMW:      {"atomic.rmw", special},
	AtomicCAS:      {"atomic.cas", special},
	Fence:          {"fence", noOperands},
	Reduce:         {"reduce", special},
	ScanInclusive:  {"scan.inclusive", special},
	ScanExclusive:  {"scan.exclusive", special},
	Shuffle:        {"shuffle", special},
	Ballot:         {"ballot", special},
	BroadcastFirst: {"broadcast.first", special},
	MatMulAcc:      {"matmul.acc", special},
	SimdBarrier:    {"simd.barrier", noOperands},
	Barrier:        {"barrier", noOperands},
	If:             {"if", special},
	BlockOp:        {"block", special},
	Loop:           {"loop", special},
	Break:          {"break", special},
	Continue:       {"continue", special},
	Return:         {"return", noOperands},
}

// String returns the operation's name as Print writes it.
func (op Op) String() string {
	if op < numOps {
		return opDescs[op].name
	}
	return "invalid op"
}

// Pure reports whether an instruction of this operation only computes its value from its operands: it reads and writes
// no memory and no variable, is not convergent, and may be repeated, moved within its scope, or dropped.
func (op Op) Pure() bool {
	switch op {
	case Const, Builtin, ParamAddr, RegionAddr, PtrAdd, PtrDiff:
		return true
	}
	return op >= Add && op <= Bitcast
}

// Commutes reports whether the operation's two operands may change places.
func (op Op) Commutes() bool {
	switch op {
	case Add, Mul, And, Or, Xor, Min, Max, MulHi, Eq, Ne:
		return true
	}
	return false
}

// Opposite returns the comparison that is true where this one is not, of operands that are no floats (of those, only Eq
// and Ne have one); Invalid of other operations.
func (op Op) Opposite() Op {
	switch op {
	case Eq:
		return Ne
	case Ne:
		return Eq
	case Lt:
		return Ge
	case Le:
		return Gt
	case Gt:
		return Le
	case Ge:
		return Lt
	}
	return Invalid
}

// Mirrored returns the comparison that is the same after its operands change places.
func (op Op) Mirrored() Op {
	switch op {
	case Lt:
		return Gt
	case Le:
		return Ge
	case Gt:
		return Lt
	case Ge:
		return Le
	}
	return op
}

// Convergent reports whether the operation depends on which lanes are active.
func (op Op) Convergent() bool { return op >= Reduce && op <= Barrier }

// IsAtomic reports whether the operation is an atomic access to memory.
func (op Op) IsAtomic() bool { return op >= AtomicLoad && op <= AtomicCAS }

// HasBody reports whether the operation holds nested Blocks.
func (op Op) HasBody() bool { return op >= If && op <= Loop }

type modeDesc struct {
	name string
	vec  bool // three components
}

var builtinModes = [...]modeDesc{
	0: {"thread_position_in_grid", true},
	ThreadPositionInThreadgroup - ThreadPositionInGrid:      {"thread_position_in_threadgroup", true},
	ThreadgroupPositionInGrid - ThreadPositionInGrid:        {"threadgroup_position_in_grid", true},
	ThreadsPerThreadgroup - ThreadPositionInGrid:            {"threads_per_threadgroup", true},
	DispatchThreadsPerThreadgroup - ThreadPositionInGrid:    {"dispatch_threads_per_threadgroup", true},
	ThreadgroupsPerGrid - ThreadPositionInGrid:              {"threadgroups_per_grid", true},
	ThreadsPerGrid - ThreadPositionInGrid:                   {"threads_per_grid", true},
	ThreadIndexInThreadgroup - ThreadPositionInGrid:         {"thread_index_in_threadgroup", false},
	ThreadIndexInSimdgroup - ThreadPositionInGrid:           {"thread_index_in_simdgroup", false},
	SimdgroupIndexInThreadgroup - ThreadPositionInGrid:      {"simdgroup_index_in_threadgroup", false},
	SimdgroupsPerThreadgroup - ThreadPositionInGrid:         {"simdgroups_per_threadgroup", false},
	DispatchSimdgroupsPerThreadgroup - ThreadPositionInGrid: {"dispatch_simdgroups_per_threadgroup", false},
	ThreadsPerSimdgroup - ThreadPositionInGrid:              {"threads_per_simdgroup", false},
	ThreadIndexInQuadgroup - ThreadPositionInGrid:           {"thread_index_in_quadgroup", false},
	QuadgroupIndexInThreadgroup - ThreadPositionInGrid:      {"quadgroup_index_in_threadgroup", false},
	QuadgroupsPerThreadgroup - ThreadPositionInGrid:         {"quadgroups_per_threadgroup", false},
	GridOrigin - ThreadPositionInGrid:                       {"grid_origin", true},
	GridSize - ThreadPositionInGrid:                         {"grid_size", true},
}

var modeNames = [...]string{
	ModeNone: "none", ModeAdd: "add", ModeSub: "sub", ModeMul: "mul", ModeMin: "min", ModeMax: "max",
	ModeAnd: "and", ModeOr: "or", ModeXor: "xor", ModeExchange: "exchange", ModeExact: "exact",
	ModeFree: "free",
}

// String returns the mode's name: the operation's (add, min, ...) or the builtin's Metal attribute. The flags of
// barriers share the small numbers and print as operations; Print writes those itself.
func (m Mode) String() string {
	if int(m) < len(modeNames) {
		return modeNames[m]
	}
	if b, ok := m.builtin(); ok {
		return b.name
	}
	return "invalid mode"
}

func (m Mode) builtin() (modeDesc, bool) {
	if m < ThreadPositionInGrid || int(m-ThreadPositionInGrid) >= len(builtinModes) {
		return modeDesc{}, false
	}
	return builtinModes[m-ThreadPositionInGrid], true
}

// Components returns how many components a builtin has, 3 or 1, and 0 for modes that are no builtin.
func (m Mode) Components() int {
	b, ok := m.builtin()
	switch {
	case !ok:
		return 0
	case b.vec:
		return 3
	}
	return 1
}

// Uniform reports whether the builtin has one value for all lanes of a SIMD-group; false for modes that are no
// builtin.
func (m Mode) Uniform() bool {
	switch m {
	case ThreadPositionInGrid, ThreadPositionInThreadgroup, ThreadIndexInThreadgroup, ThreadIndexInSimdgroup,
		ThreadIndexInQuadgroup, QuadgroupIndexInThreadgroup:
		return false
	}
	return m.Components() != 0
}
