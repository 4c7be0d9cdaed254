package luabind

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// program writes a random Lua program whose arrays are squares and hide wherever Lua has a place for them: variables,
// tables and their keys, closures, coroutines, varargs, metatables, transforms, errors, and what a Go program was
// given.
//
// The program has the arrays' side and calls, beside mx: see(x), which notes the array x and returns it; out(x), which
// reads it; look(), at any point; host(f, ...), a Go function that calls f; give(name, v) and taken(name), by which a
// Go program holds values.
type program struct {
	*rand.Rand
	text   strings.Builder
	depth  int
	names  int
	scopes [][]string // names of arrays in the functions and blocks that are open
	funcs  []string   // functions of (x, ...) that return an array
	tables []string
	taken  []string // names that were given to the Go program
	// pure counts the functions around that are traced. Nothing is read in there or written to what is outside: scopes,
	// functions and tables before these numbers.
	pure                   int
	scopes0, funcs0, tabs0 int
}

func newProgram(seed uint64) string {
	p := &program{Rand: rand.New(rand.NewPCG(seed, 13))}
	p.scopes = [][]string{{"a"}}
	p.line("local t = {see(a * 2), x = see(a + 1)}")
	p.tables = []string{"t"}
	p.statements(8 + p.IntN(10))
	for _, x := range p.visible() {
		p.line("out(%s)", x)
	}
	for _, t := range p.tables {
		p.line("each(%s)", t)
	}
	for _, name := range p.taken {
		p.line("out(taken(%q))", name)
	}
	return p.text.String()
}

func (p *program) line(format string, args ...any) {
	p.text.WriteString(strings.Repeat("  ", p.depth) + fmt.Sprintf(format, args...) + "\n")
}

func (p *program) name(kind string) string {
	p.names++
	return fmt.Sprintf("%s%d", kind, p.names)
}

func (p *program) visible() (out []string) {
	for _, s := range p.scopes {
		out = append(out, s...)
	}
	return out
}

// assignable are the arrays that may be written to: a is the argument of all.
func (p *program) assignable() []string {
	var out []string
	for _, s := range p.scopes[p.scopes0:] {
		out = append(out, s...)
	}
	return slices.DeleteFunc(out, func(x string) bool { return x == "a" })
}

func pick[T any](p *program, xs []T) T { return xs[p.IntN(len(xs))] }

func (p *program) declare(x string) {
	p.scopes[len(p.scopes)-1] = append(p.scopes[len(p.scopes)-1], x)
}

// value is an expression that gives an array.
func (p *program) value() string {
	x := pick(p, p.visible())
	switch n := p.IntN(14); {
	case n < 3:
		return x
	case n == 3:
		return fmt.Sprintf("see(mx.sin(%s) * 0.5)", x)
	case n == 4:
		return fmt.Sprintf("see(%s + %s * 0.25)", x, pick(p, p.visible()))
	case n == 5:
		return fmt.Sprintf("see(mx.matmul(%s, mx.tanh(%s)))", x, pick(p, p.visible()))
	case n == 6:
		return fmt.Sprintf("see(mx.softmax(%s, -1))", x)
	case n == 7:
		return fmt.Sprintf("see(%s.T)", x)
	case n == 8:
		return fmt.Sprintf("see(mx.where(mx.greater(%s, 0), %s, a))", x, pick(p, p.visible()))
	case n == 9:
		return fmt.Sprintf("((function(...) look() return (select(%d, ...)) end)(%s, %s, see(a * 3)))", 1+p.IntN(3), x,
			pick(p, p.visible()))
	case n == 10 && len(p.taken) > 0 && p.pure == 0:
		return fmt.Sprintf("taken(%q)", pick(p, p.taken))
	case n == 11 && len(p.funcs) > p.funcs0:
		return fmt.Sprintf("%s(%s, see(a - 1))", pick(p, p.funcs[p.funcs0:]), x)
	default:
		return fmt.Sprintf("(%s.x or %s)", pick(p, p.tables), x)
	}
}

// block is what stands between head and tail, with names of its own; body writes it.
func (p *program) block(head, tail string, names []string, body func()) {
	p.line("%s", head)
	p.depth++
	funcs, tables, taken := len(p.funcs), len(p.tables), len(p.taken)
	p.scopes = append(p.scopes, names)
	body()
	p.scopes = p.scopes[:len(p.scopes)-1]
	p.funcs, p.tables, p.taken = p.funcs[:funcs], p.tables[:tables], p.taken[:taken]
	p.depth--
	p.line("%s", tail)
}

// function is a block that ends with a return.
func (p *program) function(head, tail string, n int, names ...string) {
	p.block(head, tail, names, func() {
		p.statements(n)
		p.line("return %s", p.value())
	})
}

// traced is a function whose arrays are traced.
func (p *program) traced(head, tail string, names ...string) {
	scopes0, funcs0, tabs0 := p.scopes0, p.funcs0, p.tabs0
	p.pure++
	p.scopes0, p.funcs0, p.tabs0 = len(p.scopes), len(p.funcs), len(p.tables)
	p.function(head, tail, p.IntN(4), names...)
	p.pure--
	p.scopes0, p.funcs0, p.tabs0 = scopes0, funcs0, tabs0
}

func (p *program) statements(n int) {
	for range n {
		p.statement()
	}
}

func (p *program) statement() {
	kinds := plainStatements()
	if p.depth < 3 {
		kinds = append(kinds, nestedStatements()...)
	}
	pick(p, kinds)(p)
}

// write is a statement that writes to a table: %[1]s, its field: %[2]s, a value: %[3]s.
func (p *program) write(format string) {
	if tables := p.tables[p.tabs0:]; len(tables) > 0 {
		field := pick(p, []string{"x", "y", "z"})
		p.line("%s", fmt.Sprintf(format+"%.0[1]s%.0[2]s%.0[3]s", pick(p, tables), field, p.value()))
	}
}

// plainStatements are those that have no others in them.
func plainStatements() []func(p *program) {
	return []func(p *program){
		func(p *program) {
			x, v := p.name("v"), p.value()
			p.line("local %s = %s", x, v)
			p.declare(x)
		},
		func(p *program) {
			if xs := p.assignable(); len(xs) > 0 {
				p.line("%s = %s", pick(p, xs), p.value())
			}
		},
		func(p *program) { p.write("%[1]s.%[2]s = %[3]s") },
		func(p *program) { p.write("%[1]s[#%[1]s + 1] = %[3]s") },
		func(p *program) { p.write("table.insert(%[1]s, 1, %[3]s)") },
		func(p *program) { p.write("table.remove(%[1]s)") },
		func(p *program) { p.write("%[1]s[%[3]s] = %[3]s") },
		func(p *program) { p.write("%[1]s.%[2]s = nil") },
		func(p *program) {
			x := p.name("t")
			p.line("local %s = {%s, y = %s, {%s}}", x, p.value(), p.value(), p.value())
			p.tables = append(p.tables, x)
		},
		func(p *program) { p.line("look()") },
		func(p *program) {
			if p.pure == 0 {
				p.line("mx.eval(%s, %s)", p.value(), p.value())
			}
		},
		func(p *program) {
			if p.pure == 0 {
				p.line("mx.async_eval(%s)", p.value())
			}
		},
		func(p *program) {
			if p.pure == 0 {
				p.line("out(%s)", p.value())
			}
		},
		func(p *program) {
			if xs := p.assignable(); p.pure == 0 && len(xs) > 0 {
				x := pick(p, xs)
				p.line("%s = %s * 1 %s[%d] = %d", x, x, x, p.IntN(2), p.IntN(9))
			}
		},
		func(p *program) {
			if p.pure == 0 {
				name := p.name("g")
				forms := []string{"%s", "{%s}", "{x = {%s}}", "function() return %[1]s end"}
				p.line("give(%q, %s)", name, fmt.Sprintf(pick(p, forms), p.value()))
				p.taken = append(p.taken, name)
			}
		},
	}
}

// nestedStatements are those that have others in them.
func nestedStatements() []func(p *program) {
	return []func(p *program){
		func(p *program) { p.block("do", "end", nil, func() { p.statements(1 + p.IntN(4)) }) },
		func(p *program) {
			p.block(fmt.Sprintf("for i = 1, %d do", 1+p.IntN(4)), "end", nil, func() { p.statements(1 + p.IntN(3)) })
		},
		func(p *program) {
			f := p.name("f")
			p.function(fmt.Sprintf("local function %s(x, ...)", f), "end", p.IntN(4), "x")
			p.funcs = append(p.funcs, f)
		},
		func(p *program) { // one variable of several closures
			f, x := p.name("f"), p.name("v")
			p.line("local %s, set%s", f, f)
			p.block("do", "end", nil, func() {
				p.line("local %s = %s", x, p.value())
				p.line("%s = function(y) look() return %s end", f, x)
				p.line("set%s = function(y) %s = y look() end", f, x)
			})
			p.line("set%s(%s)", f, p.value())
			p.funcs = append(p.funcs, f)
		},
		func(p *program) {
			f := p.name("f")
			p.block(fmt.Sprintf("local %s = coroutine.wrap(function(x)", f), "end)", []string{"x"}, func() {
				p.block("while true do", "end", nil, func() {
					p.statements(p.IntN(4))
					p.line("x = coroutine.yield(%s)", p.value())
				})
			})
			if p.pure == 0 { // a coroutine that is under way cannot be called
				p.line("out(%s(%s))", f, p.value())
				p.line("look()")
				p.line("out(%s(%s))", f, p.value())
			}
		},
		func(p *program) { // one that has not begun, and one that was given up
			co := p.name("co")
			p.function(fmt.Sprintf("local %s = coroutine.create(function(x)", co), "end)", p.IntN(3), "x")
			p.line("look()")
			if p.pure == 0 && p.IntN(2) == 0 {
				p.line("do local ok, y = coroutine.resume(%s, %s) assert(ok, y) out(y) end", co, p.value())
			}
		},
		func(p *program) {
			t := p.name("t")
			p.line("local %s = setmetatable({%s}, {", t, p.value())
			p.depth++
			p.traced("__index = function(self, key)", "end,")
			p.traced("__call = function(self, x)", "end,", "x")
			p.traced("__add = function(self, x)", "end", "x")
			p.depth--
			p.line("})")
			p.tables = append(p.tables, t)
			x := p.name("v")
			p.line("local %s = %s", x, fmt.Sprintf(pick(p, []string{"%[1]s.w", "%[1]s(%[2]s)", "%[1]s + %[2]s"}), t, p.value()))
			p.declare(x)
		},
		func(p *program) {
			p.transform(pick(p, []string{"mx.grad(function(x) return mx.sum(%s(x)) end)", vmapped, "mx.compile(%s)",
				"mx.checkpoint(%s)", "mx.compile(mx.grad(function(x) return mx.sum(%s(x)) end))",
				"mx.custom_function(%s)", "(function(f) return function(x) return mx.stream(mx.default_stream(mx.cpu), " +
					"function() return f(x) end) end end)(%s)"}))
		},
		func(p *program) {
			x := p.name("v")
			p.line("local %s = a", x)
			p.block("do", "end", nil, func() {
				p.block("local ok, e = pcall(function()", "end)", nil, func() {
					p.statements(p.IntN(3))
					p.line("error({%s})", p.value())
				})
				p.line("look() assert(type(e) == 'table', e) %s = e[1]", x)
			})
			p.declare(x)
		},
		func(p *program) {
			x := p.name("v")
			p.line("local %s = a", x)
			p.block("do", "end", nil, func() {
				p.block("local ok, e = xpcall(function()", "end, function(e) look() return e end)", nil, func() {
					p.statements(p.IntN(3))
					p.line("%s = %s", x, p.value())
					p.line("error({%s})", p.value())
				})
				p.line("look() assert(type(e) == 'table', e)")
			})
			p.declare(x)
		},
		func(p *program) {
			x := p.name("v")
			p.function(fmt.Sprintf("local %s = host(function(x, y)", x), fmt.Sprintf("end, %s, %s)", p.value(), p.value()),
				p.IntN(3), "x", "y")
			p.declare(x)
		},
		func(p *program) {
			x := p.name("v")
			p.traced(fmt.Sprintf("local %s = mx.scope(function()", x), "end)") // frees what it gives to others
			p.declare(x)
		},
		func(p *program) {
			if p.pure == 0 {
				p.line("do local s = {%s, %s, %s} table.sort(s, function(p, q) look() "+
					"return mx.sum(p):item() < mx.sum(q):item() end) out(s[1]) end", p.value(), p.value(), p.value())
			}
		},
		func(p *program) {
			if p.pure == 0 {
				p.line(`;("abc"):gsub("%%w", function(c) local y = %s mx.eval(y) look() end)`, p.value())
			}
		},
		(*program).secret,
	}
}

// secrets are ways to hide the array in the variable %[2]s where nothing else leads to it, and what reads it from
// %[1]s in the end, maybe more than once. %[3]s is an array.
var secrets = [][2]string{
	{"%[1]s = coroutine.create(function(y) look() y = coroutine.yield(y) look() return %[2]s end)",
		"do local ok, y = coroutine.resume(%[1]s, %[3]s) assert(ok or y:find('dead'), y) if ok and y then out(y) end end"},
	{"%[1]s = coroutine.wrap(function(y) look() while true do y = coroutine.yield(y + %[2]s) look() end end)",
		"out(%[1]s(%[3]s))"},
	{"%[1]s = mx.compile(function(y) return y + %[2]s end)", "out(%[1]s(%[3]s))"},
	{"%[1]s = mx.compile(mx.grad(function(y) return mx.sum(y * %[2]s) end))", "out(%[1]s(%[3]s))"},
	{"%[1]s = mx.grad(function(y) look() return mx.sum(y * %[2]s) end)", "out(%[1]s(%[3]s))"},
	{"%[1]s = mx.vmap(function(y) look() return y * %[2]s end)", "out(%[1]s(%[3]s))"},
	{"%[1]s = mx.checkpoint(function(y) return mx.sin(y) * %[2]s end)",
		"out(mx.grad(function(y) return mx.sum(%[1]s(y)) end)(%[3]s))"},
	{"give('%[1]s', function() look() return %[2]s end)", "out(taken('%[1]s'))"},
	{"give('%[1]s', {x = {%[2]s}})", "out(taken('%[1]s'))"},
	{"%[1]s = setmetatable({}, {__call = function(self, y) setmetatable(self, nil) look() return y + %[2]s end})",
		"if getmetatable(%[1]s) then out(%[1]s(%[3]s)) end"},
	{"%[1]s = {xpcall, error, function(e) look() out(%[2]s) end}",
		"if %[1]s then local call, f, g = unpack(%[1]s) %[1]s = nil " +
			"call(f, (function() local h = g g = nil return h end)()) end"},
	{"%[1]s = (' '):rep(3):gmatch('%%s') %[1]s = {%[1]s, %[2]s}", "%[1]s[1]() out(%[1]s[2])"},
	{"%[1]s = {[%[2]s] = true}", "out((next(%[1]s)))"},
	{"%[1]s = {} %[1]s[{%[2]s}] = 1", "out(next(%[1]s)[1])"},
	{"%[1]s = %[2]s:rows()", "do local r = %[1]s() if r then out(r) end end"},
	{"%[1]s = %[2]s:at(0)", "out(%[1]s:add(1))"},
	{"%[1]s = setfenv(function() look() return x end, {x = %[2]s, look = look})", "out(%[1]s())"},
}

// secret hides an array, and reads it later.
func (p *program) secret() {
	if p.pure > 0 {
		return
	}
	x, h, s := p.name("s"), p.name("h"), pick(p, secrets)
	fill := func(format string) { p.line("%s", fmt.Sprintf(format+"%.0[1]s%.0[2]s%.0[3]s", x, h, p.value())) }
	p.line("local %s", x)
	p.block("do", "end", nil, func() {
		p.line("local %s = see(%s * 1.5)", h, p.value())
		fill(s[0])
	})
	for range 1 + p.IntN(3) {
		p.line("look()")
		p.statements(p.IntN(2))
		fill(s[1])
	}
}

// vmapped is a function of batches whose examples are squares too.
const vmapped = "(function(f) local g = mx.vmap(function(x) return f(mx.broadcast_to(x, {side, side})) end) " +
	"return function(x) return mx.mean(g(x), 0) end end)(%s)"

// transform makes a function of a function, and calls it.
func (p *program) transform(format string) {
	inner, f, x := p.name("f"), p.name("f"), p.name("v")
	p.traced(fmt.Sprintf("local function %s(x)", inner), "end", "x")
	p.line("local %s = %s", f, fmt.Sprintf(format, inner))
	p.line("local %s = %s(%s)", x, f, p.value())
	p.declare(x)
	if p.pure == 0 {
		p.line("for i = 1, 2 do look() out(%s(%s * i)) end", f, pick(p, p.visible()))
		p.funcs = append(p.funcs, f)
	}
}
