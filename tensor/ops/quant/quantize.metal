// Packing and unpacking. The q of a group are packed one after the other, lowest bits first, into WORDS words of 32
// bits; where BITS does not divide 32 some reach into the next word. T is the type of elements and of affine scales and
// biases, ACC the one to compute in. With GLOBAL each of PER groups has a factor beside its scale, in units of the
// greatest product of an element and a scale.

#pragma clang fp contract(off)

#define GREATEST_PRODUCT 2688.0f // 6 * 448

#if !BLOCKS
#if AFFINE
#define BLOCK 32 // elements of which the words are whole, and whose places are constants

kernel void quantize(const device T* w [[buffer(0)]],
                     device uint* packed [[buffer(1)]],
                     device T* scales [[buffer(2)]],
                     device T* biases [[buffer(3)]],
                     uint g [[thread_position_in_grid]]) {
    const device T* x = w + ulong(g) * GROUP;
    ACC low = ACC(x[0]);
    ACC high = low;
    for (int first = 0; first < GROUP; first += BLOCK) {
        for (int i = 0; i < BLOCK; i++) {
            ACC v = ACC(x[first + i]);
            low = v < low ? v : low;
            high = v > high ? v : high;
        }
    }
    ACC least = ACC(1e-7f);
    ACC scale = (high - low) / ACC(MASK);
    scale = scale > least ? scale : least;
#if BITS == 1
    ACC bias = low; // of two values both ends of the range are represented exactly
#else
    // The end of the range that is further from 0 is represented exactly, and so is 0.
    bool negative = metal::abs(low) > metal::abs(high);
    ACC edge = negative ? low : high;
    scale = negative ? scale : -scale;
    ACC steps = metal::rint(edge / scale);
    bool zero = steps == ACC(0);
    scale = zero ? scale : edge / steps;
    ACC bias = zero ? ACC(0) : edge;
#endif
    scales[g] = T(scale);
    biases[g] = T(bias);
    device uint* to = packed + ulong(g) * WORDS;
    for (int first = 0; first < GROUP; first += BLOCK) {
        uint words[BLOCK * BITS / 32];
        for (int k = 0; k < BLOCK * BITS / 32; k++) {
            words[k] = 0;
        }
        for (int i = 0; i < BLOCK; i++) {
            ACC v = metal::rint((ACC(x[first + i]) - bias) / scale);
            v = v > ACC(0) ? v : ACC(0);
            v = v < ACC(MASK) ? v : ACC(MASK);
            uint q = uint(v);
            int bit = i * BITS;
            words[bit / 32] |= q << (bit % 32);
            if (bit % 32 + BITS > 32) {
                words[bit / 32 + 1] |= q >> (32 - bit % 32);
            }
        }
        for (int k = 0; k < BLOCK * BITS / 32; k++) {
            to[k] = words[k];
        }
        to += BLOCK * BITS / 32;
    }
}
#else

// The e4m3 nearest to a, which is no less than 0 and no NaN: ties go to the even one, and what is too large to the
// greatest.
inline uint nearest_e4m3(ACC a) {
    if (!(a < ACC(448))) {
        return 126;
    }
    uint e = max(as_type<uint>(float(a)) >> 23, 121u); // below 2^-6 steps are as for 2^-6
    return ((e - 121) << 3) + uint(metal::rint(a * ACC(as_type<float>((257 - e) << 23))));
}

#if BITS == 4
// The e2m1 nearest to v: ties go to the smaller one, and what comes to 0 has no sign.
inline uint nearest_element(ACC v) {
    ACC a = metal::abs(v);
    uint q = uint(a > ACC(0.25f)) + uint(a > ACC(0.75f)) + uint(a > ACC(1.25f)) + uint(a > ACC(1.75f)) +
        uint(a > ACC(2.5f)) + uint(a > ACC(3.5f)) + uint(a > ACC(5.0f));
    return q != 0 && v < ACC(0) ? q | 8 : q;
}
#define LARGEST 6
#else
inline uint nearest_element(ACC v) {
    return nearest_e4m3(metal::abs(v)) | (as_type<uint>(float(v)) >> 31 << 7);
}
#define LARGEST 448
#endif

// The exponent of the least power of two that is no less than x > 0; from -127 to 127.
inline int exponent_above(ACC x) {
    if (!(x > ACC(0x1p-127f))) {
        return -127;
    }
    if (x > ACC(0x1p126f)) {
        return 127;
    }
    uint bits = as_type<uint>(float(x));
    int e = int(bits >> 23) - 127;
    return x > ACC(as_type<float>(bits & 0x7f800000u)) ? e + 1 : e;
}

// A group's scale in a byte; a power of two is large enough for all elements. If an element is no finite number, the
// scale is the NaN of its format, or inf.
inline uchar group_scale(const device T* x, ACC encode) {
    ACC largest = ACC(0);
    bool finite = true;
    for (int i = 0; i < GROUP; i++) {
        ACC a = metal::abs(ACC(x[i]));
        largest = a > largest ? a : largest;
        finite = finite && a - a == ACC(0);
    }
    ACC scale = ACC(T(largest / ACC(LARGEST)));
#if NVFP4
    return finite ? uchar(nearest_e4m3(scale * encode)) : uchar(127);
#else
    int e = scale == ACC(0) ? 0 : exponent_above(scale);
    return finite ? uchar(e + 127) : uchar(255);
#endif
}

// An element in BITS bits.
inline uint packed_element(T x, ACC scale, ACC encode) {
#if NVFP4
    return scale == ACC(0) ? 0 : nearest_element(ACC(T(ACC(x) / scale)) * encode);
#else
    return nearest_element(ACC(x) / scale);
#endif
}

#if GLOBAL
#define ENCODE(g) ACC(GREATEST_PRODUCT / factors[(g) / per])
#else
#define ENCODE(g) ACC(1)
#endif

kernel void quantize(const device T* w [[buffer(0)]],
                     device uint* packed [[buffer(1)]],
                     device uchar* scales [[buffer(2)]],
#if GLOBAL
                     const device float* factors [[buffer(3)]],
                     constant uint& per [[buffer(4)]],
#endif
                     uint g [[thread_position_in_grid]]) {
    const device T* x = w + ulong(g) * GROUP;
    ACC encode = ENCODE(g);
    uchar s = group_scale(x, encode);
    scales[g] = s;
    ACC scale = scale_of(s);
    for (int word = 0; word < WORDS; word++) {
        uint q = 0;
        for (int i = 0; i < 32 / BITS; i++) {
            q |= packed_element(x[word * (32 / BITS) + i], scale, encode) << (i * BITS);
        }
        packed[ulong(g) * WORDS + word] = q;
    }
}
#endif

#if GLOBAL
#define SCALE(g) (scale_of(scales[g]) * (ACC(factors[(g) / per]) / ACC(GREATEST_PRODUCT)))
#else
#define SCALE(g) scale_of(scales[g])
#endif

#if !AFFINE
// What unpacking makes of what quantize packs.
kernel void round_trip(const device T* w [[buffer(0)]],
                       device T* out [[buffer(1)]],
#if GLOBAL
                       const device float* factors [[buffer(2)]],
                       constant uint& per [[buffer(3)]],
#endif
                       uint g [[thread_position_in_grid]]) {
    const device T* x = w + ulong(g) * GROUP;
    device T* to = out + ulong(g) * GROUP;
    ACC encode = ENCODE(g);
    uchar s = group_scale(x, encode);
    ACC scale = scale_of(s);
    ACC factor = scale;
#if GLOBAL
    factor = scale * (ACC(factors[g / per]) / ACC(GREATEST_PRODUCT));
#endif
    for (int i = 0; i < GROUP; i++) {
        to[i] = T(ELEMENT(factor, 0, packed_element(x[i], scale, encode)));
    }
}
#endif

#endif // !BLOCKS

#if BLOCKS
// OUT is the type of the result.
kernel void dequantize(const device uchar* packed [[buffer(0)]],
                       const device uchar* scales [[buffer(1)]],
                       device OUT* out [[buffer(2)]],
                       uint2 p [[thread_position_in_grid]]) {
    out[ulong(p.y) * GROUP + p.x] = OUT(block_element(packed + ulong(p.y) * BYTES, p.x & ~31u, p.x & 31));
}
#else
// OUT is the type of the result.
kernel void dequantize(const device uint* packed [[buffer(0)]],
                       const device SCALE_T* scales [[buffer(1)]],
                       device OUT* out [[buffer(2)]],
#if AFFINE
                       const device T* biases [[buffer(3)]],
#elif GLOBAL
                       const device float* factors [[buffer(3)]],
                       constant uint& per [[buffer(4)]],
#endif
                       uint2 p [[thread_position_in_grid]]) {
    uint g = p.y;
    uint bit = p.x * BITS;
    const device uint* from = packed + (ulong(g) * WORDS + bit / 32);
    uint shift = bit % 32;
    uint q = from[0] >> shift;
#if 32 % BITS != 0
    if (shift + BITS > 32) {
        q = q | (from[1] << (32 - shift));
    }
#endif
#if AFFINE
    ACC bias = ACC(biases[g]);
#endif
    out[ulong(g) * GROUP + p.x] = OUT(ELEMENT(SCALE(g), bias, q & MASK));
}
#endif
