// What kernels of packed matrices ask for: GROUP elements of a row share a scale and a bias, an element has BITS bits.

#pragma clang fp contract(off)

#define WORDS (GROUP * BITS / 32)     // of a packed group
#define MASK ((1 << BITS) - 1)        // the greatest q
