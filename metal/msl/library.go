package msl

import (
	"errors"
	"math"
	"slices"
	"sync"

	"github.com/mlxlua/mlxlua/metal/kir"
)

// Library is a text that has been read and checked, and makes its kernels when they are asked for. A text that
// instantiates a template thousands of times, as MLX's own do, costs what it takes to read it, and then what the few
// kernels cost that somebody launches. Its methods may be called by several goroutines at once.
type Library struct {
	pre *frozen
	src Source
	opt Options
	raw bool // kernels stay as they were written: for tests of opt.Clean

	mu      sync.Mutex
	c       *compiler // what the kernels that are not made yet need; nil: none, or the text has to be read again
	entries []kernelEntry
	files   []string
	names   []string
	made    []madeKernel
	left    int // kernels that are not made

	constants []ConstantValue
}

// kernelEntry is a kernel that a text asks for.
type kernelEntry struct {
	inst  *funcInst
	name  string
	specs *Specs
	at    Pos
}

// madeKernel is what an entry has become, with all nil while nobody has asked.
type madeKernel struct {
	k   *kir.Kernel
	err error
}

func (m *madeKernel) done() bool { return m.k != nil || m.err != nil }

// maxEager is how much work Load puts into kernels before anybody asks for them, and kernelWork what a kernel takes
// beside the steps walked.
const (
	maxEager   = 1 << 16
	kernelWork = 1 << 9
)

// everything is the eagerness that leaves no kernel for later.
const everything = math.MaxInt

// Load reads a text of the Metal Shading Language. The prelude and the math library are in scope. The error is an
// ErrorList with all errors of the text. It never panics and may be called by several goroutines at once.
//
// Templates are checked by what is made of them: Load makes the kernels of the text, one of each template first, until
// that has taken maxEager steps, which few texts need. What is wrong with a later one is the error of Kernel.
func Load(src Source, opt Options) (*Library, error) { return load(src, opt, false, maxEager) }

// Compile translates a text to kir: one kernel for each kernel function and explicit instantiation. It is Load, with
// the errors of all kernels; what keeps one kernel from becoming a pipeline is the kernel's, in Refused.
func Compile(src Source, opt Options) (*kir.Module, error) { return compileWhole(src, opt, false) }

func compileWhole(src Source, opt Options, raw bool) (*kir.Module, error) {
	l, err := load(src, opt, raw, everything)
	if err != nil {
		return nil, err
	}
	mod := &kir.Module{Files: l.Files()}
	var errs ErrorList
	for i := range l.made {
		mod.Kernels = append(mod.Kernels, l.made[i].k)
		if own, is := l.made[i].err.(ErrorList); is {
			for _, e := range own {
				errs.Add(e)
			}
		}
	}
	if len(errs) > 0 {
		sortErrors(errs)
		return nil, errs
	}
	return mod, nil
}

func load(src Source, opt Options, raw bool, eager int) (*Library, error) {
	pre, err := prelude()
	if err != nil {
		return nil, err
	}
	l := &Library{pre: pre, src: src, opt: opt, raw: raw}
	if err := l.read(eager); err != nil {
		return nil, err
	}
	l.opt.Stop = nil // which was of those who waited for this
	if l.c != nil {
		l.c.opt.Stop = nil
	}
	return l, nil
}

// read parses the text, finds its kernels, makes some of them, and checks what no kernel uses.
func (l *Library) read(eager int) (err error) {
	f, parseErrs := Parse(Unit{
		Sources: []Source{l.src}, Parent: l.pre.file, Include: l.opt.Include, Defines: l.opt.Defines,
	})
	for _, e := range parseErrs {
		switch e.Code {
		case IncludeNotFound, TooMuchText, TooDeep, TooManyErrors: // half a text has errors that are none
			return parseErrs
		}
	}
	c := newCompiler(f, l.opt)
	c.raw = l.raw
	c.syntaxErrs = len(parseErrs) > 0
	c.list = append(c.list, parseErrs...)
	defer func() {
		if r := recover(); r != nil {
			err = c.rescue(r)
		}
	}()
	root := &env{kind: envNamespace, frozen: l.pre.root}
	c.root = root
	c.overlay[l.pre.root] = root
	c.declareAll(root, f.Decls)
	c.link.find()
	for _, a := range c.asserts {
		c.staticAssert(a.d, a.e)
	}
	l.c, l.entries = c, c.findEntries()
	if l.made == nil {
		l.files, l.constants = f.Files(), c.link.values
		l.made, l.left = make([]madeKernel, len(l.entries)), len(l.entries)
		for _, en := range l.entries {
			l.names = append(l.names, en.name)
		}
	}
	if eager > 0 {
		l.makeSome(eager)
		c.checkUnused()
	}
	if len(c.list) > 0 {
		sortErrors(c.list)
		return c.list
	}
	l.settle()
	return nil
}

// settle lets go of the tree once no kernel needs it.
func (l *Library) settle() {
	if l.left == 0 {
		l.c, l.entries = nil, nil
	}
}

// makeSome makes kernels until that has taken so much work: one of each template, then the others.
func (l *Library) makeSome(eager int) {
	c := l.c
	seen := map[*funcEnt]bool{}
	for _, again := range []bool{false, true} {
		for i := range l.entries {
			en := &l.entries[i]
			f := en.inst.f
			if l.made[i].done() || !again && seen[f] || c.failed[f] >= maxFailed { // then the others have the same errors
				continue
			}
			if c.unitWork+kernelWork*(len(l.made)-l.left) > eager {
				return
			}
			seen[f] = true
			before, failed := len(c.list), c.failed[f]
			l.made[i].k = c.kernel(en.inst, en.name, en.specs)
			if own := c.list[before:]; len(own) > 0 && !slices.ContainsFunc(own, func(e *Error) bool { return !e.ofKernel() }) {
				l.made[i].err = slices.Clone(own)
				c.list, c.failed[f] = c.list[:before], failed
			}
			if l.made[i].done() {
				l.left--
			}
		}
	}
}

// findEntries lists the kernels that the text asks for: kernel functions and explicit instantiations.
func (c *compiler) findEntries() []kernelEntry {
	var list []kernelEntry
	names := map[string]bool{}
	add := func(en kernelEntry) {
		if names[en.name] {
			c.errorf(Redefinition, en.at, "there are two kernels named '%s'", en.name)
		}
		names[en.name] = true
		list = append(list, en)
	}
	for _, f := range c.order {
		if f.tmpl == nil && isKernel(&f.decl.Specs) && f.decl.Body != nil {
			if inst := c.chooserIn(f.env).instFor(f, nil); inst != nil {
				add(kernelEntry{inst, kernelName(&f.decl.Specs, f.decl.Name.Ident), &f.decl.Specs, f.decl.Pos()})
			}
		}
	}
	for _, p := range c.instantiations {
		if en, ok := c.explicitInst(p); ok {
			add(en)
		}
	}
	return list
}

// Names lists the kernels.
func (l *Library) Names() []string { return l.names }

// Constants are the function constants that were given a value, by Options.FunctionConstants.
func (l *Library) Constants() []ConstantValue { return l.constants }

// Files are the names that the places in kernels refer to: see kir.Module.
func (l *Library) Files() []string { return l.files }

// Kernel returns the kernel of an index into Names, and makes it if nobody has asked for it before. The error is an
// ErrorList, the same each time.
func (l *Library) Kernel(i int) (*kir.Kernel, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := &l.made[i]
	if !m.done() {
		m.k, m.err = l.make(i)
		l.left--
		l.settle()
	}
	return m.k, m.err
}

// make makes a kernel after the text was read.
func (l *Library) make(i int) (k *kir.Kernel, err error) {
	if l.c == nil {
		if err := l.read(0); err != nil {
			return nil, err
		}
	}
	c := l.c
	defer func() {
		if r := recover(); r != nil { // half of something may be left: the next kernel begins with the text
			l.c = nil
			k, err = nil, c.rescue(r)
		}
	}()
	c.list, c.unitWork, c.errorWork, c.hidden = nil, 0, 0, 0
	en := &l.entries[i]
	k = c.kernel(en.inst, en.name, en.specs)
	if len(c.list) > 0 {
		sortErrors(c.list)
		l.c = nil // what is wrong was said of this kernel: the next one that uses it says so itself
		return nil, c.list
	}
	return k, nil
}

// rescue makes an error of what ended a compilation.
func (c *compiler) rescue(r any) error {
	switch r := r.(type) {
	case stopped:
		return r.err
	default:
		// The tree of a text with syntax errors has holes; then those errors are what there is to say.
		if _, ok := r.(bailout); !ok && !c.syntaxErrs {
			c.errs = &c.list
			c.errorf(Internal, c.lastPos, "internal error of the compiler: %v (in %s)", r, panicFrames())
		}
		sortErrors(c.list)
		if err := c.list.Err(); err != nil {
			return err
		}
		return errors.New("[msl] BUG: compilation stopped without an error")
	}
}
