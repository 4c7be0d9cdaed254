// What sorts and selects by digits share. K is an unsigned type of the keys' size; ordered(x) is an unsigned number
// that has the order of key x, and is the same for equal keys. A digit is 8 bits of that number.

#pragma clang fp contract(off)

#if INDEX
#define RESULT uint
#else
#define RESULT K
#endif

inline uint digit_of(K x, uint shift) { return uint(ordered(x) >> shift) & 255u; }

// The lanes of the mask `valid` that have this lane's digit.
inline uint peers_of(uint digit, uint valid) {
    uint peers = valid;
    for (uint b = 0; b < 8; b++) {
        bool set = ((digit >> b) & 1u) != 0;
        uint votes = uint(ulong(simd_ballot(set)));
        peers = peers & (set ? votes : ~votes);
    }
    return peers;
}

inline void clear(threadgroup uint* table, uint lane) {
    for (uint d = lane; d < 256; d += 32) {
        table[d] = 0;
    }
    simdgroup_barrier(mem_flags::mem_threadgroup);
}
