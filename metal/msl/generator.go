package msl

import (
	"github.com/mlxlua/mlxlua/metal/kir"
	"github.com/mlxlua/mlxlua/metal/kir/opt"
)

// generator turns a function into kir. Its parts check types and emit code in one walk, since everything is inlined and
// templates are walked once per instance. Where its emitter evaluates, variables hold their current values. The parts
// stand in one piece of memory, as a generator is made for each constant that is evaluated.
type generator struct {
	c      *compiler
	em     emitter
	mem    memory
	arith  arithmetic
	res    *resolver
	choose chooser
	nest   nesting
	conv   converter
	calls  caller
	lists  listInit
	ctor   constructor
	vars   variables
	exprs  expressions
	stmts  statements
	consts constants
}

// maxNesting bounds the recursion of expressions, lists and statements through one another, calls included.
const maxNesting = 4000

// nesting counts how deep what is walked is nested. A generator that is made on the way goes on counting.
type nesting struct {
	depth int // of expressions, lists and statements
	calls int // of inlined calls
}

// enter counts one more level and refuses nesting without end; what names what is nested. leave ends the level.
func (n *nesting) enter(c *compiler, what string, at Pos) {
	if n.depth++; n.depth > maxNesting {
		c.fatal(TooLarge, at, "%s are nested more than %d deep", what, maxNesting)
	}
}

func (n *nesting) leave() { n.depth-- }

// newGenerator returns a generator that emits a kernel, in the scope e.
func newGenerator(c *compiler, name string, e *env) *generator {
	g := generatorFor(c, e, emitter{
		k: &kir.Kernel{Name: name, Body: &kir.Block{}}, consts: map[constKey]*kir.Instr{},
		leaves: map[leafKey]operand{}, hints: opt.Hints{
			Unroll: map[*kir.Instr]bool{}, Volatile: map[*kir.Instr]bool{}, Checks: map[*kir.Instr]bool{},
		},
	})
	g.em.blk = g.em.k.Body
	g.mem.regionOf, g.mem.constMem = map[*object]int{}, map[*object]int{}
	g.mem.tables = map[string]int{}
	g.mem.demoted, g.mem.unsetVars = map[uint64]varHome{}, map[uint64]bool{}
	g.arith.contract = true
	return g
}

// generatorFor returns a generator with an emitter, in the scope e.
func generatorFor(c *compiler, e *env, em emitter) *generator {
	return connect(c, &resolver{c: c, env: e}, em)
}

// connect returns a generator whose parts know one another.
func connect(c *compiler, res *resolver, em emitter) *generator {
	g := &generator{c: c, em: em, res: res}
	g.em.c = c
	res.gen, res.at = g, &g.em.pos
	g.mem = memory{c: c, em: &g.em}
	g.arith = arithmetic{c: c, em: &g.em, mem: &g.mem}
	g.choose = chooser{c: c, res: res}
	g.conv = converter{
		c: c, arith: &g.arith, calls: &g.calls, choose: &g.choose, ctor: &g.ctor, em: &g.em,
		lists: &g.lists, mem: &g.mem,
	}
	g.calls = caller{
		c: c, arith: &g.arith, choose: &g.choose, consts: &g.consts, conv: &g.conv, ctor: &g.ctor,
		em: &g.em, exprs: &g.exprs, mem: &g.mem, nest: &g.nest, res: res, stmts: &g.stmts,
	}
	g.lists = listInit{
		c: c, choose: &g.choose, consts: &g.consts, conv: &g.conv, ctor: &g.ctor, em: &g.em,
		exprs: &g.exprs, mem: &g.mem, nest: &g.nest, res: res,
	}
	g.ctor = constructor{
		c: c, arith: &g.arith, calls: &g.calls, choose: &g.choose, conv: &g.conv, em: &g.em,
		exprs: &g.exprs, lists: &g.lists, mem: &g.mem, res: res,
	}
	g.vars = variables{
		c: c, choose: &g.choose, consts: &g.consts, conv: &g.conv, ctor: &g.ctor, em: &g.em,
		exprs: &g.exprs, lists: &g.lists, mem: &g.mem, res: res, stmts: &g.stmts,
	}
	g.exprs = expressions{
		c: c, arith: &g.arith, calls: &g.calls, choose: &g.choose, consts: &g.consts, conv: &g.conv,
		ctor: &g.ctor, em: &g.em, lists: &g.lists, mem: &g.mem, nest: &g.nest, res: res, stmts: &g.stmts,
		vars: &g.vars,
	}
	g.stmts = statements{
		c: c, arith: &g.arith, calls: &g.calls, choose: &g.choose, consts: &g.consts, conv: &g.conv,
		em: &g.em, exprs: &g.exprs, lists: &g.lists, mem: &g.mem, nest: &g.nest, res: res, vars: &g.vars,
	}
	g.consts = constants{
		c: c, em: &g.em, mem: &g.mem, nest: &g.nest, res: res, stmts: &g.stmts, vars: &g.vars,
	}
	return g
}
