package msl

// Compilation is bounded: a small text can ask for endless walks, instances and instructions, as templates, macros
// and inlined calls multiply. What is counted is work, never time, so that a text is refused everywhere alike. The
// limits leave room above the largest texts measured: MLX's 2,052 quantized kernels walk 7.8 million steps in one unit,
// its fp_quantized_nax makes 13,436 instances. A million steps take about a second, so Options.Stop is asked as well.
const (
	// maxWalk bounds the statements, expressions and candidates of calls walked for one kernel, and maxUnitWalk those
	// of all kernels of a unit.
	maxWalk     = 1 << 20
	maxUnitWalk = 1 << 23
	// stopEvery is after how many steps Options.Stop is asked again.
	stopEvery = 1 << 12
	// maxInstrs bounds a kernel's size: everything is inlined.
	maxInstrs = 1 << 18
	// maxInstances bounds the instances of templates in a unit.
	maxInstances = 1 << 15
	// maxAfterError bounds the search for more errors after the first.
	maxAfterError = 1 << 18
	// maxFailed is how many instances of a kernel may fail before the others are taken to have the same errors.
	maxFailed = 3
	// maxPack bounds the elements of a parameter pack that is expanded.
	maxPack = 1024
	// maxInline bounds the depth of calls that are inlined into one another.
	maxInline = 200
	// maxInstDepth bounds the nesting of instantiations.
	maxInstDepth = 400
	// maxSteps bounds a constant evaluation.
	maxSteps = 1 << 20
	// maxTypeText bounds the length of a class's name in messages.
	maxTypeText = 300
)

// stopped ends a compilation that Options.Stop has ended.
type stopped struct{ err error }

// spend counts the work on a kernel.
func (c *compiler) spend(at Pos, n int) {
	if c.opt.Stop != nil && (c.unitWork+n)/stopEvery != c.unitWork/stopEvery {
		if err := c.opt.Stop(); err != nil {
			panic(stopped{err})
		}
	}
	c.work += n
	c.unitWork += n
	if len(c.list) > 0 {
		if c.errorWork += n; c.errorWork > maxAfterError {
			panic(bailout{})
		}
	}
	if c.work > maxWalk {
		c.fatal(TooLarge, at, "compiling this kernel takes more than %d steps", maxWalk)
	}
	if c.unitWork > maxUnitWalk {
		c.fatal(TooLarge, at, "compiling the kernels of this text takes more than %d steps", maxUnitWalk)
	}
}

// instances holds the instances of a template, to be found by their arguments.
type instances[T any] struct {
	list  []T
	byKey map[instKey][]T // once the list is long
}

// instKey tells most lists of arguments apart.
type instKey struct {
	n          int
	a, b, c, z argKey
}

type argKey struct {
	t    *ctype
	tmpl *entity
	bits uint64
	n    int
}

func keyOf(args []boundArg) instKey {
	k := instKey{n: len(args)}
	for i, at := range []*argKey{&k.a, &k.b, &k.c} {
		if i < len(args) {
			*at = args[i].key()
		}
	}
	if len(args) > 3 {
		k.z = args[len(args)-1].key()
	}
	return k
}

func (a *boundArg) key() argKey {
	if n := len(a.pack); n > 0 {
		k := a.pack[n-1].key()
		k.n = n
		return k
	}
	return argKey{t: a.q.T, tmpl: a.tmpl, bits: a.val.bits}
}

// longList is how many instances are searched one by one.
const longList = 12

// find returns the instance with the arguments; argsOf gives those of an instance.
func (x *instances[T]) find(args []boundArg, argsOf func(T) []boundArg) (inst T, ok bool) {
	list := x.list
	if x.byKey != nil {
		list = x.byKey[keyOf(args)]
	}
	for _, in := range list {
		if sameArgs(argsOf(in), args) {
			return in, true
		}
	}
	return inst, false
}

// add enters an instance that find has not found.
func (x *instances[T]) add(in T, argsOf func(T) []boundArg) {
	x.list = append(x.list, in)
	if x.byKey == nil && len(x.list) > longList {
		x.byKey = map[instKey][]T{}
		for _, old := range x.list[:len(x.list)-1] {
			k := keyOf(argsOf(old))
			x.byKey[k] = append(x.byKey[k], old)
		}
	}
	if x.byKey != nil {
		k := keyOf(argsOf(in))
		x.byKey[k] = append(x.byKey[k], in)
	}
}

func classArgs(s *classInfo) []boundArg { return s.args }
func funcArgs(f *funcInst) []boundArg   { return f.args }

// countInstance counts an instance of a template.
func (c *compiler) countInstance(at Pos) {
	c.instCount++
	if c.instCount > maxInstances {
		c.fatal(TooLarge, at, "the templates of this text have more than %d instances", maxInstances)
	}
}
