package msl_test

import "testing"

// A condition that starts with a type may be an expression all the same.
func TestConditionsThatStartWithTypes(t *testing.T) {
	t.Parallel()
	runRows(t, "", `
  int a = 3, n = 0, s = 0, d = 0, init = 0, pos = 0;
  switch (int(a)) { case 3: s = 7; break; default: s = 1; }
  if (bool(a)) n += 1;
  if (uint(a) == 3u) n += 10;
  while (int(d) < 4) d++;
  if (int v = a) n += v * 100;
  if (n++; bool(a)) init = 5;
  switch (int w = a + 1) { case 4: pos = w; }`, []row{
		{"s", 7}, {"n", 312}, {"d", 4}, {"init", 5}, {"pos", 4},
	})
}

// A braced list of one element asks for the element's type without evaluating it: the element may read variables.
func TestBracedListOfAVariable(t *testing.T) {
	t.Parallel()
	runRows(t, `
struct P { float a; };
struct Q : P {};
inline P operator+(P x, P y) { return P{x.a + y.a}; }
inline P twice(P x) { P y = {x.a * 2}; return P{y}; }`, `
  float f = 2.5f; P p = P{f} + P{2}; P arr[2] = {P{f}, {f + 1}}; Q q; q.a = 9; P sliced{q};`, []row{
		{"p.a", 4.5}, {"twice(p).a", 9}, {"(P{1} + P{f}).a", 3.5}, {"arr[0].a + arr[1].a", 6}, {"sliced.a", 9},
	})
}
