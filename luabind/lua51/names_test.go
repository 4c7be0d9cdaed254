package lua51

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// What random functions fail with has the names and lines that it has in Lua 5.1.
func TestRandomNames(t *testing.T) {
	agree(t, "names", 300, func(seed uint64) string {
		p := &nameProgram{Rand: rand.New(rand.NewPCG(seed, 23))}
		p.line("local u, w, g1 = nil, {x = {}}, 1")
		p.line("local function show(ok, v)")
		p.line("  if type(v) == 'table' or type(v) == 'function' then v = type(v) end print(ok, v)")
		p.line("end")
		for range 12 {
			p.locals = []string{"p", "q"}
			p.line("show(pcall(function(p, q, ...)")
			p.block(1+p.IntN(4), 0)
			p.line("end, {x = {}, n = 1, f = function(...) return ... end}, nil, 3))")
		}
		return p.text.String()
	})
}

// nameProgram writes functions that mostly fail.
type nameProgram struct {
	*rand.Rand
	text   strings.Builder
	locals []string
}

func (p *nameProgram) pick(of ...string) string { return of[p.IntN(len(of))] }

func (p *nameProgram) block(most, depth int) {
	outer := len(p.locals)
	for range most {
		p.statement(depth)
	}
	p.locals = p.locals[:outer]
}

func (p *nameProgram) line(format string, v ...any) { fmt.Fprintf(&p.text, format+"\n", v...) }

// inside writes a statement around a block.
func (p *nameProgram) inside(begin, end string, depth int) {
	p.line("%s", begin)
	p.block(1+p.IntN(2), depth+1)
	p.line("%s", end)
}

func (p *nameProgram) statement(depth int) {
	if depth > 3 {
		p.line("local _ = %s", p.expr(2))
		return
	}
	switch p.IntN(14) {
	case 0, 1, 2:
		name := fmt.Sprintf("v%d", len(p.locals))
		p.line("local %s = %s", name, p.expr(2))
		p.locals = append(p.locals, name)
	case 3:
		p.line("%s = %s", p.place(), p.expr(2))
	case 4:
		p.line("%s, %s = %s, %s", p.place(), p.place(), p.expr(1), p.expr(1))
	case 5:
		p.line("do %s(%s) end", p.callable(), p.exprs())
	case 6:
		p.inside("if "+p.expr(2)+" then", "end", depth)
	case 7:
		p.inside("do", "end", depth)
	case 8:
		p.locals = append(p.locals, "i")
		first, last := p.pick("1", "1", "q", "p.n", "w.n"), p.pick("2", "2", "p", "w.n")
		p.inside("for i = "+first+", "+last+" do", "end", depth)
		p.locals = p.locals[:len(p.locals)-1]
	case 9:
		p.locals = append(p.locals, "k")
		p.inside(fmt.Sprintf("for k, v in %s do", p.pick("pairs(w)", "next, p", p.expr(1))), "end", depth)
		p.locals = p.locals[:len(p.locals)-1]
	case 10:
		p.inside("local function h(p, ...)", "end", depth)
		p.line("h(%s)", p.exprs())
	case 11:
		p.inside("while "+p.expr(1)+" do", "break end", depth)
	case 12:
		p.line("do return %s end", p.expr(2))
	case 13:
		p.line("local _ = {%s, x = %s, [%s] = 1}", p.exprs(), p.expr(1), p.pick("1", "p", p.expr(1)))
	}
}

func (p *nameProgram) exprs() string {
	var list []string
	for range p.IntN(3) {
		list = append(list, p.expr(1))
	}
	return strings.Join(append(list, p.pick("1", "...", "q")), ", ")
}

// place is what can be assigned to.
func (p *nameProgram) place() string {
	return p.pick(p.name(), p.name()+".x", p.name()+".x.y", p.name()+"[1]", p.name()+".x[q]", "u.x", "w.x.z", "nothing.x")
}

func (p *nameProgram) name() string {
	return p.pick(append([]string{"u", "w", "g1"}, p.locals...)...)
}

func (p *nameProgram) callable() string {
	return p.pick("nothing", "p.f", "p.g", "w.x.f", p.name(), "p:f", "p:g", "w:x", "tostring", "p.x.y", "(p or w)")
}

func (p *nameProgram) expr(depth int) string {
	if depth == 0 {
		return p.pick(p.name(), p.name(), "1", `"s"`, `"5"`, "nil", "nothing", p.name()+".x", p.name()+".n", "true", "{}")
	}
	a, b := p.expr(depth-1), p.expr(depth-1)
	switch p.IntN(16) {
	case 0:
		return p.name() + ".x"
	case 1:
		return p.name() + p.pick(".x.y", ".x.y.z", "[1]", "[1].x", "[q]", ".n.x")
	case 2, 3:
		return fmt.Sprintf("(%s) %s (%s)", a, p.pick("+", "-", "*", "/", "%", "^"), b)
	case 4:
		return fmt.Sprintf("%s %s %s", a, p.pick("+", "-", "*"), b)
	case 5:
		return fmt.Sprintf("%s .. %s", a, b)
	case 6:
		return fmt.Sprintf("%s .. %s .. %s", a, b, p.expr(0))
	case 7:
		return fmt.Sprintf("%s(%s)", p.callable(), p.exprs())
	case 8:
		return p.pick("-", "#", "not ") + "(" + a + ")"
	case 9:
		return p.pick("-", "#") + p.name()
	case 10, 11:
		return fmt.Sprintf("(%s) %s (%s)", a, p.pick("<", "<=", ">", ">=", "==", "~="), b)
	case 12:
		return fmt.Sprintf("(%s %s %s)", a, p.pick("and", "or"), b)
	case 13:
		return fmt.Sprintf("(%s %s %s).x", a, p.pick("and", "or"), b)
	case 14:
		return fmt.Sprintf("(function(...) return %s end)(%s)", a, p.name())
	}
	return "..."
}
