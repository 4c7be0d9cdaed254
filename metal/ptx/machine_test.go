package ptx_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/mlxlua/mlxlua/metal/kir"
)

// machine executes a text as the PTX manual says, for what the printer prints of integers, memory and lanes: each
// thread has a place of its own in the text, and they take turns at random. What the manual leaves undefined is an
// error: a lane that is not in its own mask, lanes that wait for each other at two places; a value of a lane that is
// not there is a random one.
type machine struct {
	code   []ptxInstr
	labels map[string]int
	args   []byte
	memory map[uint64][]byte // by the high 32 bits of an address
	r      *rand.Rand
}

type ptxInstr struct {
	guard string // "", "%p1" or "!%p1"
	op    []string
	args  []string
	text  string
}

type thread struct {
	regs    map[string]uint64
	at, id  int
	ended   bool
	waiting bool
}

const sharedBase, argsBase = uint64(1) << 32, uint64(2) << 32

func newMachine(text string) *machine {
	m := &machine{labels: map[string]int{}, memory: map[uint64][]byte{}, r: rand.New(rand.NewPCG(3, 4))}
	_, body, _ := strings.Cut(text, "{\n")
	for _, l := range strings.Split(body, "\n") {
		l = strings.TrimSpace(l)
		switch {
		case l == "" || l == "}" || l[0] == '.':
			continue
		case strings.HasSuffix(l, ":"):
			m.labels[l[:len(l)-1]] = len(m.code)
			continue
		}
		in := ptxInstr{text: l}
		l = strings.TrimSuffix(l, ";")
		if l[0] == '@' {
			in.guard, l, _ = strings.Cut(l[1:], " ")
		}
		op, rest, _ := strings.Cut(l, " ")
		in.op = strings.Split(op, ".")
		in.args = strings.FieldsFunc(rest, func(r rune) bool { return strings.ContainsRune(", {}|", r) })
		m.code = append(m.code, in)
	}
	return m
}

// block executes one block of threads.
func (m *machine) block(pos [3]int, size, shared int) error {
	m.memory[sharedBase>>32] = make([]byte, shared)
	m.r.Uint64()
	threads := make([]*thread, size)
	for i := range threads {
		threads[i] = &thread{id: i, regs: map[string]uint64{"%tid.x": uint64(i), "%ntid.x": uint64(size),
			"%ctaid.x": uint64(pos[0]), "%ctaid.y": uint64(pos[1]), "%ctaid.z": uint64(pos[2])}}
	}
	for steps := 0; ; steps++ {
		var ready []*thread
		live := 0
		for _, t := range threads {
			if !t.ended {
				live++
				if !t.waiting {
					ready = append(ready, t)
				}
			}
		}
		switch {
		case live == 0:
			return nil
		case len(ready) == 0:
			met, err := m.meet(threads)
			if err != nil {
				return err
			}
			if !met {
				return fmt.Errorf("threads wait for each other: %s", m.code[threads[0].at].text)
			}
			continue
		}
		t := ready[m.r.IntN(len(ready))]
		for n := m.r.IntN(50); n >= 0 && !t.ended && !t.waiting; n-- {
			if err := m.step(t); err != nil {
				return fmt.Errorf("thread %d: %s: %w", t.id, m.code[t.at].text, err)
			}
		}
	}
}

// meet lets go on whom all that they wait for have come to.
func (m *machine) meet(all []*thread) (met bool, err error) {
	for _, t := range all {
		if t.ended || !t.waiting {
			continue
		}
		in := m.code[t.at]
		group, mask := all[t.id&^31:t.id&^31+32], uint64(0)
		switch in.op[0] {
		case "barrier":
			group, mask = all, 0
		case "bar":
			mask = m.value(t, in.args[0])
		default:
			mask = m.value(t, in.args[len(in.args)-1])
		}
		var here []*thread
		complete := true
		for i, o := range group {
			if o.ended || in.op[0] != "barrier" && mask>>i&1 == 0 {
				continue
			}
			same := o.waiting && (o.at == t.at || in.op[0] == "barrier" && m.code[o.at].op[0] == "barrier")
			if same && in.op[0] != "barrier" {
				args := m.code[o.at].args
				same = m.value(o, args[len(args)-1]) == mask
			}
			complete = complete && same
			here = append(here, o)
		}
		if in.op[0] != "barrier" && mask>>(t.id&31)&1 == 0 {
			return false, fmt.Errorf("thread %d is not in its mask %#x: %s", t.id, mask, in.text)
		}
		if complete {
			met = true
			if err := m.together(in, here, mask); err != nil {
				return false, err
			}
		}
	}
	return met, nil
}

// together executes an instruction of several lanes.
func (m *machine) together(in ptxInstr, here []*thread, mask uint64) error {
	results, exists := map[*thread]uint64{}, map[*thread]uint64{}
	byLane := map[int]*thread{}
	for _, t := range here {
		byLane[t.id&31] = t
	}
	if in.op[0] == "bar" {
		for i := range 32 {
			if mask>>i&1 != 0 && byLane[i] == nil {
				return fmt.Errorf("bar.warp.sync names a lane that has ended: %#x", mask)
			}
		}
	}
	for _, t := range here {
		switch in.op[0] {
		case "vote":
			for _, o := range here {
				results[t] |= (m.value(o, in.args[1]) & 1) << (o.id & 31)
			}
		case "shfl":
			n := len(in.args)
			by, lane := int(m.value(t, in.args[n-3])), t.id&31
			from, ok := by&31, true
			switch in.op[2] {
			case "bfly":
				from = lane ^ by
			case "up":
				if from = lane - by; from < 0 {
					from = lane
				}
			}
			if o := byLane[from]; o != nil && ok {
				results[t] = m.value(o, in.args[n-4])
			} else {
				results[t] = m.r.Uint64() & math.MaxUint32 // undefined
			}
			exists[t] = 1
		case "redux":
			results[t] = m.redux(in, here)
		}
	}
	for _, t := range here {
		if r, ok := results[t]; ok {
			t.regs[in.args[0]] = r
		}
		t.waiting = false
		t.at++
	}
	return nil
}

func (m *machine) redux(in ptxInstr, here []*thread) uint64 {
	r := m.value(here[0], in.args[1])
	for _, o := range here[1:] {
		v := m.value(o, in.args[1])
		switch in.op[2] + in.op[3][:1] {
		case "addu", "adds":
			r += v
		case "minu":
			r = min(r, v)
		case "maxu":
			r = max(r, v)
		case "mins":
			r = uint64(uint32(min(int32(r), int32(v))))
		case "maxs":
			r = uint64(uint32(max(int32(r), int32(v))))
		case "andb":
			r &= v
		case "orb":
			r |= v
		case "xorb":
			r ^= v
		}
	}
	return r & math.MaxUint32
}

func (m *machine) value(t *thread, a string) uint64 {
	switch {
	case a[0] == '%':
		v, ok := t.regs[a]
		if !ok {
			panic("never written: " + a)
		}
		return v
	case strings.HasPrefix(a, "0f"):
		v, _ := strconv.ParseUint(a[2:], 16, 32)
		return v
	case a == "shared_memory":
		return 0
	case a == "args":
		return argsBase
	case a[0] == '-':
		v, _ := strconv.ParseInt(a, 0, 64)
		return uint64(v)
	}
	v, err := strconv.ParseUint(a, 0, 64)
	if err != nil {
		panic("no operand: " + a)
	}
	return v
}

// bytesAt returns the memory behind an operand in brackets.
func (m *machine) bytesAt(t *thread, space, a string, size int) []byte {
	base, offset, _ := strings.Cut(strings.Trim(a, "[]"), "+")
	at := m.value(t, base)
	if offset != "" {
		at += m.value(t, offset)
	}
	switch space {
	case "shared":
		at += sharedBase
	case "param":
		at -= argsBase
		return m.args[at : at+uint64(size)]
	}
	if at%uint64(size) != 0 {
		panic(fmt.Sprintf("address %#x is not aligned", at))
	}
	b := m.memory[at>>32]
	return b[at&math.MaxUint32:][:size]
}

func word(b []byte) (v uint64) {
	for i, x := range b {
		v |= uint64(x) << (8 * i)
	}
	return v
}

func setWord(b []byte, v uint64) {
	for i := range b {
		b[i] = byte(v >> (8 * i))
	}
}

// step executes one thread's next instruction.
func (m *machine) step(t *thread) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%v", v)
		}
	}()
	in := m.code[t.at]
	if g, not := strings.CutPrefix(in.guard, "!"); g != "" && (m.value(t, g)&1 != 0) == not {
		t.at++
		return nil
	}
	switch in.op[0] {
	case "exit":
		t.ended = true
		return nil
	case "bra":
		at, ok := m.labels[in.args[0]]
		if !ok {
			return fmt.Errorf("no label")
		}
		t.at = at
		return nil
	case "vote", "shfl", "redux", "bar", "barrier":
		t.waiting = true
		return nil
	case "fence":
	case "ld":
		n := size(in.op[len(in.op)-1])
		t.regs[in.args[0]] = word(m.bytesAt(t, spaceOf(in.op), in.args[1], n))
	case "st":
		n := size(in.op[len(in.op)-1])
		for i, v := range in.args[1:] {
			setWord(m.bytesAt(t, spaceOf(in.op), plus(in.args[0], i*n), n), m.value(t, v))
		}
	case "atom", "red":
		return m.atomic(t, in)
	default:
		if err := m.compute(t, in); err != nil {
			return err
		}
	}
	t.at++
	return nil
}

func plus(a string, n int) string {
	if n == 0 {
		return a
	}
	return fmt.Sprintf("%s+%d]", strings.TrimSuffix(a, "]"), n)
}

func spaceOf(op []string) string {
	for _, s := range op {
		switch s {
		case "global", "shared", "param":
			return s
		}
	}
	return ""
}

func size(typ string) int {
	n, _ := strconv.Atoi(typ[1:])
	return n / 8
}

func (m *machine) atomic(t *thread, in ptxInstr) error {
	args, typ := in.args, in.op[len(in.op)-1]
	if in.op[0] == "atom" {
		args = args[1:]
	}
	b := m.bytesAt(t, spaceOf(in.op), args[0], size(typ))
	old, v := word(b), m.value(t, args[1])
	switch op := in.op[len(in.op)-2]; op {
	case "cas":
		if old == v {
			setWord(b, m.value(t, args[2]))
		}
	case "exch":
		setWord(b, v)
	default:
		r, err := arithmeticOf(op, typ, old, v)
		if err != nil {
			return err
		}
		setWord(b, r)
	}
	if in.op[0] == "atom" {
		t.regs[in.args[0]] = old
	}
	t.at++
	return nil
}

// arithmeticOf computes an operation of two operands.
func arithmeticOf(op, typ string, a, b uint64) (uint64, error) {
	w := 8 * uint(size(typ))
	mask := uint64(math.MaxUint64) >> (64 - w)
	a, b = a&mask, b&mask
	sa, sb := int64(a<<(64-w))>>(64-w), int64(b<<(64-w))>>(64-w)
	signed := typ[0] == 's'
	switch op {
	case "add":
		a += b
	case "sub":
		a -= b
	case "mul":
		a *= b
	case "and":
		a &= b
	case "or":
		a |= b
	case "xor":
		a ^= b
	case "shl":
		a = a << b
	case "div":
		a /= b
	case "shr":
		if a = a >> b; signed {
			a = uint64(sa >> b)
		}
	case "min":
		if a = min(a, b); signed {
			a = uint64(min(sa, sb))
		}
	case "max":
		if a = max(a, b); signed {
			a = uint64(max(sa, sb))
		}
	case "lt":
		return b2u(signed && sa < sb || !signed && a < b), nil
	case "le":
		return b2u(signed && sa <= sb || !signed && a <= b), nil
	case "gt":
		return b2u(signed && sa > sb || !signed && a > b), nil
	case "ge":
		return b2u(signed && sa >= sb || !signed && a >= b), nil
	case "eq":
		return b2u(a == b), nil
	case "ne":
		return b2u(a != b), nil
	default:
		return 0, fmt.Errorf("the machine has no %s", op)
	}
	return a & mask, nil
}

// floatType is the type of that name, Void if it is no float type.
func floatType(name string) kir.Type {
	return map[string]kir.Type{"f16": kir.F16, "bf16": kir.BF16, "f32": kir.F32}[name]
}

// floatOps are what the machine does with floats, which is not what it is there to judge.
var floatOps = map[string]kir.Op{"add": kir.Add, "mul": kir.Mul, "min": kir.Min, "max": kir.Max, "neu": kir.Ne,
	"eq": kir.Eq, "lt": kir.Lt}

func b2u(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

func (m *machine) compute(t *thread, in ptxInstr) (err error) {
	v := func(i int) uint64 { return m.value(t, in.args[i]) }
	typ := in.op[len(in.op)-1]
	set := func(x uint64) { t.regs[in.args[0]] = x }
	switch in.op[0] {
	case "mov":
		switch {
		case strings.HasPrefix(in.text, "mov.b64 {"):
			t.regs[in.args[0]], t.regs[in.args[1]] = v(2)&math.MaxUint32, v(2)>>32
		case len(in.args) == 3:
			set(v(1) | v(2)<<32)
		default:
			set(v(1))
		}
	case "cvta":
		set(v(1))
	case "cvt":
		if to, from := floatType(in.op[len(in.op)-2]), floatType(typ); to != kir.Void && from != kir.Void {
			x, _ := kir.Eval(kir.Convert, to, from, v(1))
			set(x)
			return nil
		}
		to, from := 8*uint(size(in.op[1])), 8*uint(size(typ))
		x := v(1) << (64 - from)
		if x >>= 64 - from; typ[0] == 's' {
			x = uint64(int64(v(1)<<(64-from)) >> (64 - from))
		}
		set(x << (64 - to) >> (64 - to))
	case "not":
		if typ == "pred" {
			set(1 - v(1))
			return nil
		}
		set(^v(1) << (64 - 8*size(typ)) >> (64 - 8*size(typ)))
	case "neg":
		set(-v(1) << (64 - 8*size(typ)) >> (64 - 8*size(typ)))
	case "popc":
		set(uint64(bits.OnesCount64(v(1))))
	case "clz":
		set(uint64(bits.LeadingZeros64(v(1)) - 64 + 8*size(typ)))
	case "brev":
		set(bits.Reverse64(v(1)) >> (64 - 8*size(typ)))
	case "selp":
		x := v(2)
		if v(3)&1 != 0 {
			x = v(1)
		}
		set(x)
	case "setp":
		var x uint64
		if typ == "f32" {
			x, _ = kir.Eval(floatOps[in.op[1]], kir.Bool, kir.F32, v(1), v(2))
			set(x)
			return nil
		}
		x, err = arithmeticOf(in.op[1], typ, v(1), v(2))
		set(x)
	default:
		if typ == "pred" {
			typ = "b8"
		}
		if f := floatType(typ); f != kir.Void {
			x, ok := kir.Eval(floatOps[in.op[0]], f, f, v(1), v(2))
			if set(x); !ok {
				return fmt.Errorf("the machine has no %s", in.text)
			}
			return nil
		}
		var x uint64
		x, err = arithmeticOf(in.op[0], typ, v(1), v(2))
		set(x)
	}
	return err
}

// run executes a launch whose parameter is args; addresses in it are (3+i)<<32 for buffer i.
func (m *machine) run(args []byte, buffers [][]byte, blocks [3]int, size, shared int) error {
	m.args = args
	m.memory[100] = make([]byte, 24)
	binary.LittleEndian.PutUint64(args, 100<<32)
	for i, b := range buffers {
		m.memory[uint64(3+i)] = b
	}
	for z := range blocks[2] {
		for y := range blocks[1] {
			for x := range blocks[0] {
				if err := m.block([3]int{x, y, z}, size, shared); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
