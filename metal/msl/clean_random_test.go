package msl_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/interp"
	"github.com/mlxlua/mlxlua/metal/kerneltest"
	"github.com/mlxlua/mlxlua/metal/kir"
	"github.com/mlxlua/mlxlua/metal/msl"
)

var cleanPrograms = flag.Int("clean", 300, "random programs for TestCleaningKeepsMeaning")
var cleanSeed = flag.Uint64("cleanseed", 1, "the first seed of TestCleaningKeepsMeaning")

// writer writes random programs that end, stay inside their arrays, and have no undefined values.
type writer struct {
	r      *rand.Rand
	b      strings.Builder
	indent int
	vars   []string // int variables that may be assigned
	fvars  []string // float variables
	consts []string // int expressions that may be read: loop counters
	next   int
	loops  int // loops around
	depth  int
	inFunc bool
	ret    string
}

func (w *writer) line(format string, args ...any) {
	w.b.WriteString(strings.Repeat("  ", w.indent))
	fmt.Fprintf(&w.b, format, args...)
	w.b.WriteByte('\n')
}

func (w *writer) pick(list ...string) string { return list[w.r.IntN(len(list))] }

func (w *writer) name(prefix string) string {
	w.next++
	return fmt.Sprintf("%s%d", prefix, w.next)
}

func (w *writer) int(depth int) string {
	if depth == 0 || w.r.IntN(5) == 0 {
		switch w.r.IntN(6) {
		case 0:
			return fmt.Sprint(w.r.IntN(40) - 8)
		case 1:
			return w.pick("lane", "int(in[lane])", "in[(lane + 3) & 31]", "arg")
		case 2:
			if len(w.consts) > 0 {
				return w.pick(w.consts...)
			}
		case 3:
			return fmt.Sprintf("arr[%s & 7]", w.int(0))
		}
		return w.pick(w.vars...)
	}
	a, b := w.int(depth-1), w.int(depth-1)
	k := w.pick("3", "7", "8", "1", "10", "16", "64", "641", "1000000007")
	switch w.r.IntN(22) {
	case 0, 1, 2:
		return fmt.Sprintf("(%s + %s)", a, b)
	case 3:
		return fmt.Sprintf("(%s - %s)", a, b)
	case 4:
		return fmt.Sprintf("(%s * %s)", a, b)
	case 5:
		return fmt.Sprintf("(%s / %s)", a, k)
	case 6:
		return fmt.Sprintf("(%s %% %s)", a, k)
	case 7:
		return fmt.Sprintf("int(uint(%s) / %su)", a, k)
	case 8:
		return fmt.Sprintf("int(uint(%s) %% %su)", a, k)
	case 9:
		return fmt.Sprintf("int(short(%s))", a)
	case 10:
		return fmt.Sprintf("int(long(%s) * %s)", a, b)
	case 11:
		return fmt.Sprintf("(%s ? %s : %s)", w.cond(depth-1), a, b)
	case 12:
		return fmt.Sprintf("int(uchar(%s))", a)
	case 13:
		return fmt.Sprintf("(%s %s %s)", a, w.pick("&", "|", "^"), b)
	case 14:
		return fmt.Sprintf("(%s %s %d)", a, w.pick("<<", ">>"), w.r.IntN(9))
	case 15:
		return fmt.Sprintf("%s(int(%s), int(%s))", w.pick("min", "max"), a, b)
	case 16:
		return fmt.Sprintf("int(ulong(%s) >> %d)", a, w.r.IntN(32))
	case 17:
		if !w.inFunc {
			return fmt.Sprintf("helper(%s, %s, in, lane)", a, b)
		}
	case 18:
		return fmt.Sprintf("int(%s)", w.float(depth-1))
	case 19:
		return fmt.Sprintf("select(int(%s), int(%s), %s)", a, b, w.cond(depth-1))
	case 20:
		return fmt.Sprintf("(long(%s) - long(%s) > 3l)", a, b)
	}
	return fmt.Sprintf("int(simd_sum(%s))", a)
}

func (w *writer) float(depth int) string {
	if depth <= 0 || w.r.IntN(4) == 0 {
		if w.r.IntN(3) == 0 {
			return fmt.Sprintf("farr[%s & 3]", w.int(0))
		}
		return w.pick(append([]string{"1.0f", "0.25f", "float(lane)", "float(half(lane))"}, w.fvars...)...)
	}
	a, b := w.float(depth-1), w.float(depth-1)
	switch w.r.IntN(9) {
	case 0:
		return fmt.Sprintf("(%s / %s)", a, w.pick("2.0f", "0.5f", "3.0f", "-4.0f", "1.0f"))
	case 1:
		return fmt.Sprintf("(%s - -(%s))", a, b)
	case 2:
		return fmt.Sprintf("float(half(%s))", a)
	case 3:
		return fmt.Sprintf("float(%s)", w.int(depth-1))
	case 4:
		return fmt.Sprintf("(%s > %s ? %s : %s)", a, b, b, a)
	case 5:
		return fmt.Sprintf("fma(%s, %s, 0.5f)", a, b)
	case 6:
		return fmt.Sprintf("max(%s, %s)", a, b)
	}
	return fmt.Sprintf("(%s %s %s)", a, w.pick("+", "-", "*"), b)
}

func (w *writer) cond(depth int) string {
	a, b := w.int(max(depth, 0)), w.int(max(depth, 0))
	switch w.r.IntN(6) {
	case 0:
		return fmt.Sprintf("(%s && %s)", w.cond(0), w.cond(0))
	case 1:
		return fmt.Sprintf("!(%s < %s)", w.float(0), w.float(0))
	case 2:
		return fmt.Sprintf("(%s || bool(%s))", w.cond(0), a)
	}
	return fmt.Sprintf("(%s %s %s)", a, w.pick("<", ">", "==", "!=", "<=", ">="), b)
}

// block writes statements in a scope of their own.
func (w *writer) block(n int) {
	vars, fvars, consts := w.vars, w.fvars, w.consts
	w.indent++
	w.depth++
	for range n {
		w.stmt()
	}
	w.depth--
	w.indent--
	w.vars, w.fvars, w.consts = vars, fvars, consts
}

func (w *writer) stmt() {
	if w.depth > 4 {
		w.line("%s += %s;", w.pick(w.vars...), w.int(1))
		return
	}
	switch w.r.IntN(17) {
	case 0, 1:
		v := w.name("v")
		w.line("int %s = %s;", v, w.int(2))
		w.vars = append(w.vars[:len(w.vars):len(w.vars)], v)
	case 2:
		v := w.name("f")
		w.line("float %s = %s;", v, w.float(2))
		w.fvars = append(w.fvars[:len(w.fvars):len(w.fvars)], v)
	case 3, 4:
		w.line("%s %s %s;", w.pick(w.vars...), w.pick("=", "+=", "^=", "*="), w.int(2))
	case 5:
		w.line("arr[%s & 7] %s %s;", w.int(1), w.pick("=", "+="), w.int(2))
	case 6:
		w.line("farr[%s & 3] = %s;", w.int(1), w.float(2))
	case 7:
		if len(w.fvars) > 0 {
			w.line("%s = %s;", w.pick(w.fvars...), w.float(2))
		}
	case 8, 9:
		w.line("if %s {", "("+w.cond(1)+")")
		w.block(1 + w.r.IntN(3))
		if w.r.IntN(2) == 0 {
			w.line("} else {")
			w.block(1 + w.r.IntN(3))
		}
		w.line("}")
	case 10, 11:
		w.forLoop()
	case 12:
		i := w.name("w")
		w.line("{ int %s = %d;", i, w.r.IntN(6))
		w.line("do {")
		w.loops++
		w.consts = append(w.consts[:len(w.consts):len(w.consts)], i)
		w.line("  %s++;", i)
		w.block(1 + w.r.IntN(2))
		w.loops--
		w.consts = w.consts[:len(w.consts)-1]
		w.line("} while (%s < %d); }", i, w.r.IntN(9))
	case 13:
		if w.loops > 0 {
			w.line("if %s %s;", "("+w.cond(1)+")", w.pick("break", "continue"))
		}
	case 14:
		w.line("switch (%s & 3) {", w.int(1))
		for i := range 3 {
			w.line("case %d:", i)
			w.block(1)
			if w.r.IntN(3) > 0 {
				w.line("  break;")
			}
		}
		w.line("}")
	case 15:
		if w.ret != "" {
			w.line("if (%s) return %s;", w.cond(1), w.int(1))
		}
	case 16:
		w.line("out[lane * 8 + (%s & 3)] = %s;", w.int(1), w.int(2))
	}
}

func (w *writer) forLoop() {
	i := w.name("i")
	first, step := w.r.IntN(4), 1+w.r.IntN(3)
	end := fmt.Sprint(first + w.r.IntN(10))
	if w.r.IntN(4) == 0 {
		end = "(int(in[lane & 3]) & 7)"
	}
	if w.r.IntN(4) == 0 {
		w.line("%s", w.pick("#pragma unroll", "#pragma clang loop unroll(full)", "#pragma nounroll"))
	}
	switch w.r.IntN(3) {
	case 0:
		w.line("for (int %s = %d; %s < %s; %s += %d) {", i, first, i, end, i, step)
	case 1:
		w.line("for (uint %s = %du; %s > 0; %s >>= 1) {", i, 1<<first, i, i)
	default:
		w.line("for (short %s = %d; %s != %d; %s--) {", i, first+step, i, first, i)
	}
	w.loops++
	w.consts = append(w.consts[:len(w.consts):len(w.consts)], i)
	w.block(1 + w.r.IntN(3))
	w.loops--
	w.consts = w.consts[:len(w.consts)-1]
	w.line("}")
}

// randomKernel is a kernel out[256], in[32] for 32 threads.
func randomKernel(seed uint64) string {
	w := &writer{r: rand.New(rand.NewPCG(seed, 7))}
	w.line("#include <metal_stdlib>\nusing namespace metal;")
	w.line("struct Pair { int a; float b; };")
	w.line("int helper(int arg, int x, device const int *in, int lane) {")
	w.line("  int arr[8] = {1, 2, 3}; float farr[4] = {float(x)};\n  device int *out = nullptr; (void)out;")
	w.vars, w.inFunc, w.ret = []string{"x"}, true, "x"
	w.indent++
	for range 4 {
		w.safeStmt()
	}
	w.line("return x + arr[x & 7] + int(farr[1]);")
	w.indent--
	w.line("}")
	w.vars, w.fvars, w.inFunc, w.ret = []string{"a"}, nil, false, ""
	w.line("kernel void k(device int *out, device const int *in, uint tid [[thread_index_in_simdgroup]]) {")
	w.line("  int lane = tid, arg = 5, a = in[lane]; int arr[8]; float farr[4];")
	w.line("  for (int i = 0; i < 8; i++) arr[i] = i * a;\n  for (int i = 0; i < 4; i++) farr[i] = i - 0.5f;")
	w.line("  Pair p[3]; for (int i = 0; i < 3; i++) { p[i].a = i + lane; p[i].b = farr[i]; }")
	w.indent++
	for range 8 {
		w.stmt()
	}
	w.line("p[1].a += a; Pair q = p[%s %% 3u]; a += q.a + int(q.b);", "uint(a)")
	w.line("out[lane * 8 + 4] = a; out[lane * 8 + 5] = arr[a & 7] + arr[3];")
	w.line("out[lane * 8 + 6] = as_type<int>(farr[2]);")
	w.line("out[lane * 8 + 7] = simd_max(a);")
	w.indent--
	w.line("}")
	return w.b.String()
}

// safeStmt is a statement without stores to out, which the helper has not.
func (w *writer) safeStmt() {
	mark, vars, fvars := w.b.Len(), w.vars, w.fvars
	w.stmt()
	if text := w.b.String(); strings.Contains(text[mark:], "out[") {
		w.vars, w.fvars = vars, fvars
		w.b.Reset()
		w.b.WriteString(text[:mark])
		w.line("x += %s;", w.int(1))
	}
}

// execute runs a kernel on 32 threads and returns its output, or the error's text.
func execute(t *testing.T, mod *kir.Module) string {
	require.NoError(t, mod.Verify())
	prog, err := interp.Prepare(mod.Kernels[0], mod.Files)
	require.NoError(t, err)
	out, in := make([]byte, 4*256), make([]byte, 4*32)
	for i := range 32 {
		in[4*i] = byte(i*37 + 11)
		in[4*i+3] = byte(i & 1 * 0xff)
	}
	err = kerneltest.Run(prog.NewRun,
		interp.Launch{Grid: [3]int{32, 1, 1}, Threadgroup: [3]int{32, 1, 1}, Buffers: [][]byte{out, in}}, 0)
	require.NoError(t, err)
	return fmt.Sprintf("%x", out)
}

// Cleaning, unrolling and the promotion of arrays do not change what a kernel computes.
func TestCleaningKeepsMeaning(t *testing.T) {
	for i := range *cleanPrograms {
		seed := *cleanSeed + uint64(i)
		text := randomKernel(seed)
		src := msl.Source{Name: "random", Text: text}
		raw, err := msl.CompileRaw(src, msl.Options{})
		require.NoError(t, err, "seed %d:\n%s", seed, text)
		clean, err := msl.Compile(src, msl.Options{})
		require.NoError(t, err, "seed %d", seed)
		if want, got := execute(t, raw), execute(t, clean); want != got {
			t.Fatalf("seed %d: cleaning changes the result\n%s\n%s\n%s", seed, want, got, text)
		}
	}
}
