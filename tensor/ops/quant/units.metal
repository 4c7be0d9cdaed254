// Units of a packed row: as many words as begin and end with an element. Lane l of a SIMD-group takes the units l, l +
// 32, ... along depth. What a column's scale and bias are multiplied by is added up for a unit first: the elements of x
// times those of the column, and the elements of x alone (bare).

#pragma clang fp contract(off)

#if !BLOCKS && !WIDE
#if 32 % BITS == 0
#define UNIT_WORDS 1
#elif BITS == 6
#define UNIT_WORDS 3
#else
#define UNIT_WORDS BITS
#endif
#define PER (UNIT_WORDS * 32 / BITS)
#if AFFINE
#define BARE(e) bare += v[e];
#define ADD_BARE(g) total = metal::fma(ACC(bias[c][g]), bare, total);
#define DOT_VALUE(q) ACC((q) & MASK)
#elif BITS == 4
// Lane l holds the value of the element l & 15.
#define BARE(e)
#define ADD_BARE(g)
#define DOT_VALUE(q) simd_shuffle(table, ushort((q) & MASK))
#else
// The NaN among elements is looked for in whole words.
#define BARE(e)
#define ADD_BARE(g) dot = ((q[0] & 0x7f7f7f7fu) + 0x01010101u) & 0x80808080u ? ACC(NAN) : dot * UNIT;
#define DOT_VALUE(q) half_of((((q) & 127) << 7) | (((q) & 128) << 8))
#endif
#if 32 % BITS == 0
#define Q(e) (q[0] >> ((e) * BITS))
#else
#define Q(e) unit_bits(q, (e) * BITS)

inline uint unit_bits(thread const uint* q, uint bit) {
    uint low = q[bit / 32] >> (bit % 32);
    return bit % 32 + BITS > 32 ? low | (q[bit / 32 + 1] << (32 - bit % 32)) : low;
}
#endif
#endif
