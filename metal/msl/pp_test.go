package msl

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// ppTokens preprocesses a text and returns its tokens' spellings, and the errors.
func ppTokens(u Unit) (string, ErrorList) {
	f := &File{}
	var errs ErrorList
	f.syms = newSymtab(nil)
	newPreproc(f, &u, &errs).run(&u)
	var b strings.Builder
	for _, t := range f.toks[:len(f.toks)-1] {
		fmt.Fprintf(&b, "%s ", t.text)
	}
	return b.String(), errs
}

func ppText(text string) Unit { return Unit{Sources: []Source{{Name: "source", Text: text}}} }

// The examples of the C standard, ISO/IEC 9899:2011 6.10.3.3 and 6.10.3.5, with the results it gives.
func TestStandardMacroExamples(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, in, want string }{
		{"3: rescanning", `
#define x 3
#define f(a) f(x * (a))
#undef x
#define x 2
#define g f
#define z z[0]
#define h g(~
#define m(a) a(w)
#define w 0,1
#define t(a) a
#define p() int
#define q(x) x
#define r(x,y) x ## y
#define str(x) # x
f(y+1) + f(f(z)) % t(t(g)(0) + t)(1);
g(x+(3,4)-w) | h 5) & m
(f)^m(m);
p() i[q()] = { q(1), r(2,3), r(4,), r(,5), r(,) };
char c[2][6] = { str(hello), str() };`, `
f(2 * (y+1)) + f(2 * (f(2 * (z[0])))) % f(2 * (0)) + t(1);
f(2 * (2+(3,4)-0,1)) | f(2 * (~ 5)) & f(2 * (0,1))^m(0,1);
int i[] = { 1, 23, 4, 5, };
char c[2][6] = { "hello", "" };`},
		{"4: strings and pasting", `
#define str(s) # s
#define xstr(s) str(s)
#define debug(s, t) printf("x" # s "= %d, x" # t "= %s", \
               x ## s, x ## t)
#define INCFILE(n) vers ## n
#define glue(a, b) a ## b
#define xglue(a, b) glue(a, b)
#define HIGHLOW "hello"
#define LOW LOW ", world"
debug(1, 2);
fputs(str(strncmp("abc\0d", "abc", '\4') // this goes away
== 0) str(: @\n), s);
xstr(INCFILE(2).h)
glue(HIGH, LOW);
xglue(HIGH, LOW)`, `
printf("x" "1" "= %d, x" "2" "= %s", x1, x2);
fputs("strncmp(\"abc\\0d\", \"abc\", '\\4') == 0" ": @\n", s);
"vers2.h"
"hello";
"hello" ", world"`},
		{"5: placemarkers", `
#define t(x,y,z) x ## y ## z
int j[] = { t(1,2,3), t(,4,5), t(6,,7), t(8,9,),
            t(10,,), t(,11,), t(,,12), t(,,) };`,
			`int j[] = { 123, 45, 67, 89, 10, 11, 12, };`},
		{"7: variable arguments", `
#define debug(...) fprintf(stderr, __VA_ARGS__)
#define showlist(...) puts(#__VA_ARGS__)
#define report(test, ...) ((test)?puts(#test):\
            printf(__VA_ARGS__))
debug("Flag");
debug("X = %d\n", x);
showlist(The first, second, and third items.);
report(x>y, "x is %d but y is %d", x, y);`, `
fprintf(stderr, "Flag" );
fprintf(stderr, "X = %d\n", x );
puts( "The first, second, and third items." );
((x>y)?puts("x>y"): printf("x is %d but y is %d", x, y));`},
		{"6.10.3.3: ## made by ##", `
#define hash_hash # ## #
#define mkstr(a) # a
#define in_between(a) mkstr(a)
#define join(c, d) in_between(c hash_hash d)
char p[] = join(x, y);`, `char p[] = "x ## y";`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, errs := ppTokens(ppText(c.in))
			require.NoError(t, errs.Err())
			want, errs := ppTokens(ppText(c.want))
			require.NoError(t, errs.Err())
			require.Equal(t, want, got)
		})
	}
}

func TestPreprocess(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, want string }{
		{"#if 1\na\n#else\nb\n#endif", "a"},
		{"#if 0\na\n#elif 2 > 1 && !0\nb\n#elif 1\nc\n#else\nd\n#endif", "b"},
		{"#ifdef X\na\n#endif\n#ifndef X\nb\n#endif", "b"},
		{"#define X\n#if defined(X) && !defined Y\na\n#endif", "a"},
		{"#if 0\n#if 1\na\n#else\nb\n#endif\n#else\nc\n#endif", "c"},
		{"#if 0\n it's @ \"not\n /* closed #endif */ x\n/**/#endif\nx", "x"},
		// 6.10.1: unsigned if an operand is; -1 is then the largest value.
		{"#if -1 > 0u\na\n#endif", "a"},
		{"#if (2 || 1/0) && (0 ? 1/0 : 1)\na\n#endif", "a"},
		{"#if 'a' == 97 && '\\n' == 10\na\n#endif", "a"},
		{"#if 0x10 + 010 + 0b11 == 27\na\n#endif", "a"},
		{"#if -7 / 2 == -3 && -7 % 2 == -1 && 1 << 3 == 8 && ~0 == -1\na\n#endif", "a"},
		{"#if unknown\na\n#else\nb\n#endif", "b"},
		{"#define EMPTY\n#if __METAL_VERSION__ >= 300 && defined(__METAL__)\na\n#endif", "a"},
		{"#if __has_include(<metal_stdlib>) && !__has_include(\"x.h\")\na\n#endif", "a"},
		{"#include <metal_stdlib>\n#include <metal_simdgroup>\nx", "x"},
		{"#define X 1\n#undef X\n#undef Y\nX", "X"},
		{"a\\\nb c\\\r\nd", "ab cd"},
		{"#define F(x) \\\n  x + \\\n  x\nF(1)", "1 + 1"},
		{"#define F(x) x\nF\n(\n1)", "1"},
		{"#define F(x) x\nF", "F"},
		{"#define F() 1\nF() F( )", "1 1"},
		{"#define E(f, ...) f(__VA_ARGS__)\nE(a) E(a, b, c)", "a() a(b, c)"},
		{"#define L(fmt, ...) log(fmt, ## __VA_ARGS__)\nL(a); L(a, b)", "log(a); log(a, b)"},
		{"#define A B\n#define B A\nA B", "A B"},
		{"#define f(x) x f\nf(1)(2)(3)", "1 f(2)(3)"}, // as the standard's example 4.2 in 6.10.3.4 permits
		{"#line 7\n__LINE__\n__LINE__", "7 8"},
		{"#line 3 \"a.metal\"\n__FILE__ __LINE__", "\"a.metal\" 3"},
		{"#define LN __LINE__\n\nLN", "3"},
		{"#pragma unroll\n#pragma clang loop unroll(full)\n#pragma METAL internals : enable\n#pragma once\nx", "x"},
		{"#pragma clang fp contract(off) reassociate(on)\nx", "contract=off reassociate=on x"},
		{"_Pragma(\"clang fp contract(fast)\") x", "contract=fast x"},
		{"#define P(x) _Pragma(#x)\nP(STDC FP_CONTRACT OFF) P(unroll) x", "contract=off x"},
		{"#pragma METAL fp math_mode(relaxed)\nx", "math_mode=relaxed x"},
		{"a //* b\n c /* d \n // */ e", "a c e"},
		{"%:define X <: :> <% %> <::a> <:::b <::>\n#define S(a) %:a\nX", "<: :> <% %> < :: a > <: :: b <: :> "},
		{"#", ""},
		{"# define X 2\n  #  if X == 2\nX\n # endif", "2"},
		{"#warning anything that's odd\nx", "x"},
		{"1.5e+3-2 0x1p-3+1 1'000 .5f a...b", "1.5e+3 - 2 0x1p-3 + 1 1'000 .5f a ... b"},
	} {
		got, errs := ppTokens(ppText(c.in))
		if !strings.HasPrefix(c.in, "#warning") {
			require.NoError(t, errs.Err(), c.in)
		}
		if !strings.Contains(c.want, "=") || strings.Contains(c.want, "\"") {
			want, errs := ppTokens(ppText(c.want))
			require.NoError(t, errs.Err(), c.want)
			require.Equal(t, want, got, c.in)
		} else {
			require.Equal(t, c.want, strings.TrimSpace(got), c.in)
		}
	}
}

func TestIncludeAndDefines(t *testing.T) {
	t.Parallel()
	u := ppText("#include \"a.h\"\n#include <dir/b.h>\n#include \"a.h\"\nA N MAX(1,2)")
	u.Defines = []Define{{"N", "16"}, {"MAX(a,b)", "a b"}}
	u.Include = func(name string) (string, bool) {
		texts := map[string]string{"a.h": "#define A 1\n#include \"c.h\"\nina", "c.h": "inc", "dir/b.h": "inb"}
		s, ok := texts[name]
		return s, ok
	}
	got, errs := ppTokens(u)
	require.NoError(t, errs.Err())
	require.Equal(t, "inc ina inb 1 16 1 2 ", got)

	u = ppText("#include \"self.h\"")
	n := 0
	u.Include = func(string) (string, bool) {
		n++
		return fmt.Sprintf("#include \"self%d.h\"", n), true
	}
	_, errs = ppTokens(u)
	require.Len(t, errs, 1)
	require.Equal(t, TooMuchText, errs[0].Code)
}

// Macros that multiply must end in an error soon, not in exhausted memory.
func TestMacroBombs(t *testing.T) {
	t.Parallel()
	double := func(body string) string {
		var b strings.Builder
		b.WriteString("#define M0 x\n#define F0(a) a\n")
		for i := 1; i < 64; i++ {
			fmt.Fprintf(&b, body, i, i-1)
		}
		return b.String()
	}
	for name, text := range map[string]string{
		"objects":   double("#define M%[1]d M%[2]d M%[2]d\n") + "M63",
		"functions": double("#define F%[1]d(a) F%[2]d(a a)\n") + "F63(x)",
		"pasting":   double("#define F%[1]d(a) F%[2]d(a##a)\n") + "F63(x)",
		"strings":   double("#define F%[1]d(a) F%[2]d(#a #a)\n") + "F63(x)",
		"arguments": "#define F(a) a a\n" + strings.Repeat("F(", 300) + "x" + strings.Repeat(")", 300),
		"empty":     double("#define M%[1]d M%[2]d M%[2]d\n") + "#undef M0\n#define M0\nM63",
		"condition": double("#define M%[1]d (M%[2]d + M%[2]d)\n") + "#if M63\n#endif",
		"ifs":       strings.Repeat("#if 1\n", 2000),
		"parens":    "#if " + strings.Repeat("(", 100000) + "\n#endif",
	} {
		_, errs := ppTokens(ppText(text))
		require.NotEmpty(t, errs, name)
		require.Contains(t, []Code{TooMuchText, BadIfExpression}, errs[0].Code, name)
	}
}

func TestDirectiveErrors(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Code{
		"#define":                            BadDirective,
		"#define defined 1":                  BadDirective,
		"#define F(a, a) a":                  BadDirective,
		"#define F(a b) a":                   BadDirective,
		"#define F(a, 1) a":                  BadDirective,
		"#define F(a":                        BadDirective,
		"#define F(a) ## a":                  BadDirective,
		"#define F(a) # b":                   BadDirective,
		"#define A __VA_ARGS__":              BadDirective,
		"#define A(x, ...) x __VA_OPT__ y":   BadDirective,
		"#undef 3":                           BadDirective,
		"#ifdef\n#endif":                     BadDirective,
		"#line":                              BadDirective,
		"#line x":                            BadDirective,
		"#line 4294967296":                   BadDirective,
		"#line 3 four":                       BadDirective,
		"#include":                           BadDirective,
		"#include <metal":                    BadDirective,
		"#include <thread>":                  IncludeNotFound,
		"#if 1\n#endif x":                    BadDirective,
		"#endif":                             UnbalancedIf,
		"#else":                              UnbalancedIf,
		"#if 0\n#else\n#elif 1\n#endif":      UnbalancedIf,
		"#if 1\n#else\n#else\n#endif":        UnbalancedIf,
		"#if\n#endif":                        BadIfExpression,
		"#if (1\n#endif":                     BadIfExpression,
		"#if 1 2\n#endif":                    BadIfExpression,
		"#if 1 ? 2\n#endif":                  BadIfExpression,
		"#if 1.5\n#endif":                    BadIfExpression,
		"#if 1 % 0\n#endif":                  BadIfExpression,
		"#if \"a\"\n#endif":                  BadIfExpression,
		"#if ''\n#endif":                     BadIfExpression,
		"#if defined 3\n#endif":              BadIfExpression,
		"#if __has_include\n#endif":          BadIfExpression,
		"#define F(a) a\nF(1":                MacroCall,
		"#define F(a) a\nF(1, 2)":            MacroCall,
		"#pragma clang fp":                   BadPragma,
		"#pragma clang fp contract":          BadPragma,
		"#pragma STDC FP_CONTRACT X":         BadPragma,
		"_Pragma(\"METAL fp math_mode(x)\")": BadPragma,
		"'abc":                               UnterminatedLiteral,
		"#nope":                              UnknownDirective,
		"a # b":                              StrayToken,
		"\x01":                               BadCharacter,
		"a \xff":                             BadCharacter,
	} {
		_, errs := ppTokens(ppText(text))
		require.Len(t, errs, 1, text)
		require.Equal(t, want, errs[0].Code, text)
	}
}

func TestConditions(t *testing.T) {
	t.Parallel()
	for _, text := range []string{ // all true, by 6.6 and 6.10.1 of the C standard
		"(5 | 2) == 7 && (5 & 4) == 4 && (5 ^ 1) == 4", "1 < 2 && 2 <= 2 && 3 > 2 && 3 >= 3 && 1 != 2",
		"-1 >> 1 == -1", "(0u - 1) / 2 == 0x7fffffffffffffff", "(0u - 1) % 10 == 5", "+3 - -3 == 2 * 3",
		"-9223372036854775807 - 1 < 0", "(-9223372036854775807 - 1) / -1 < 0", "(-9223372036854775807 - 1) % -1 == 0",
		"(1 ? -1 : 0u) > 0", "0xffffffffffffffff == -1", "true && !false",
		"'\\x41' == 65 && '\\101' == 65", "(0u - 1) >> 63 == 1",
		"!0 == 1", "2 + 3 * 4 << 1 == 28",
	} {
		text = strings.ReplaceAll(text, "\\\\", "\\")
		got, errs := ppTokens(ppText("#if " + text + "\nyes\n#endif"))
		require.NoError(t, errs.Err(), text)
		require.Equal(t, "yes ", got, text)
	}
}

func TestLiterals(t *testing.T) {
	t.Parallel()
	f, errs := Parse(ppText(`constant char *s = "\a\b\f\n\r\t\v\\\'\"\?\0\12\x7f\u00e9\U0001F600";`))
	require.NoError(t, errs.Err())
	want := "\a\b\f\n\r\t\v\\'\"?\x00\n\x7f\u00e9\U0001F600"
	require.Equal(t, want, f.Decls[0].(*VarDecl).Init.(*StringLit).Value)
	for _, text := range []string{`'\x'`, `'\xfff'`, `'\u12'`, `'\uD800'`, `'\U1234'`, `''`, `'abcde'`, `"\z"`} {
		_, errs := Parse(ppText("constant auto x = " + text + ";"))
		require.Len(t, errs, 1, text)
		require.Equal(t, BadLiteral, errs[0].Code, text)
	}
}

func TestNumbers(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"0": "0", "42": "42", "1'000'000": "1000000", "0x1F": "31", "0XfFu": "255u", "0b1011": "11", "017": "15",
		"7u": "7u", "7UL": "7ul", "7ull": "7ul", "7l": "7l", "18446744073709551615u": "18446744073709551615u",
		"1.5": "1.5f", "1.5f": "1.5f", "2.h": "2h", ".5H": "0.5h", "1e3": "1000f", "1.E-2F": "0.01f", "0x1.8p1": "3f",
		"0x1p-3f": "0.125f", "3.0bf": "3bf", "1e400": "+Inff", "007": "7", "123456789012": "123456789012",
	} {
		f, errs := Parse(ppText("constant auto x = " + text + ";"))
		require.NoError(t, errs.Err(), text)
		require.Equal(t, want, sexpr(f.Decls[0].(*VarDecl).Init), text)
	}
	for _, text := range []string{"0x", "09", "1u2", "0b12", "1.5q", "0x1.8", "18446744073709551616",
		"1e", "0xg", "1_0", "1..2"} {
		_, errs := Parse(ppText("constant auto x = " + text + ";"))
		require.Len(t, errs, 1, text)
		require.Equal(t, BadNumber, errs[0].Code, text)
	}
}
