package opt

import "github.com/mlxlua/mlxlua/metal/kir"

// Word is an integer that a kernel loads from a fixed place of constant memory, and that decides how fast its code can
// be: a stride, a size, a rank. A launch that gives the memory's bytes with it lets no one change them, so that code
// made for some values of such words (Run) may run.
type Word struct {
	Param, Offset int // the parameter, and where in it the word is, in bytes
	Type          kir.Type
	wants         wants
}

// wants says which values of a word matter.
type wants uint8

const (
	wantsUnit  wants = 1 << iota // 0 and 1, of 64 bits also what fits in 31: lanes' indices are multiplied by it
	wantsEven                    // 1, what fits in 31 bits, multiples of 8, 16 and 32: lanes' indices are divided by it
	wantsCount                   // small numbers: it is how many words of constant memory a loop looks at
)

// Known is what is known of a word: at most 4 bits.
type Known uint8

// What may be known of a word. From Equals on it is the number itself, less Equals.
const (
	Nothing Known = iota
	There         // the memory is long enough
	Small         // at least 0 and less than 2^31
	By8           // that, and a multiple of 8 ...
	By16
	By32
	Equals
)

const mostCount = 8 // the largest number that counts

// Facts are what is known of each of up to MaxWords words: four bits of it, the first word's the lowest ones.
type Facts uint64

// MaxWords is how many words of a kernel are looked at.
const MaxWords = 16

// With returns the facts with what is known of word i, of which nothing was known.
func (f Facts) With(i int, k Known) Facts { return f | Facts(k)<<(4*i) }

// Of returns what is known of word i.
func (f Facts) Of(i int) Known { return Known(f >> (4 * i) & 15) }

// Has reports whether k is what is known of a word.
func (f Facts) Has(k Known) bool {
	for i := range MaxWords {
		if f.Of(i) == k {
			return true
		}
	}
	return false
}

// End is the offset after the word.
func (w *Word) End() int { return w.Offset + w.Type.Size() }

// Know returns what a value of the word, zero-extended, lets code make use of.
func (w *Word) Know(v uint64) Known {
	switch {
	case w.wants&wantsCount != 0 && v <= mostCount, w.wants&wantsUnit != 0 && v <= 1, w.wants&wantsEven != 0 && v == 1:
		return Equals + Known(v)
	case v >= 1<<31 || w.wants&(wantsUnit|wantsEven) == 0 || w.wants&wantsEven == 0 && w.Type.Size() == 4:
		return There
	case w.wants&wantsEven == 0 || v%8 != 0:
		return Small
	case v%32 == 0:
		return By32
	case v%16 == 0:
		return By16
	}
	return By8
}

// FindWords finds the words of an optimised kernel whose values can make faster code, and which Load reads which: 1 +
// the index of its word by Instr.ID.
func FindWords(k *kir.Kernel) (words []Word, loads []uint8) {
	f := &wordFinder{k: k, of: make([]uint8, k.NumInstrs)}
	if f.find(k.Body); len(f.words) == 0 {
		return nil, nil
	}
	f.lanes, f.laneVars = make([]bool, k.NumInstrs), make([]bool, len(k.Vars))
	f.address, f.addressVars = make([]bool, k.NumInstrs), make([]bool, len(k.Vars))
	for f.changed = true; f.changed; {
		f.changed = false
		f.differ(k.Body)
	}
	for f.changed = true; f.changed; {
		f.changed = false
		f.feed(k.Body)
	}
	k.Body.Walk(f.use)
	f.counts(k.Body)
	return f.wanted()
}

// wordFinder is the state of one FindWords.
type wordFinder struct {
	k     *kir.Kernel
	words []Word
	of    []uint8 // by ID: of a Load and what converts it, 1 + its word
	// lanes: may differ between lanes; address: is part of an address. By ID and by variable.
	lanes, laneVars, address, addressVars []bool
	changed                               bool
}

// find collects the loads that come into question, and what converts them.
func (f *wordFinder) find(b *kir.Block) {
	b.Walk(func(in *kir.Instr) {
		switch {
		case in.Op == kir.Load && in.Type.IsInt() && in.Type.Size() >= 4:
			if p, off, ok := fixedPlace(in.Args[0]); ok && p.Op == kir.ParamAddr {
				f.of[in.ID] = f.word(int(p.Imm), off, in.Type)
			}
		case converts(in):
			f.of[in.ID] = f.of[in.Args[0].ID]
		}
	})
}

// converts reports whether an instruction makes an integer of another one, as it is.
func converts(in *kir.Instr) bool {
	return (in.Op == kir.Convert || in.Op == kir.Bitcast) && in.Type.IsInt() && in.Args[0].Type.IsInt()
}

// fixedPlace takes apart an address at a constant offset from where a parameter or region begins.
func fixedPlace(p *kir.Instr) (start *kir.Instr, off int64, ok bool) {
	for p.Op == kir.PtrAdd {
		c, ok := p.Args[1].Int()
		if !ok {
			return nil, 0, false
		}
		off += c + int64(p.Imm)
		p = p.Args[0]
	}
	return p, off, off >= 0 && off <= kir.MaxRegionBytes
}

// word returns 1 + the index of a word, 0 if it is not looked at.
func (f *wordFinder) word(param int, off int64, t kir.Type) uint8 {
	for i, w := range f.words {
		if w.Param == param && w.Offset == int(off) && w.Type == t {
			return uint8(i) + 1
		}
	}
	if p := f.k.Params[param]; p.Space != kir.Constant || p.Write || len(f.words) == MaxWords {
		return 0
	}
	f.words = append(f.words, Word{Param: param, Offset: int(off), Type: t})
	return uint8(len(f.words))
}

func (f *wordFinder) flag(flags []bool, n int, on bool) {
	if on && !flags[n] {
		flags[n], f.changed = true, true
	}
}

// differ finds what may differ between lanes, going by what values are made of.
func (f *wordFinder) differ(b *kir.Block) {
	b.Walk(func(in *kir.Instr) {
		d := false
		for _, a := range in.Args {
			d = d || f.lanes[a.ID]
		}
		switch {
		case in.Op == kir.Builtin:
			d = in.Imm == 0 && !in.Mode.Uniform()
		case in.Op == kir.VarGet:
			d = f.laneVars[in.Imm]
		case in.Op == kir.VarSet:
			f.flag(f.laneVars, int(in.Imm), d)
		}
		f.flag(f.lanes, in.ID, d)
	})
}

// feed finds what addresses are made of, users first.
func (f *wordFinder) feed(b *kir.Block) {
	for i := len(b.Instrs) - 1; i >= 0; i-- {
		in := b.Instrs[i]
		if in.Else != nil {
			f.feed(in.Else)
		}
		if in.Body != nil {
			f.feed(in.Body)
		}
		switch {
		case in.Op == kir.PtrAdd:
			f.flag(f.address, in.Args[1].ID, true)
		case in.Op == kir.VarSet:
			f.flag(f.address, in.Args[0].ID, f.addressVars[in.Imm])
		case !f.address[in.ID]:
		case in.Op == kir.VarGet:
			f.flag(f.addressVars, int(in.Imm), true)
		case in.Op.Pure() && in.Type.IsInt():
			for _, a := range in.Args {
				f.flag(f.address, a.ID, a.Type.IsInt())
			}
		}
	}
}

// use notes what a word is used for.
func (f *wordFinder) use(in *kir.Instr) {
	if !f.address[in.ID] || len(in.Args) != 2 {
		return
	}
	x, y := in.Args[0], in.Args[1]
	switch in.Op {
	case kir.Mul:
		f.want(x, wantsUnit, f.lanes[y.ID])
		f.want(y, wantsUnit, f.lanes[x.ID])
	case kir.Div, kir.Rem:
		f.want(y, wantsEven, f.lanes[x.ID])
	}
}

func (f *wordFinder) want(x *kir.Instr, w wants, on bool) {
	if n := f.of[x.ID]; n != 0 && on {
		f.words[n-1].wants |= w
	}
}

// counts finds the words that say how often loops run whose rounds read constant memory, each at another place.
func (f *wordFinder) counts(b *kir.Block) {
	b.Walk(func(l *kir.Instr) {
		if l.Op != kir.Loop {
			return
		}
		reads := false
		l.Body.Walk(func(in *kir.Instr) {
			if in.Op == kir.Load && in.Args[0].Type == kir.PtrConstant {
				_, _, fixed := fixedPlace(in.Args[0])
				reads = reads || !fixed
			}
		})
		exit := onlyExit(l)
		if !reads || exit == nil {
			return
		}
		vars := make([]bool, len(f.k.Vars))
		f.counter(exit.Args[0], vars, 0)
		f.k.Body.Walk(func(in *kir.Instr) {
			if in.Op == kir.VarSet && vars[in.Imm] {
				f.counter(in.Args[0], nil, 0)
			}
		})
	})
}

// counter notes the words and variables that a loop's counter, or its last value, is made of.
func (f *wordFinder) counter(x *kir.Instr, vars []bool, depth int) {
	f.want(x, wantsCount, true)
	switch {
	case x.Op == kir.VarGet && vars != nil:
		vars[x.Imm] = true
	case x.Op.Pure() && depth < 4:
		for _, a := range x.Args {
			f.counter(a, vars, depth+1)
		}
	}
}

// wanted drops the words that are of no use.
func (f *wordFinder) wanted() (words []Word, loads []uint8) {
	to := make([]uint8, len(f.words)+1)
	for i, w := range f.words {
		if w.wants != 0 {
			words = append(words, w)
			to[i+1] = uint8(len(words))
		}
	}
	if len(words) == 0 {
		return nil, nil
	}
	f.k.Body.Walk(func(in *kir.Instr) {
		if in.Op != kir.Load {
			f.of[in.ID] = 0
		}
		f.of[in.ID] = to[f.of[in.ID]]
	})
	return words, f.of
}

// onlyExit returns the If by which alone a loop is left, if that is in the loop's own block and does nothing else, and
// nothing goes back to the loop's start but its end.
func onlyExit(l *kir.Instr) (exit *kir.Instr) {
	jumps := 0
	l.Body.Walk(func(in *kir.Instr) {
		if in.Target == l {
			jumps++
		}
	})
	for _, in := range l.Body.Instrs {
		if leaves(in, l) {
			exit = in
		}
	}
	if jumps != 1 {
		return nil
	}
	return exit
}
