// The words in which blocks.go describes blocks. b is the block that is read: BYTES bytes, GROUP elements, of which RUN
// neighbours have a factor in common. The element is i + l, with i a multiple of 32 and l from 0 to 31, its run j + r,
// with r from 0 to 32 / RUN - 1. What a kernel knows of i before it runs is a constant, and l its lane.

#pragma clang fp contract(off)

#if BLOCKS
#define RUNS (GROUP / RUN)            // of a block
#define AHEAD (32 / RUNS)             // blocks that have 32 of them

// Number k + l of those of so many bits from b on; k is a multiple of span, and l less. They lie in runs of bytes: the
// lowest bits of the bytes of a run are its first numbers, in order, the bits above them the next ones.
inline int number(const device uchar* b, uint bits, uint run, uint span, uint k, uint l) {
    uint per = run * 8 / bits;
    uint at = k / per * run + k % run + (run >= span ? l : l / per * run + l % run);
    uint shift = k % per / run * bits + (run >= span ? 0 : l % per / run * bits);
    return int((uint(b[at]) >> shift) & ((1u << bits) - 1));
}

#define CODES(begin, bits, run) number(b + (begin), bits, run, 32, i, l)
#define NUMBERS(begin, bits, run, first) number(b + (begin), bits, run, 32 / RUN, (first), r)

// The half at a byte, which need not be aligned.
#define HALF(at) half_of(uint(b[at]) | (uint(b[(at) + 1]) << 8))

inline ACC factor_of(const device uchar* b, uint j, uint r) {
    return FACTOR;
}

inline ACC code_of(const device uchar* b, uint i, uint l) {
    return ACC((CODE) - ZERO);
}

#ifdef LEAST
inline ACC least_of(const device uchar* b, uint j, uint r) {
    return LEAST;
}
#else
inline ACC least_of(const device uchar*, uint, uint) {
    return ACC(0);
}
#endif

// The product is exact, so that fma rounds as a product and a difference do.
inline ACC block_value(ACC factor, ACC code, ACC least) {
#ifdef LEAST
    return metal::fma(factor, code, -least);
#else
    return factor * code;
#endif
}

inline ACC block_element(const device uchar* b, uint i, uint l) {
    uint j = i / RUN;
    uint r = RUN < 32 ? l / RUN : 0;
    return block_value(factor_of(b, j, r), code_of(b, i, l), least_of(b, j, r));
}
#endif
