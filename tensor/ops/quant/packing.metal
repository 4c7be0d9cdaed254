// What kernels of packed matrices ask for: GROUP elements of a row share a scale, an element has BITS bits, MODE says
// what they mean. With MODE 0, affine, an element is scale * q + bias, with scale and bias of type T. Otherwise it is
// scale * v: v is a float of 4 bits (e2m1; modes 1, mxfp4, and 3, nvfp4) or of 8 (e4m3; mode 2, mxfp8), the scale a
// power of two in a byte (e8m0), that of nvfp4 an e4m3. With BLOCKS it is a type of llama.cpp's blocks: see
// blocks.metal.

#pragma clang fp contract(off)

#if BLOCKS
#define PACKED_T uchar
#define WORDS BYTES                   // of a packed group, of type PACKED_T
#else
#define PACKED_T uint
#define WORDS (GROUP * BITS / 32)
#endif
#define MASK ((1 << BITS) - 1)        // the greatest q
#define AFFINE (MODE == 0)
#define NVFP4 (MODE == 3)

// The half with those bits. Both formats of elements have fewer bits of exponent and of mantissa than half: their bits
// moved to its places are their value divided by a power of two.
inline ACC half_of(uint bits) {
    return ACC(as_type<half>(ushort(bits)));
}

// An e4m3 divided by 256; without a sign, 127 is NaN.
inline ACC e4m3_over_256(uint b) {
    uint m = b & 127;
    return half_of((m << 7) | (((m + 1) & 128) << 7) | ((b & 128) << 8));
}

#if BLOCKS
#define SCALE_T uchar
#elif AFFINE
#define SCALE_T T
#define VALUE(q) ACC(q)
#define UNIT ACC(1)

inline ACC scale_of(T s) {
    return ACC(s);
}
#else
#define SCALE_T uchar
#if BITS == 4
#define VALUE(q) half_of((((q) & 7) << 9) | (((q) & 8) << 12))
#define UNIT ACC(16384)
#else
#define VALUE(q) e4m3_over_256(q)
#define UNIT ACC(256)
#endif

inline ACC scale_of(uchar s) {
#if NVFP4
    return e4m3_over_256(s) * ACC(256);
#else
    return ACC(as_type<float>(s == 0 ? 0x400000u : uint(s) << 23)); // 2^(s-127), and inf for 255
#endif
}
#endif

// The element of a masked q.
#if AFFINE
#define ELEMENT(scale, bias, q) ((scale) * ACC(q) + (bias))
#else
#define ELEMENT(scale, bias, q) ((scale) * (VALUE(q) * UNIT))
#endif
