package msl

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// FuzzParse looks for panics, hangs and places outside the text.
func FuzzParse(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.metal")
	for _, name := range files {
		if b, err := os.ReadFile(name); err == nil {
			f.Add(string(b))
		}
	}
	for _, c := range declForms {
		f.Add(c[0])
	}
	for _, c := range stmtForms {
		f.Add("void f() {" + c[0] + "}")
	}
	for _, s := range []string{
		"#define F(x) #x x##x\nF(F)(", "#if defined(", "#define A(", "struct A : A<", "template <", "x<<y>>z>>=w",
		"_Pragma(\"clang fp contract(", "#line 4294967295 \"\\", "a::b::~c", "[[a::b(", "operator", "0x.p", "\xff\\\n",
		"enum A : B { C = D<E> }", "void f() { case 1: [a=b](auto... c) -> d { e: ", "decltype(auto)::x<",
	} {
		f.Add(s)
	}
	parent, _ := Parse(ppText("#define K(x) x\n" +
		"namespace metal { template <typename T> struct S { T x; }; } using namespace metal;"))
	f.Fuzz(func(t *testing.T, text string) {
		start := time.Now()
		for _, p := range []*File{nil, parent} {
			u := ppText(text)
			u.Parent = p
			file, errs := Parse(u)
			for _, e := range errs {
				if e.Error() == "" || e.Code == 0 {
					t.Fatalf("an error without code or text: %+v", e)
				}
			}
			if len(errs) == 0 {
				sdecls(file.Decls)
			}
		}
		if d := time.Since(start); d > 5*time.Second {
			t.Fatalf("%v for %d bytes", d, len(text))
		}
	})
}
