package code

// Func is one stretch of machine code while it is being written: a list of instructions, labels and constants. A
// Func may be used again after Reset. It is not for use by several goroutines at once.
type Func struct {
	insts  []Inst
	next   [NumClasses]int // virtual registers handed out
	labels int32           // labels handed out
	pool   []Constant      // by ConstID - 1
	ids    map[string]ConstID
}

// Constant is an entry of the pool.
type Constant struct {
	Data  []byte
	Align int
}

// Code is machine code, as a processor makes it of a Func: position-independent bytes with the constants at their end.
// The bytes want to be placed at a multiple of 64.
type Code struct {
	Bytes []byte
	// Labels holds the offset of each Label, -1 for one that was never bound.
	Labels []int32
}

// Offset returns the place of a label in the code, -1 if it has none.
func (c Code) Offset(l Label) int {
	if l <= 0 || int(l) >= len(c.Labels) {
		return -1
	}
	return int(c.Labels[l])
}

// NewFunc returns an empty Func.
func NewFunc() *Func { return &Func{ids: map[string]ConstID{}} }

// Reset empties the Func, keeping its memory for the next code.
func (f *Func) Reset() {
	f.insts = f.insts[:0]
	f.next = [NumClasses]int{}
	f.labels = 0
	f.pool = f.pool[:0]
	clear(f.ids)
}

// Emit appends an instruction.
func (f *Func) Emit(i Inst) { f.insts = append(f.insts, i) }

// Insts returns the instructions so far. Callers may change them in place.
func (f *Func) Insts() []Inst { return f.insts }

// SetInsts replaces the list of instructions.
func (f *Func) SetInsts(l []Inst) { f.insts = l }

// NewReg returns a virtual register that was not used before.
func (f *Func) NewReg(c Class) R {
	n := f.next[c]
	f.next[c]++
	return Reg(c, FirstVirtual+n)
}

// NumRegs returns how many virtual registers of a class were handed out.
func (f *Func) NumRegs(c Class) int { return f.next[c] }

// NumLabels returns how many labels were handed out: they are 1 to that.
func (f *Func) NumLabels() int { return int(f.labels) }

// Pool returns the constants, by ConstID - 1.
func (f *Func) Pool() []Constant { return f.pool }

// NewLabel returns a label that was not used before.
func (f *Func) NewLabel() Label {
	f.labels++
	return Label(f.labels)
}

// Bind places a label here.
func (f *Func) Bind(l Label) { f.Emit(Inst{Op: BindLabel, Label: l}) }

// Const puts bytes into the pool of constants, once for equal ones, and returns their name. They are aligned to
// their length rounded up to a power of two, at most 64. The bytes are copied.
func (f *Func) Const(b []byte) ConstID {
	if id, ok := f.ids[string(b)]; ok {
		return id
	}
	a := 1
	for a < len(b) && a < 64 {
		a *= 2
	}
	c := Constant{Data: append([]byte(nil), b...), Align: a}
	f.pool = append(f.pool, c)
	id := ConstID(len(f.pool))
	f.ids[string(c.Data)] = id
	return id
}

// Loop marks the beginning of a loop, before its first label; EndLoop must follow after its last jump back. The
// register allocator keeps what was there before the loop and is used inside alive until EndLoop.
func (f *Func) Loop() { f.Emit(Inst{Op: LoopBegin}) }

// EndLoop marks the end of the innermost loop.
func (f *Func) EndLoop() { f.Emit(Inst{Op: LoopEnd}) }

// ColdBegin begins cold code: instructions that Assemble puts out of line. Control passes over them, to what
// stands after ColdEnd; it comes to them by jumps to their labels and must not run out of them at ColdEnd. Cold
// code in cold code goes further out.
func (f *Func) ColdBegin() { f.Emit(Inst{Op: ColdBegin}) }

// ColdEnd ends cold code.
func (f *Func) ColdEnd() { f.Emit(Inst{Op: ColdEnd}) }

// SaveLive stores the registers that are live across safepoint n (whose LoadLive follows further on) to the
// frame. The frame's register may change between the two if it comes back to a frame saved before.
func (f *Func) SaveLive(n int32) { f.Emit(Inst{Op: SaveLive, Safepoint: n}) }

// LoadLive loads what SaveLive(n) stored.
func (f *Func) LoadLive(n int32) { f.Emit(Inst{Op: LoadLive, Safepoint: n}) }
