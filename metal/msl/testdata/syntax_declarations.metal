// Errors in declarations, one declaration each.
using namespace metl; /* ERROR "MSL0213: 'metl' is no namespace" */
int 3; /* ERROR "MSL0207: expected a name to declare, found '3'" */
foo x; /* ERROR "MSL0203: unknown type name 'foo'" */
a::b::c y; /* ERROR "MSL0203: unknown type name 'a::b::c'" */
float f(int a, bar b); /* ERROR "MSL0203: unknown type name 'bar'" */
float g(int a,); /* ERROR "MSL0201: expected a parameter after ','" */
struct { int a; }; /* ERROR "MSL0212: a struct without a name" */
struct S {
    int a /* ERROR "MSL0201: expected ';' after a declaration" */
    ~S(); /* ERROR "MSL0204: destructors" */
    virtual void v(); /* ERROR "MSL0204: 'virtual'" */
    int b;
    void m() { int x = ; } /* ERROR "MSL0202" */
    void n() { return }; /* ERROR "MSL0202" */
};
enum E { A, B = , C }; /* ERROR "MSL0202" */
template <typename T, 3> void t(T x) {} /* ERROR "MSL0211: expected a template parameter, found '3'" */
template <typename T> struct V { T x; } /* ERROR "MSL0201: expected ';'|MSL0206|MSL0207" */
kernel void k(device float *p [[buffer(0]]) {} /* ERROR "MSL0208" */
extern "D" void c(); /* ERROR "MSL0206: there is extern .C. and extern" */
constant float table[2] = {1, 2; /* ERROR "MSL0201: expected '}' at the end of a list" */
asm("nop"); /* ERROR "MSL0204: inline assembly" */
operator+ x; /* ERROR "MSL02" */
#pragma clang fp contract(sometimes) /* ERROR "MSL0116" */
#if 1 + /* ERROR "MSL0113" */
#endif
} /* ERROR "MSL0201: '}' without '{'" */
int last = 1;
