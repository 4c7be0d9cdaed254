package msl

import "fmt"

// Code names a kind of error. Codes are stable: tools and tests may compare them. 01xx: characters, tokens and the
// preprocessor; 02xx: syntax; 03xx and up: names, types and Metal's rules (codes_check.go).
type Code uint16

// String returns the code as messages show it: MSL0201.
func (c Code) String() string { return fmt.Sprintf("MSL%04d", uint16(c)) }

// A doc comment below holds, after "Example:", a text that provokes exactly that code. The tests run every one.
// TooManyErrors follows errors with codes of their own.
// A comment without an example says why a line or two cannot show it.
const (
	// TooManyErrors ends the list of a unit that has more than MaxErrors errors.
	//
	// Example:
	//	@ @ @ @ @ @ @ @ @ @ @ @ @ @ @ @ @ @ @ @ @ @ @ @ @ @ @ @ @ @ @ @ @ @ @ @ @ @ @ @ @ @ @ @ @ @ @ @ @ @ @
	TooManyErrors Code = 1

	// BadCharacter occurs for a character that is no part of C++, and for bytes that are not UTF-8.
	//
	// Example:
	//	int a = 3; @
	BadCharacter Code = 101

	// UnterminatedComment occurs for a comment without its end.
	//
	// Example:
	//	int a; /* the rest
	UnterminatedComment Code = 102

	// UnterminatedLiteral occurs for a string or character that its line does not end.
	//
	// Example:
	//	#define NAME "text
	UnterminatedLiteral Code = 103

	// BadNumber occurs for a number with wrong digits, an unknown suffix or more than 64 bits.
	//
	// Example:
	//	int a = 0x1g;
	BadNumber Code = 104

	// BadLiteral occurs for a character literal that is empty and for unknown escapes.
	//
	// Example:
	//	char a = '\q';
	BadLiteral Code = 105

	// StrayToken occurs for # and ## that are no directive.
	//
	// Example:
	//	int a = # 3;
	StrayToken Code = 106

	// TooMuchText occurs when a limit on the size of texts, macros or includes is exceeded.
	//
	// Example:
	//	#define A x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x x
	//	#define B A A A A A A A A A A A A A A A A A A A A A A A A A A A A A A A A
	//	#define C B B B B B B B B B B B B B B B B B B B B B B B B B B B B B B B B
	//	#define D C C C C C C C C C C C C C C C C C C C C C C C C C C C C C C C C
	//	#define E D D D D D D D D D D D D D D D D D D D D D D D D D D D D D D D D
	//	int a = E;
	TooMuchText Code = 107

	// UnknownDirective occurs for a # directive that C++ does not have.
	//
	// Example:
	//	#defin N 3
	UnknownDirective Code = 110

	// BadDirective occurs for a directive whose form is wrong.
	//
	// Example:
	//	#define 3 N
	BadDirective Code = 111

	// UnbalancedIf occurs for #if without #endif, for #endif without #if, and for groups after #else.
	//
	// Example:
	//	#ifdef N
	//	int a;
	UnbalancedIf Code = 112

	// BadIfExpression occurs when the expression of #if or #elif cannot be evaluated.
	//
	// Example:
	//	#if 1 / 0
	//	#endif
	BadIfExpression Code = 113

	// ErrorDirective is what #error reports.
	//
	// Example:
	//	#error no such mode
	ErrorDirective Code = 114

	// IncludeNotFound occurs for #include of what is no Metal header and the caller does not provide.
	//
	// Example:
	//	#include "utils.h"
	IncludeNotFound Code = 115

	// BadPragma occurs for a floating-point pragma with an unknown setting. Other pragmas are ignored.
	//
	// Example:
	//	#pragma clang fp contract(maybe)
	BadPragma Code = 116

	// MacroCall occurs when a macro is called with the wrong number of arguments, or without a closing parenthesis.
	//
	// Example:
	//	#define MAX(a, b) ((a) > (b) ? (a) : (b))
	//	constant int x = MAX(1);
	MacroCall Code = 117

	// BadPaste occurs when ## joins what is no token.
	//
	// Example:
	//	#define JOIN(a, b) a ## b
	//	constant int x = JOIN(1, +) 2;
	BadPaste Code = 118

	// UnexpectedToken occurs when the grammar asks for another token.
	//
	// Example:
	//	void f() { int a = 3 }
	UnexpectedToken Code = 201

	// ExpectedExpression occurs where an expression should start and something else does.
	//
	// Example:
	//	void f() { int a = ; }
	ExpectedExpression Code = 202

	// UnknownType occurs where a declaration needs a type and the name there is not known as one.
	//
	// Example:
	//	void f() { flot a = 3; }
	UnknownType Code = 203

	// NotInMetal occurs for what C++ has and the Metal Shading Language (or mlxlua) leaves out: goto, asm, try, throw,
	// new, delete, virtual, destructors and so on.
	//
	// Example:
	//	void f() { goto end; end: return; }
	NotInMetal Code = 204

	// TooDeep occurs when parentheses, blocks, types or operators nest too deeply.
	//
	// Example:
	//	#define FOUR(x) ((((x))))
	//	#define MANY(x) FOUR(FOUR(FOUR(FOUR(x))))
	//	#define MORE(x) MANY(MANY(MANY(MANY(x))))
	//	constant int a = MORE(MORE(MORE(MORE(MORE(1)))));
	TooDeep Code = 205

	// BadSpecifiers occurs for specifiers that exclude one another, and for specifiers without a declaration.
	//
	// Example:
	//	unsigned float a;
	BadSpecifiers Code = 206

	// BadDeclarator occurs for a declaration that declares nothing that can be.
	//
	// Example:
	//	void f(int a[3)
	BadDeclarator Code = 207

	// BadAttribute occurs for an attribute whose form is wrong.
	//
	// Example:
	//	kernel void f(device float *x [[buffer(]]) {}
	BadAttribute Code = 208

	// TypeAsValue occurs where the name of a type stands for a value.
	//
	// Example:
	//	void f() { int a = 1 + float4; }
	TypeAsValue Code = 209

	// MisplacedStatement occurs for break and continue outside loops, and for case outside switch.
	//
	// Example:
	//	void f() { break; }
	MisplacedStatement Code = 210

	// BadTemplate occurs for template parameters or arguments whose form is wrong.
	//
	// Example:
	//	template <typename T, 3> void f(T x) {}
	BadTemplate Code = 211

	// BadClass occurs for a class, union or enumeration whose form is wrong.
	//
	// Example:
	//	enum E { A, 3 };
	BadClass Code = 212

	// UnknownNamespace occurs when using namespace or a namespace alias names what is no namespace.
	//
	// Example:
	//	using namespace metl;
	UnknownNamespace Code = 213

	// MisplacedPragma occurs for a floating-point pragma in the middle of an expression or a declaration.
	//
	// Example:
	//	constant float x = 1 +
	//	#pragma clang fp contract(off)
	//	2;
	MisplacedPragma Code = 214
)
