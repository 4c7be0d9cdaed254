package kir

// Renumber gives every instruction of the kernel a dense ID in textual order and sets NumInstrs. Front ends call it
// last.
// Instructions that the body does not reach keep their IDs.
func (k *Kernel) Renumber() {
	n := 0
	var walk func(b *Block)
	walk = func(b *Block) {
		if b == nil {
			return
		}
		for _, in := range b.Instrs {
			in.ID = n
			n++
			walk(in.Body)
			walk(in.Else)
		}
	}
	walk(k.Body)
	k.NumInstrs = n
}

// Walk calls f for every instruction of the block and its nested blocks, in textual order.
func (b *Block) Walk(f func(*Instr)) {
	if b == nil {
		return
	}
	for _, in := range b.Instrs {
		f(in)
		in.Body.Walk(f)
		in.Else.Walk(f)
	}
}

// Int returns the value of an integer constant, extended by its type; ok is false of other instructions.
func (in *Instr) Int() (v int64, ok bool) {
	if in.Op != Const || !in.Type.IsInt() {
		return 0, false
	}
	if in.Type.IsSigned() {
		return signExtend(in.Type, in.Imm), true
	}
	return int64(in.Imm), true
}
