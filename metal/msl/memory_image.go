package msl

import (
	"encoding/binary"

	"github.com/mlxlua/mlxlua/metal/kir"
)

// image is the bytes of an object whose scalars cannot be told apart, a union or a class with bit-fields, while
// constants are evaluated. A constant pointer to it has the image's number, from 1, where kir has that of a buffer.
type image struct {
	data  []byte
	final bool // of a constant
}

// newImage makes an object's memory in a constant evaluation and returns the pointer to it.
func (mem *memory) newImage(size int, space kir.Space) operand {
	mem.em.charge(size)
	return mem.addImage(image{data: make([]byte, size)}, space)
}

func (mem *memory) addImage(m image, space kir.Space) operand {
	c := mem.c
	c.images = append(c.images, m)
	if len(c.images) >= 1<<(64-kir.PtrObjectShift) {
		c.fatal(TooLarge, mem.em.pos, "constants of unions and of classes with bit-fields take too many objects to evaluate")
	}
	return operand{ty: kir.PtrTo(space), bits: uint64(len(c.images)) << kir.PtrObjectShift}
}

// imageAt returns the n bytes of an image that a pointer points to.
func (mem *memory) imageAt(p operand, n int, write bool) []byte {
	i, off := kir.PtrObject(p.bits), kir.PtrOffset(p.bits)
	if !p.isConst() || i == 0 || i > len(mem.c.images) {
		mem.em.notConst("memory")
	}
	m := &mem.c.images[i-1]
	if off < 0 || off > int64(len(m.data)-n) {
		mem.em.notConst("what stands outside an object")
	}
	if write && m.final {
		mem.em.notConst("a store to a constant")
	}
	return m.data[off : off+int64(n)]
}

// loadImage reads a scalar in a constant evaluation.
func (mem *memory) loadImage(t kir.Type, p operand) operand {
	mem.em.step()
	var b [8]byte
	copy(b[:], mem.imageAt(p, t.Size(), false))
	return operand{ty: t, bits: binary.LittleEndian.Uint64(b[:])}
}

// storeImage writes a scalar in a constant evaluation.
func (mem *memory) storeImage(p, x operand) {
	mem.em.step()
	if x.in != nil || x.ty.IsPtr() && x.bits != 0 {
		mem.em.notConst("an address")
	}
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], x.bits)
	copy(mem.imageAt(p, x.ty.Size(), true), b[:])
}

// finishConst makes a value the object of a constant. What lives in an image keeps its bytes.
func (mem *memory) finishConst(name string, t qtype, v value) *object {
	o := &object{name: name, q: t, fixed: true}
	if v.k == vMem {
		m := image{data: append([]byte(nil), mem.imageAt(mem.addr(v), t.T.size, false)...), final: true}
		o.mem, o.image = true, mem.addImage(m, kir.Constant).bits
		return o
	}
	o.slots = make([]slot, len(v.comps))
	for i, c := range mem.noAddress(v).comps {
		o.slots[i] = slot{-1, c}
	}
	return o
}

// noAddress ends a constant evaluation that yields the address of an object of its own.
func (mem *memory) noAddress(v value) value {
	for _, c := range v.comps {
		if c.ty.IsPtr() && c.bits != 0 {
			mem.em.notConst("the address of a variable")
		}
	}
	return v
}

// bytes returns the memory of a constant.
func (mem *memory) bytes(o *object) []byte {
	if o.image != 0 {
		return mem.c.images[kir.PtrObject(o.image)-1].data
	}
	data := make([]byte, max(o.q.T.size, 1))
	var buf [8]int
	for j, off := range o.q.T.compOffsets(buf[:0], 0) {
		s := o.slots[j].val
		for b := range s.ty.Size() {
			data[off+b] = byte(s.bits >> (8 * b))
		}
	}
	return data
}
