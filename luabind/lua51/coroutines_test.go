package lua51

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"
)

// Random programs of coroutines do what they do in Lua 5.1.
func TestRandomCoroutines(t *testing.T) {
	agree(t, "coroutines", 400, randomCoroutines)
}

// coProgram writes a program in which coroutines create, resume and wrap each other, themselves, those that wait for
// them and dead ones, and yield across whatever there is.
type coProgram struct {
	*rand.Rand
	text  strings.Builder
	depth int
	names int
	looks bool // at the levels of others, which "return yield()" leaves none of here
}

func randomCoroutines(seed uint64) string {
	p := &coProgram{Rand: rand.New(rand.NewPCG(seed, 51)), looks: seed%2 == 0}
	p.line(`local left = 60`)
	p.line(`local function go() left = left - 1 return left > 0 end`)
	p.line(`local function show(v) if type(v) == "table" then return "t" .. tostring(v.id) end`)
	p.line(`  if type(v) == "thread" or type(v) == "function" then return type(v) end return tostring(v) end`)
	p.line(`local function out(...) local s = select("#", ...) .. ":"`)
	p.line(`  for i = 1, select("#", ...) do s = s .. " " .. show((select(i, ...))) end print(s) return ... end`)
	p.line(`local resume, yield, status = coroutine.resume, coroutine.yield, coroutine.status`)
	p.line(`local create, wrap, running = coroutine.create, coroutine.wrap, coroutine.running`)
	p.line(`local c1, c2, c3, w1, w2, u = nil, nil, nil, nil, nil, 0`)
	p.line(`local f1, f2`)
	p.line(`function f1(...)`)
	p.block(3)
	p.line(`end`)
	p.line(`function f2(a, b)`)
	p.block(3)
	p.line(`end`)
	for i := 1; i <= 3; i++ {
		p.line("c%d = create(function(%s)", i, p.pick("...", "a", "a, b", "a, ..."))
		p.block(5)
		p.line("end)")
	}
	for i := 1; i <= 2; i++ {
		p.line("w%d = wrap(function(%s)", i, p.pick("...", "a"))
		p.block(4)
		p.line("end)")
	}
	for range 3 + p.IntN(6) {
		switch p.IntN(4) {
		case 0:
			p.nested("out(pcall(", "...", "))")
		case 1:
			p.line("out(pcall(w%d, %s))", 1+p.IntN(2), p.value())
		default:
			p.line("out(resume(c%d, %s))", 1+p.IntN(3), p.value())
		}
	}
	p.line("out(status(c1), status(c2), status(c3))")
	return p.text.String()
}

func (p *coProgram) line(format string, v ...any) {
	p.text.WriteString(strings.Repeat("  ", p.depth))
	fmt.Fprintf(&p.text, format, v...)
	p.text.WriteByte('\n')
}

func (p *coProgram) pick(of ...string) string { return of[p.IntN(len(of))] }

// pickLooks is the first where the program looks at levels of others, else the second.
func (p *coProgram) pickLooks(first, second string) string {
	if p.looks {
		return first
	}
	return second
}

// block is what the body of a function holds; the last statement may return.
func (p *coProgram) block(most int) {
	p.depth++
	p.line("if not go() then return end")
	for range 1 + p.IntN(most) {
		p.statement()
	}
	switch p.IntN(9) {
	case 0:
		p.line(p.pickLooks("return (yield(%s))", "return yield(%s)"), p.values())
	case 1:
		p.line("return %s", p.values())
	case 2:
		p.line("return %s(%s)", p.pick("f1", "f2", "w1", "out", p.pickLooks("out", "yield")),
			p.values())
	case 3:
		p.line("return resume(%s, %s)", p.coroutine(), p.value())
	case 4:
		p.line("error(%s)", p.pick(`"end"`, `{id = 3}`, "nil", "7", `"end", 0`, "true"))
	}
	p.depth--
}

// nested is a function whose body is a block, written to the program as an expression.
func (p *coProgram) nested(before, parameters, after string) {
	p.line("%sfunction(%s)", before, parameters)
	p.block(3)
	p.line("end%s", after)
}

func (p *coProgram) coroutine() string {
	return p.pick("c1", "c2", "c3", "c1", "c2", "c3", "(running() or c1)")
}

func (p *coProgram) value() string {
	return p.pick("1", "2", `"s"`, "nil", "true", "u", "{id = 1}", "running()", "left > 5")
}

func (p *coProgram) values() string {
	list := []string{}
	for range p.IntN(4) {
		list = append(list, p.value())
	}
	if p.IntN(5) == 0 {
		list = append(list, fmt.Sprintf("yield(%s)", p.value()))
	}
	return strings.Join(list, ", ")
}

func (p *coProgram) name() string {
	p.names++
	return fmt.Sprintf("v%d", p.names)
}

func (p *coProgram) statement() {
	if p.depth > 5 {
		p.line("out(yield(%s))", p.values())
		return
	}
	switch p.IntN(31) {
	case 0, 1, 2:
		p.line("out(resume(%s))", strings.Join(append([]string{p.coroutine()}, p.value()), ", "))
	case 3, 4:
		p.line("out(yield(%s))", p.values())
	case 5:
		a, b, c := p.name(), p.name(), p.name()
		p.line("local %s, %s, %s = yield(%s)", a, b, c, p.values())
		p.line("out(%s, %s, %s)", a, b, c)
	case 6:
		p.line("out(status(c1), status(c2), status(c3), running() == %s, running() == nil)", p.coroutine())
	case 7:
		p.nested("out(pcall(", p.pick("", "..."), fmt.Sprintf(", %s))", p.value()))
	case 8:
		p.nested("out(xpcall(", "", ",")
		p.nested("", "e", "))")
	case 9:
		p.line("if u %% 3 == %d then error(%s) end", p.IntN(3), p.pick(`"e"`, `"e"`, `{id = 2}`, "nil", "5", `"z", 0`))
	case 10:
		p.line("out(%s(%s))", p.pick("w1", "w2"), p.values())
	case 11:
		p.line("out(pcall(%s, %s))", p.pick("w1", "w2", "yield", "f1", "f2"), p.value())
	case 12:
		p.line("for x, y in w%d, %s do", 1+p.IntN(2), p.value())
		p.line("  out(x, y) if not go() then break end")
		p.line("end")
	case 13:
		p.nested("for x, y in ", p.pick("...", "a, b"), fmt.Sprintf(", %s, nil do", p.value()))
		p.line("  out(x, y) if not go() then break end")
		p.line("end")
	case 14:
		p.metamethod()
	case 15:
		p.nested("table.sort({1, 2}, ", "a, b", ")")
	case 16:
		p.nested(`out(("ab"):gsub(".", `, "a", "))")
	case 17:
		p.line("c%d = create(function(...)", 1+p.IntN(3))
		p.block(4)
		p.line("end)")
	case 18:
		p.line("w%d = wrap(function(...)", 1+p.IntN(2))
		p.block(4)
		p.line("end)")
	case 19:
		p.line("u = u + 1")
		p.line("out(u, left)")
	case 20:
		p.line("for i = 1, %d do out(i, yield(i)) end", 1+p.IntN(3))
	case 21:
		p.line("out(%s(%s))", p.pick("f1", "f2"), p.values())
	case 22:
		p.line("local function deep(n) if n == 0 then return out(yield(%s)) end return %s end", p.value(),
			p.pick("deep(n - 1)", "(deep(n - 1))", "n, deep(n - 1)"))
		p.line("out(deep(%d))", p.IntN(4))
	case 23:
		v := p.name()
		p.line("local %s = {yield(%s)}", v, p.values())
		p.line("out(#%s, %s[1])", v, v)
	case 24:
		p.line("while go() do")
		p.depth++
		p.statement()
		p.line("if %s then break end", p.value())
		p.depth--
		p.line("end")
	case 26:
		p.line("if u %% 2 == %d then error(%s, %d) end", p.IntN(2), p.pick(`"level"`, "7", "{id = 4}"), 1+p.IntN(4))
	case 27:
		p.line("if running() then out(debug.traceback(%s)) end", p.pick("", `"here"`, `"x", 2`, p.pickLooks("c1", ""),
			p.pickLooks(`c2, "there"`, "")))
	case 28:
		p.line("if running() then for l = 0, 4 do")
		p.line(`  local i = debug.getinfo(%sl, "nlS")`, p.pick("", "", p.pickLooks("c1, ", ""), p.pickLooks("c2, ", "")))
		p.line(`  if i then out(l, i.name, i.namewhat, i.currentline, i.what, i.linedefined) end`)
		p.line("end end")
	case 29:
		p.line("if u %% 2 == %d then %s end", p.IntN(2), p.pick("u.x.y = 1", "local z z()", "u = u + {}", "nothing()",
			"u.nothing()", "c1:nothing()", "resume(nil)", "create(5)", "status(1)", "wrap(print)", "c1.x = 1", `u = c2 .. "x"`,
			"u = u < c1", "for x in nil do end", "w1 = #u"))
	case 30:
		p.line("for i = 1, 4 do out(debug.getlocal(1, i)) end")
	case 25:
		co := p.name()
		p.nested(fmt.Sprintf("local %s = create(", co), "a", ")")
		p.line("out(resume(%s, %s)) out(resume(%s)) out(status(%s))", co, p.value(), co, co)
	}
}

// metamethod has a metamethod run a block.
func (p *coProgram) metamethod() {
	v := p.name()
	event := p.IntN(8)
	events := []string{"__index", "__newindex", "__add", "__call", "__lt", "__concat", "__unm", "__eq"}
	parameters := "a, b"
	if events[event] == "__unm" {
		parameters = "a" // Lua passes the operand twice, gopher-lua once
	}
	p.nested(fmt.Sprintf("local %s = setmetatable({id = 9}, {%s = ", v, events[event]), parameters, "})")
	use := strings.ReplaceAll([]string{"out(V.field)", "V.field = 1", "out(V + 1)", "out(V(2))", "out(V < V)",
		`out(V .. "x")`, "out(-V)", "out(V == V)"}[event], "V", v)
	p.line("%s", use)
}

// Two coroutines that resume each other, and functions of wrap that call each other.
func TestMutualResume(t *testing.T) {
	for program, want := range map[string]string{
		`local a, b
		a = coroutine.create(function() return coroutine.resume(b) end)
		b = coroutine.create(function() return coroutine.resume(a) end)
		print(coroutine.resume(a))`: "true true false cannot resume normal coroutine",
		`local f, g
		f = coroutine.wrap(function() return g() end)
		g = coroutine.wrap(function() return f() end)
		print(pcall(f))`: "false p:2: p:3: cannot resume normal coroutine",
		`local co
		co = coroutine.create(function() return coroutine.status(co), coroutine.resume(co) end)
		print(coroutine.resume(co))`: "true running false cannot resume running coroutine",
		`local function deep() return coroutine.resume(coroutine.create(deep)) end
		local out = {deep()}
		print(out[#out], #out > 150 and #out <= 202)`: "C stack overflow true",
		`local function deep() return pcall(deep) end
		local out = {deep()}
		print(out[#out], #out > 150 and #out <= 202)`: "C stack overflow true",
		`local function deep() return coroutine.wrap(deep)() end
		local ok, e = pcall(deep)
		print(ok, e:match("C stack overflow$"))`: "false C stack overflow",
		`local co = coroutine.create(function() local x = nil; x() end)
		coroutine.resume(co)
		print(coroutine.status(co), coroutine.resume(co))`: "dead false cannot resume dead coroutine",
		`local co = coroutine.wrap(function() local a, b, c = coroutine.yield() print(a, b, c) end)
		co() co(1)`: "1 nil nil",
		`print(xpcall(error, function() error("again") end))`: "false error in error handling",
		`local n = 0
		print(xpcall(error, function(e) n = n + 1 if n < 3 then error("again", 0) end return e .. n end))`: "false again3",
		`print(pcall(coroutine.yield))
		local function f() return f() + 1 end
		print(pcall(f))
		print(coroutine.resume(coroutine.create(f)))
		print(xpcall(f, function(e) return "handled " .. e end))`: "" +
			"false attempt to yield across metamethod/C-call boundary\nfalse p:2: stack overflow\n" +
			"false p:2: stack overflow\nfalse handled p:2: stack overflow",
	} {
		require.Equal(t, want, ours(t, program), program)
		if *oracle != "" {
			require.Equal(t, want, theirs(t, []string{program})[0], program)
		}
	}
}

// Threads that wait for each other have so many frames together that Go's stack bears them.
func TestWaitingFrames(t *testing.T) {
	const deep = `
		local function most(f) -- as many metamethods in each other as there may be
			local t
			t = setmetatable({}, {__index = function(_, n) if n == 0 then return f() end return t[n - 1] end})
			return t[9000]
		end
		local levels = 0
		local function again() levels = levels + 1 return %s end
		local ok, e = again()
		return levels, e`
	for _, by := range []string{
		"pcall(most, again)",
		"coroutine.resume(coroutine.create(function() return most(again) end))",
		"pcall(coroutine.wrap(function() return most(again) end))",
	} {
		out, err := run(newTestState(t), fmt.Sprintf(deep, by), "deep")
		require.NoError(t, err)
		require.Greater(t, out[0], lua.LNumber(3))
		require.Less(t, out[0], lua.LNumber(15))
	}
}
