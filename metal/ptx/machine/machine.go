// Package machine executes texts of metal/ptx for tests, where there is no card: what the printer prints of integers,
// memory and lanes, as the PTX manual says.
package machine

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/mlxlua/mlxlua/metal/kir"
)

// Machine is one text. Each thread has a place of its own in it, and they take turns at random. What the manual leaves
// undefined is an error: a lane that is not in its own mask, lanes that wait for each other at two places; a value of a
// lane that is not there is a random one. A Machine is for one goroutine.
type Machine struct {
	code   []instr
	names  map[string]int // registers
	locals map[string]uint64
	tables []byte // the program's tables, behind each other

	launch Launch
	shared []byte
	local  int // bytes of a thread
	steps  int
	r      *rand.Rand
}

// Launch is one launch of a text.
type Launch struct {
	Args          []byte
	Blocks        [3]int
	Block, Shared int
	// Memory returns the n bytes at an address of device memory, nil where there are none.
	Memory func(address uint64, n int) []byte
	// Rest is called now and then, and may end the launch by an error; nil: it is not.
	Rest func() error
}

type instr struct {
	guard, target int // a register, -1: none; where a branch goes
	not           bool
	op            []string
	args          []operand
	text          string
}

// operand is a register, a number, or an address in brackets.
type operand struct {
	reg int // -1: imm alone
	imm uint64
}

type thread struct {
	regs    []uint64
	written []bool
	local   []byte
	at, id  int
	ended   bool
	waiting bool
}

// Where an address of a name leads: to the launch's parameter, and to the program's tables.
const (
	argsBase  = uint64(2) << 32
	tableBase = uint64(3) << 32
)

// restEvery is how many steps of threads there are between two calls of Rest.
const restEvery = 2000

var special = []string{"%tid.x", "%ntid.x", "%ctaid.x", "%ctaid.y", "%ctaid.z"}

// New reads a text of one kernel.
func New(text string) (m *Machine, err error) {
	defer func() {
		if v := recover(); v != nil {
			m, err = nil, fmt.Errorf("%v", v)
		}
	}()
	m = &Machine{names: map[string]int{}, locals: map[string]uint64{}, r: rand.New(rand.NewPCG(3, 4))}
	for i, name := range special {
		m.names[name] = i
	}
	before, body, _ := strings.Cut(text, "{\n")
	for _, l := range strings.Split(before, "\n") {
		if strings.HasPrefix(l, ".global ") {
			m.table(l)
		}
	}
	labels := map[string]int{}
	branches := map[int]string{}
	for _, l := range strings.Split(body, "\n") {
		l = strings.TrimSpace(l)
		switch {
		case strings.HasPrefix(l, ".local "):
			name, size, _ := strings.Cut(strings.TrimSuffix(l[strings.LastIndex(l, " ")+1:], "];"), "[")
			n, _ := strconv.Atoi(size)
			m.locals[name] = uint64(m.local)
			m.local += n
			continue
		case l == "" || l == "}" || l[0] == '.':
			continue
		case strings.HasSuffix(l, ":"):
			labels[l[:len(l)-1]] = len(m.code)
			continue
		}
		in := instr{text: l, guard: -1}
		l = strings.TrimSuffix(l, ";")
		if l[0] == '@' {
			var guard string
			guard, l, _ = strings.Cut(l[1:], " ")
			guard, in.not = strings.CutPrefix(guard, "!")
			in.guard = m.register(guard)
		}
		op, rest, _ := strings.Cut(l, " ")
		in.op = strings.Split(op, ".")
		if in.op[0] == "bra" {
			branches[len(m.code)] = strings.TrimSpace(rest)
		} else {
			for _, a := range strings.FieldsFunc(rest, func(r rune) bool { return strings.ContainsRune(", {}|", r) }) {
				in.args = append(in.args, m.operand(a))
			}
		}
		m.code = append(m.code, in)
	}
	for at, name := range branches {
		to, ok := labels[name]
		if !ok {
			return nil, fmt.Errorf("no label %s", name)
		}
		m.code[at].target = to
	}
	return m, nil
}

// table reads a table of the program.
func (m *Machine) table(l string) {
	declared, values, _ := strings.Cut(strings.TrimSuffix(l, "};"), " = {")
	name, _, _ := strings.Cut(declared[strings.LastIndex(declared, " ")+1:], "[")
	m.locals[name] = tableBase + uint64(len(m.tables))
	for _, v := range strings.Split(values, ",") {
		w, err := strconv.ParseUint(v, 0, 64)
		if err != nil {
			panic(err)
		}
		m.tables = append(m.tables, make([]byte, 8)...)
		setWord(m.tables[len(m.tables)-8:], w)
	}
}

func (m *Machine) register(name string) int {
	i, ok := m.names[name]
	if !ok {
		i = len(m.names)
		m.names[name] = i
	}
	return i
}

// operand reads an operand: a register or a number, or both in brackets.
func (m *Machine) operand(a string) operand {
	base, offset, _ := strings.Cut(strings.Trim(a, "[]"), "+")
	o := operand{reg: -1}
	if base[0] == '%' {
		o.reg = m.register(base)
	} else {
		o.imm = m.number(base)
	}
	if offset != "" {
		o.imm += m.number(offset)
	}
	return o
}

func (m *Machine) number(a string) uint64 {
	switch at, local := m.locals[a]; {
	case local:
		return at
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

// Run executes a launch.
func (m *Machine) Run(l Launch) error {
	m.launch = l
	for z := range l.Blocks[2] {
		for y := range l.Blocks[1] {
			for x := range l.Blocks[0] {
				if err := m.block([3]int{x, y, z}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// block executes one block of threads.
func (m *Machine) block(pos [3]int) error {
	m.shared = make([]byte, m.launch.Shared)
	for i := range m.shared { // another kernel's bytes
		m.shared[i] = 0xA5
	}
	m.r.Uint64()
	threads := make([]*thread, m.launch.Block)
	n := len(m.names)
	regs, written := make([]uint64, n*len(threads)), make([]bool, n*len(threads))
	for i := range threads {
		t := &thread{id: i, regs: regs[i*n:][:n], written: written[i*n:][:n], local: make([]byte, m.local)}
		for r, v := range []int{i, m.launch.Block, pos[0], pos[1], pos[2]} {
			t.regs[r], t.written[r] = uint64(v), true
		}
		threads[i] = t
	}
	ready := make([]*thread, 0, len(threads))
	for {
		ready = ready[:0]
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
		// Some of them in turn: to choose one at a time would be most of the work.
		for range (len(ready) + 3) / 4 {
			t := ready[m.r.IntN(len(ready))]
			for n := m.r.IntN(50); n >= 0 && !t.ended && !t.waiting; n-- {
				if err := m.step(t); err != nil {
					return fmt.Errorf("thread %d: %s: %w", t.id, m.code[t.at].text, err)
				}
			}
		}
	}
}

// meet lets go on whom all that they wait for have come to.
func (m *Machine) meet(all []*thread) (met bool, err error) {
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
func (m *Machine) together(in instr, here []*thread, mask uint64) error {
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
			m.set(t, in.args[0], r)
		}
		t.waiting = false
		t.at++
	}
	return nil
}

func (m *Machine) redux(in instr, here []*thread) uint64 {
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

func (m *Machine) value(t *thread, a operand) uint64 {
	if a.reg < 0 {
		return a.imm
	}
	if !t.written[a.reg] {
		for name, i := range m.names {
			if i == a.reg {
				panic("never written: " + name)
			}
		}
	}
	return t.regs[a.reg] + a.imm
}

func (m *Machine) set(t *thread, d operand, v uint64) { t.regs[d.reg], t.written[d.reg] = v, true }

// bytesAt returns the memory behind an operand in brackets.
func (m *Machine) bytesAt(t *thread, space string, a operand, size int) []byte {
	at := m.value(t, a)
	if at%uint64(size) != 0 {
		panic(fmt.Sprintf("address %#x is not aligned", at))
	}
	var b []byte
	switch {
	case space == "shared":
		b = m.shared
	case space == "local":
		b = t.local
	case space == "param":
		b, at = m.launch.Args, at-argsBase
	case at >= tableBase && at-tableBase < uint64(len(m.tables)):
		b, at = m.tables, at-tableBase
	default:
		if b = m.launch.Memory(at, size); b == nil {
			panic(fmt.Sprintf("illegal address %#x", at))
		}
		return b[:size]
	}
	if at > uint64(len(b)) || uint64(len(b))-at < uint64(size) {
		panic(fmt.Sprintf("illegal address %#x of %s memory", at, space))
	}
	return b[at:][:size]
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
func (m *Machine) step(t *thread) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%v", v)
		}
	}()
	if m.steps++; m.steps%restEvery == 0 && m.launch.Rest != nil {
		if err := m.launch.Rest(); err != nil {
			return err
		}
	}
	in := &m.code[t.at]
	if in.guard >= 0 && (m.value(t, operand{reg: in.guard})&1 != 0) == in.not {
		t.at++
		return nil
	}
	switch in.op[0] {
	case "exit":
		t.ended = true
		return nil
	case "bra":
		t.at = in.target
		return nil
	case "vote", "shfl", "redux", "bar", "barrier":
		t.waiting = true
		return nil
	case "fence":
	case "ld": // several words are aligned as one
		n, last := size(in.op[len(in.op)-1]), len(in.args)-1
		from := m.bytesAt(t, spaceOf(in.op), in.args[last], n*last)
		for i, d := range in.args[:last] {
			m.set(t, d, word(from[n*i:][:n]))
		}
	case "st":
		n, values := size(in.op[len(in.op)-1]), in.args[1:]
		to := m.bytesAt(t, spaceOf(in.op), in.args[0], n*len(values))
		for i, v := range values {
			setWord(to[n*i:][:n], m.value(t, v))
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

func spaceOf(op []string) string {
	for _, s := range op {
		switch s {
		case "global", "shared", "param", "local":
			return s
		}
	}
	return ""
}

func size(typ string) int {
	n, _ := strconv.Atoi(typ[1:])
	return n / 8
}

func (m *Machine) atomic(t *thread, in *instr) error {
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
		m.set(t, in.args[0], old)
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
	case "mul.hi":
		if w != 32 {
			return 0, fmt.Errorf("the machine has no %s.%s", op, typ)
		}
		if a = a * b >> 32; signed {
			a = uint64(sa * sb >> 32)
		}
	case "and":
		a &= b
	case "or":
		a |= b
	case "xor":
		a ^= b
	case "shl":
		a = a << b
	case "div", "rem":
		if b == 0 || signed {
			return 0, fmt.Errorf("the machine has no %s.%s by %d", op, typ, b)
		}
		if op == "rem" {
			a %= b
		} else {
			a /= b
		}
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

func (m *Machine) compute(t *thread, in *instr) (err error) {
	v := func(i int) uint64 { return m.value(t, in.args[i]) }
	typ := in.op[len(in.op)-1]
	set := func(x uint64) { m.set(t, in.args[0], x) }
	switch in.op[0] {
	case "mov":
		switch {
		case len(in.args) == 3 && in.text[len("mov.b64 ")] == '{':
			x, half := v(2), uint(4*size(typ))
			m.set(t, in.args[0], x&(1<<half-1))
			m.set(t, in.args[1], x>>half)
		case len(in.args) == 3:
			set(v(1) | v(2)<<(4*uint(size(typ))))
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
	case "fma":
		x, _ := kir.Eval(kir.Fma, floatType(typ), floatType(typ), v(1), v(2), v(3))
		set(x)
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
		if x, err = arithmeticOf(in.op[1], typ, v(1), v(2)); len(in.args) == 4 { // .or
			x |= v(3)
		}
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
		op := in.op[0]
		if op == "mul" && in.op[1] != "lo" {
			op = "mul." + in.op[1]
		}
		var x uint64
		x, err = arithmeticOf(op, typ, v(1), v(2))
		set(x)
	}
	return err
}
