// Conversions that C++14 asks to be written, and casts that it refuses: each line says what is wrong there.
#include <metal_stdlib>
using namespace metal;
struct Implicit { int v; operator int() const { return v; } };
struct Explicit { int v; explicit operator int() const { return v; } };
struct Truth { int v; explicit operator bool() const { return v; } };
struct Made { int v; explicit Made(int n) : v(n) {} };
enum class K : char { X, Y };
int take(int n) { return n; }
int give() { Explicit e = {1}; return e; } /* ERROR "MSL0308: the value returned: Explicit does not convert to int" */
kernel void k(device int *y [[buffer(0)]]) {
  Implicit i = {1}; Explicit e = {2}; Truth t = {3}; const int c = 4; K kk = K::X; y[9] = give();
  y[0] = e; /* ERROR "MSL0308: an assignment: Explicit does not convert to int" */
  y[0] = take(e); /* ERROR "MSL030[68]: .*take" */
  y[0] = y[1] && e; /* ERROR "MSL0308: a condition: Explicit does not convert to bool" */
  y[0] = !e; /* ERROR "MSL0308: a condition: Explicit does not convert to bool" */
  y[0] = y[1] ? e : y[2]; /* ERROR "MSL0308: .: has the unlike types" */
  bool copied = t; /* ERROR "MSL0308: .*Truth does not convert to bool" */
  y[0] = t + 1; /* ERROR "MSL0309: . is not defined on Truth and int" */
  float f = (float)e; /* ERROR "MSL0326: a cast from Explicit to float" */
  y[0] = static_cast<thread const Made &>(y[1]).v; /* ERROR "MSL0308: .*int does not convert to Made" */
  thread int &w = static_cast<thread int &>(c); /* ERROR "MSL0326: static_cast from const int to int& would drop const" */
  switch (kk) { case 1: y[0] = 1; } /* ERROR "MSL0308: a case label of type int in a switch over K" */
  // All of this is C++.
  y[1] = i + take(i) + (int)e + static_cast<int>(e) + int(e) + (t && i) + !t + (t ? 1 : 2);
  if (t) y[2] = 1; bool direct(t); int number(e); while (t) break; y[3] = direct + number + Made(3).v;
  switch (kk) { case K::X: y[4] = 1; break; case K::Y: y[4] = 2; } const thread int &r = static_cast<const thread int &>(c);
  y[5] = r;
}
