// What calls of Objective-C's methods get, by a C compiler's rules: TestPlaceAgainstC.
typedef unsigned long word;
typedef struct { word width, height, depth; } MTLSize;
static word got[16];
word recorded(word i) { return got[i]; }

word words(word self, word sel, word a, word b, word c) {
  got[0] = self, got[1] = sel, got[2] = a, got[3] = b, got[4] = c;
  return 0x123456789abcdef0;
}
word eight(word self, word sel, word a, word b, word c, word d, word e, word f) {
  got[0] = self, got[1] = sel, got[2] = a, got[3] = b, got[4] = c, got[5] = d, got[6] = e, got[7] = f;
  return 1;
}
word sizes(word self, word sel, MTLSize x, MTLSize y) {
  got[0] = self, got[1] = sel, got[2] = x.width, got[3] = x.height, got[4] = x.depth;
  got[5] = y.width, got[6] = y.height, got[7] = y.depth;
  return 2;
}
word between(word self, word sel, word a, MTLSize x, signed char b, MTLSize y, word *out) {
  got[0] = self, got[1] = sel, got[2] = a, got[3] = x.width, got[4] = x.height, got[5] = x.depth;
  got[6] = (word)b, got[7] = y.width, got[8] = y.height, got[9] = y.depth;
  *out = 77;
  return 3;
}
double twice(word self, word sel) { return 2.5; }
